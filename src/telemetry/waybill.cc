#include "telemetry/waybill.h"

#include <algorithm>
#include <mutex>

#include "base/check.h"
#include "telemetry/waybill_book_impl.h"

namespace waybill::telemetry {
namespace {

std::uint32_t clamp_us(Duration d) noexcept {
  constexpr std::int64_t kMax = StageTime::kNotReached - 1;
  return static_cast<std::uint32_t>(std::clamp<std::int64_t>(d.count() / 1000, 0, kMax));
}

// Without memory for it, the trace goes on without.
std::shared_ptr<const std::string> copy_of(const std::string& text) noexcept {
  try {
    return std::make_shared<const std::string>(text);
  } catch (const std::bad_alloc&) {
    return nullptr;
  }
}

}  // namespace

Waybill& Waybill::operator=(Waybill&& other) noexcept {
  if (this != &other) {
    Waybill old(std::move(*this));  // closes what this one held
    slot_ = std::exchange(other.slot_, nullptr);
  }
  return *this;
}

Waybill::~Waybill() {
  if (slot_ == nullptr) return;
  fail({ErrorCode::kInternal,
        "the request was dropped without an outcome; this is a bug, please report it",
        {}},
       Stage::kWrite);
  close(Outcome::kFailed, 0);
}

Uuid Waybill::id() const noexcept {
  if (slot_ == nullptr) return {};
  const std::scoped_lock lock(slot_->mutex);
  return slot_->record.id;
}

Record Waybill::record() const noexcept {
  if (slot_ == nullptr) return {};
  const std::scoped_lock lock(slot_->mutex);
  return slot_->record;
}

void Waybill::caller(std::string_view name) noexcept {
  if (slot_ == nullptr) return;
  const std::scoped_lock lock(slot_->mutex);
  slot_->record.caller = name;
}

void Waybill::request_id(std::string_view id) noexcept {
  if (slot_ == nullptr) return;
  const std::scoped_lock lock(slot_->mutex);
  slot_->record.request_id = id;
  slot_->chunk->request_key[slot_->index].store(search_key(slot_->record.request_id.view()),
                                                std::memory_order_relaxed);
}

void Waybill::correlation_id(std::string_view id) noexcept {
  if (slot_ == nullptr) return;
  const std::scoped_lock lock(slot_->mutex);
  slot_->record.correlation_id = id;
}

void Waybill::trace(const TraceContext& context) noexcept {
  if (slot_ == nullptr) return;
  std::shared_ptr<const std::string> tracestate;
  if (context.sampled && !context.tracestate.empty()) tracestate = copy_of(context.tracestate);
  const std::scoped_lock lock(slot_->mutex);
  slot_->record.tracestate = std::move(tracestate);
  slot_->record.trace_id = context.trace_id;
  slot_->record.span_id = context.span_id;
  slot_->record.parent_id = context.parent_id;
  slot_->record.sampled = context.sampled;
}

void Waybill::decision(const DecisionFacts& facts) noexcept {
  if (slot_ == nullptr) return;
  const std::scoped_lock lock(slot_->mutex);
  Record& record = slot_->record;
  record.route = facts.route;
  record.model = facts.model;
  record.tier = facts.tier;
  record.reason = facts.reason;
  record.score = facts.score;
  record.degraded = facts.degraded ? 1 : 0;
  record.decided = true;
  slot_->chunk->route_key[slot_->index].store(static_cast<std::uint32_t>(search_key(record.route.view())),
                                              std::memory_order_relaxed);
}

void Waybill::degraded(std::uint32_t count) noexcept {
  if (slot_ == nullptr) return;
  const std::scoped_lock lock(slot_->mutex);
  slot_->record.degraded = count;
}

void Waybill::tokens(std::uint32_t count) noexcept {
  if (slot_ == nullptr) return;
  const std::scoped_lock lock(slot_->mutex);
  slot_->record.tokens = count;
}

void Waybill::upstream(const UpstreamFacts& facts) noexcept {
  if (slot_ == nullptr) return;
  const std::scoped_lock lock(slot_->mutex);
  Record& record = slot_->record;
  record.target = facts.target;
  record.attempts = static_cast<std::uint16_t>(std::min<std::uint32_t>(facts.attempts, UINT16_MAX));
  record.prompt_tokens = facts.prompt_tokens;
  record.completion_tokens = facts.completion_tokens;
  record.cost_nano_usd = facts.cost_nano_usd;
}

void Waybill::stage(Stage stage, TimePoint begin, TimePoint end) noexcept {
  if (slot_ == nullptr) return;
  const std::uint32_t start_us = clamp_us(begin - slot_->started);
  const std::uint32_t length_us = clamp_us(end - begin);
  const std::scoped_lock lock(slot_->mutex);
  StageTime& time = slot_->record.stages[static_cast<std::size_t>(stage)];
  if (!time.reached()) time.start_us = start_us;
  time.length_us = std::min(length_us, StageTime::kNotReached - 1 - time.length_us) + time.length_us;
}

void Waybill::fail(const Error& error, Stage stage) noexcept {
  if (slot_ == nullptr) return;
  const std::scoped_lock lock(slot_->mutex);
  Record& record = slot_->record;
  if (!record.error_code.empty()) return;
  record.error_code = to_string(error.code);
  record.error_message = error.message;
  record.error_stage = stage;
}

void Waybill::close(Outcome outcome, unsigned status) noexcept {
  WAYBILL_CHECK(slot_ != nullptr);
  WaybillSlot* slot = std::exchange(slot_, nullptr);
  slot->book->close(slot, outcome, status);
}

}  // namespace waybill::telemetry
