// The handle on the record of a request that is under way.
#pragma once

#include <cstdint>
#include <string_view>
#include <utility>

#include "base/clock.h"
#include "base/result.h"
#include "base/uuid.h"
#include "telemetry/record.h"
#include "telemetry/trace_context.h"

namespace waybill::telemetry {

struct WaybillSlot;

// What a decision says of itself. The views are copied.
struct DecisionFacts {
  std::string_view route = {};
  std::string_view model = {};
  std::string_view tier = {};
  std::string_view reason = {};
  float score = 0;
  bool degraded = false;
};

// What calling a model came to, as known so far. The view is copied.
struct UpstreamFacts {
  std::string_view target = {};
  std::uint32_t attempts = 0;
  std::uint32_t prompt_tokens = 0, completion_tokens = 0;
  std::uint64_t cost_nano_usd = 0;
};

// Travels with a request and is written by each stage. Closing it is what moves the ledger, and happens
// exactly once: the destructor of one that is still open closes it as failed with the error "internal", so
// that not even our own bug loses a request.
//
// One pointer, movable. Used by one thread at a time, not always the same one; the book reads it meanwhile.
// On a handle that is empty (closed, or moved from) the setters do nothing. The book must outlive it.
class Waybill {
 public:
  Waybill() = default;
  Waybill(Waybill&& other) noexcept : slot_(std::exchange(other.slot_, nullptr)) {}
  Waybill& operator=(Waybill&& other) noexcept;
  ~Waybill();

  [[nodiscard]] bool is_open() const noexcept { return slot_ != nullptr; }
  [[nodiscard]] Uuid id() const noexcept;        // nil when empty
  [[nodiscard]] Record record() const noexcept;  // as it stands

  void caller(std::string_view name) noexcept;
  void request_id(std::string_view id) noexcept;
  void correlation_id(std::string_view id) noexcept;
  void trace(const TraceContext& context) noexcept;
  void decision(const DecisionFacts& facts) noexcept;
  // Of a request with many decisions, none of which is the waybill's own: how many were degraded.
  void degraded(std::uint32_t count) noexcept;
  void tokens(std::uint32_t count) noexcept;
  void upstream(const UpstreamFacts& facts) noexcept;
  // A stage told twice keeps its first start, and its lengths are added. `end` before `begin` counts as no
  // time.
  void stage(Stage stage, TimePoint begin, TimePoint end) noexcept;
  // What went wrong, and in which stage. Does not close; the first error told is kept.
  void fail(const Error& error, Stage stage) noexcept;

  // Ends the request: moves the ledger and tells the sinks, on this thread. `status` is of HTTP; 0: nothing
  // was sent. The handle is empty afterwards. Closing an empty one is a bug.
  void close(Outcome outcome, unsigned status) noexcept;

 private:
  friend class WaybillBook;
  explicit Waybill(WaybillSlot* slot) noexcept : slot_(slot) {}

  WaybillSlot* slot_ = nullptr;
};

}  // namespace waybill::telemetry
