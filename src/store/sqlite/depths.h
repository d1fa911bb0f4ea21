// How many jobs there are per queue, caller and state, and whose turn it is.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <unordered_map>
#include <vector>

#include "store/job.h"
#include "store/sqlite/connection.h"

namespace waybill::store::sqlite {

// The table `depths` in memory; flush() writes what has changed into the transaction that changed
// it. Only the writer has one.
class Depths {
 public:
  explicit Depths(Connection& connection);

  // From the file; also after a rollback.
  void load();
  void flush();

  void add(std::int64_t queue, std::int64_t caller, State state, std::int64_t jobs);
  [[nodiscard]] std::uint64_t waiting(std::int64_t queue) const;  // queued and scheduled
  [[nodiscard]] std::uint64_t total(State state) const;

  struct Turn {
    std::int64_t caller = 0;
    std::size_t jobs = 0;
  };
  // Who gets how many of the next `max` jobs of the queue: one after the other, as long as they have any.
  [[nodiscard]] std::vector<Turn> take_turns(std::int64_t queue, std::size_t max);

 private:
  struct Caller {
    std::array<std::int64_t, kStates> jobs{};
    std::array<bool, kStates> changed{};
    bool in_turns = false;
  };
  struct Queue {
    std::unordered_map<std::int64_t, Caller> callers;
    std::deque<std::int64_t> turns;  // callers with queued jobs, and some that had
    std::int64_t waiting = 0;
  };
  struct Changed {
    std::int64_t queue, caller;
    State state;
  };

  Statement load_, save_;
  std::unordered_map<std::int64_t, Queue> queues_;
  std::array<std::int64_t, kStates> totals_{};
  std::vector<Changed> changed_;
};

}  // namespace waybill::store::sqlite
