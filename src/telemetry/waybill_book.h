// All waybills: those under way, and the latest that have ended. And the ledger that must balance.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/uuid.h"
#include "telemetry/record.h"
#include "telemetry/waybill.h"

namespace waybill::telemetry {

// accepted = completed + failed + rejected + cancelled + expired + in flight, at every moment.
struct Ledger {
  std::uint64_t accepted = 0;
  std::array<std::uint64_t, kOutcomes> ended{};  // by Outcome
  std::uint64_t in_flight = 0;                   // counted: the open records, not a difference

  [[nodiscard]] std::uint64_t with(Outcome outcome) const noexcept {
    return ended[static_cast<std::size_t>(outcome)];
  }
  [[nodiscard]] std::int64_t imbalance() const noexcept;  // 0, or something was lost or counted twice
};

// Is told of each waybill that was closed, by the thread that closed it, outside the locks of the book. Must
// be quick, and may be called by several threads at once.
class WaybillSink {
 public:
  virtual ~WaybillSink() = default;
  virtual void closed(const Record& record) noexcept = 0;
};

// How many ended waybills stay. One takes about 800 bytes; open ones are not bounded here.
struct WaybillBookOptions {
  std::size_t keep = 20'000;             // the latest
  std::size_t keep_per_failure = 1'000;  // beyond these, for each outcome but completed: the latest
  std::size_t keep_slowest = 200;        // and the slowest completed ones; each for an hour at least
  std::size_t max_bytes = 32U << 20;     // of all that are kept; the numbers above shrink together to fit
};

// Which waybills list() gives.
struct WaybillFilter {
  std::optional<Outcome> outcome = {};  // only ended ones
  std::string_view route = {};          // empty: any
  std::int64_t since_us = 0;            // started at or after it; microseconds since 1970-01-01T00:00:00Z
  std::size_t limit = 100;
};

// Memory grows with the traffic up to the bounds and then stays. Opening and closing take an uncontended lock
// of the thread's own shard. Thread-safe. Must outlive its waybills; sinks and clock must outlive it.
class WaybillBook {
 public:
  WaybillBook(const WaybillBookOptions& options, const Clock& clock, std::vector<WaybillSink*> sinks = {});
  ~WaybillBook();
  WaybillBook(const WaybillBook&) = delete;
  WaybillBook& operator=(const WaybillBook&) = delete;

  // Accepts a request that began at `started`.
  [[nodiscard]] Waybill open(std::string_view endpoint, TimePoint started);

  // The waybill with this id, or with this x-request-id of the caller (the latest of them); open ones too.
  [[nodiscard]] std::optional<Record> find(std::string_view id) const;

  // The latest first, open ones too.
  [[nodiscard]] std::vector<Record> list(const WaybillFilter& filter) const;

  // Exact: all counters at one moment.
  [[nodiscard]] Ledger ledger() const;

  // Ended waybills that are kept, and the bytes of all records; for metrics and tests.
  [[nodiscard]] std::size_t kept() const;
  [[nodiscard]] std::size_t memory_bytes() const;

  // Follows a step of the wall clock. Call it now and then.
  void refresh_wall_clock() noexcept;

  struct Impl;  // waybill_book_impl.h

 private:
  std::unique_ptr<Impl> impl_;
};

}  // namespace waybill::telemetry
