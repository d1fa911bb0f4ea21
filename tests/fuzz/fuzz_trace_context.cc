// The headers traceparent and tracestate: one a line, those that start with '=' are tracestates.
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/check.h"
#include "telemetry/trace_context.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace waybill::telemetry;
  std::string_view rest(reinterpret_cast<const char*>(data), size);
  std::vector<std::string_view> parents, states;
  while (!rest.empty()) {
    const std::size_t end = std::min(rest.find('\n'), rest.size());
    const std::string_view line = rest.substr(0, end);
    rest.remove_prefix(std::min(end + 1, rest.size()));
    if (line.starts_with('=')) {
      states.push_back(line.substr(1));
    } else {
      parents.push_back(line);
    }
  }
  const TraceContext context = accept_trace(parents, states, 0.5);
  WAYBILL_CHECK(context.trace_id != TraceId{} && context.span_id != SpanId{});
  const bool continues = context.parent_id != SpanId{};
  WAYBILL_CHECK(!continues || parents.size() == 1);
  WAYBILL_CHECK(continues || context.tracestate.empty());

  // The next hop that is built as we are understands what we send, and sends the same on.
  const std::string parent = format_traceparent(context);
  WAYBILL_CHECK(parent.size() == 55);
  const std::string_view outgoing = parent;
  const std::string_view state = context.tracestate;
  const TraceContext next = accept_trace({&outgoing, 1}, {&state, 1}, 0.5);
  WAYBILL_CHECK(next.trace_id == context.trace_id && next.parent_id == context.span_id);
  WAYBILL_CHECK(next.sampled == context.sampled && next.tracestate == context.tracestate);
  return 0;
}
