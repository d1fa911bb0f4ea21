// Which target of a model is called.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "base/clock.h"
#include "upstream/target.h"

namespace waybill::upstream {

// A target's place in the pool of one model.
struct PoolMember {
  std::shared_ptr<Target> target;
  std::size_t priority = 0;  // the lowest that can be called is called
  std::size_t weight = 1;    // share among those of one priority; 0: only when no other can be called
};

struct Choice {
  Target* target = nullptr;              // null: none may be called now
  CircuitPass pass = CircuitPass::kNo;   // of its circuit, to be reported with
  TimePoint soonest = TimePoint::max();  // then: when the first may be; max: all have been tried
};

// Of the lowest priority with a target that may be called and was not tried: two are drawn by weight, and the
// one with less to do (calls in flight x latency) is taken. With an affinity, calls of one conversation go to
// one target (rendezvous hashing, weighted) as long as it has no more than 1.25 times its share of the calls
// in flight. Takes the probe of a circuit where one is due: the caller must report to it.
//
// `random`: any 64 random bits. Allocates nothing for pools of up to 64 targets. Thread-safe.
[[nodiscard]] Choice choose(std::span<const PoolMember> pool, std::span<const Target* const> tried,
                            std::uint64_t affinity, std::uint64_t random, TimePoint now);

}  // namespace waybill::upstream
