// W3C Trace Context, level 2: the headers `traceparent` and `tracestate`.
// https://www.w3.org/TR/trace-context-2/
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace waybill::telemetry {

using TraceId = std::array<std::uint8_t, 16>;
using SpanId = std::array<std::uint8_t, 8>;

struct TraceContext {
  TraceId trace_id{};
  SpanId span_id{};    // of our span, new; the parent of whatever we call
  SpanId parent_id{};  // the caller's span; zeros: our span is the root
  bool sampled = false;
  std::string tracestate;  // what goes out again; empty: no header
};

// Continues the caller's trace, or starts one when there is no usable traceparent: it must be given exactly
// once and be well-formed. A tracestate that is not well-formed is dropped without harm to the trace; its
// members are joined when the header was given several times. Of the traces that start here the share
// `sample_ratio` is sampled; one that goes on keeps the caller's flag. The values are as the header had them,
// blanks around them allowed. Thread-safe.
[[nodiscard]] TraceContext accept_trace(std::span<const std::string_view> traceparent,
                                        std::span<const std::string_view> tracestate, double sample_ratio);

// The traceparent that goes out: version 00, our span as parent, only the sampled flag.
[[nodiscard]] std::string format_traceparent(const TraceContext& context);

// Random, never all zeros, no system call but for the first of a thread.
[[nodiscard]] TraceId new_trace_id() noexcept;
[[nodiscard]] SpanId new_span_id() noexcept;

// True for about this share of traces, the same answer for the same trace everywhere: the last seven bytes of
// the id are held against the ratio, as OpenTelemetry's TraceIdRatioBased does.
[[nodiscard]] bool sample_by_ratio(const TraceId& id, double ratio) noexcept;

// Lower-case hexadecimal.
[[nodiscard]] std::string to_hex(std::span<const std::uint8_t> bytes);

}  // namespace waybill::telemetry
