// How jobs ended that the store has not been told of yet: kept until it has taken it.
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <unordered_map>
#include <utility>
#include <variant>
#include <vector>

#include "base/uuid.h"
#include "store/command.h"

namespace waybill::jobs {

struct UuidHash {
  std::size_t operator()(const Uuid& id) const noexcept { return id.low(); }  // random bits
};

// The end of one job.
struct Settlement {
  store::Lease lease;
  std::string queue;
  std::string events;  // those that have not been written; first of all
  std::variant<store::Finish, store::Fail, store::Release> how;
};

// What is being written, and what could not be written and waits for its turn. Bounded in bytes: beyond, the
// largest answers that wait are dropped, and their jobs become attempts that came to nothing. Not
// thread-safe.
class Settlements {
 public:
  explicit Settlements(std::size_t max_bytes) : max_bytes_(max_bytes) {}

  // It is being written. The reference is valid until the next call.
  const Settlement& add(Settlement settlement);
  // Its events were, if not all of it.
  void events_written(const Uuid& id);
  // It was, or never will be.
  void remove(const Uuid& id);
  // It could not be: it waits. Returns how many answers had to be dropped.
  std::size_t keep(const Uuid& id);
  // Those that wait, at most `most`: they are being written from now on.
  [[nodiscard]] std::vector<const Settlement*> take(std::size_t most);

  [[nodiscard]] std::size_t size() const noexcept { return entries_.size(); }
  [[nodiscard]] std::size_t waiting() const noexcept { return waiting_; }
  [[nodiscard]] std::size_t bytes() const noexcept { return bytes_; }
  void for_each(const std::function<void(const Settlement&)>& visit) const;

 private:
  struct Entry {
    Settlement settlement;
    std::size_t bytes = 0;
    bool waits = false;
  };
  std::size_t shrink();

  const std::size_t max_bytes_;
  std::unordered_map<Uuid, Entry, UuidHash> entries_;
  std::size_t waiting_ = 0, bytes_ = 0;
};

}  // namespace waybill::jobs
