#include "upstream/request_head.h"

#include <algorithm>
#include <array>
#include <charconv>

namespace waybill::upstream {

void add_header(std::string_view name, std::string_view value, std::string& head) {
  if (value.empty() ||
      std::ranges::any_of(value, [](char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7F; }))
    return;
  head.append(name).append(": ").append(value).append("\r\n");
}

void begin_head(const Call& call, const TargetAddress& target, std::string_view path, std::string& head) {
  head.reserve(512);
  head.append("POST ").append(target.prefix).append(path).append(" HTTP/1.1\r\n");
  add_header("Host", target.host, head);
  head.append("Content-Type: application/json\r\nAccept: ");
  head.append(call.request.stream() ? "text/event-stream" : "application/json");
  head.append("\r\nUser-Agent: waybill\r\n");
  head.append(target.headers);
  add_header("traceparent", call.traceparent, head);
  add_header("tracestate", call.tracestate, head);
  add_header("x-request-id", call.request_id, head);
  add_header("Idempotency-Key", call.idempotency_key, head);
}

std::string Dialect::inquiry(const TargetAddress& target, std::string_view path) const {
  std::string head = "GET ";
  head.append(path).append(" HTTP/1.1\r\n");
  add_header("Host", target.host, head);
  head.append("User-Agent: waybill\r\nConnection: close\r\n").append(target.headers);
  if (!target.key.empty()) add_header("Authorization", "Bearer " + std::string(target.key), head);
  head.append("\r\n");
  return head;
}

void end_head(std::size_t body_bytes, std::string& head) {
  std::array<char, 24> digits;
  const auto end = std::to_chars(digits.data(), digits.data() + digits.size(), body_bytes).ptr;
  head.append("Content-Length: ").append(digits.data(), end).append("\r\n\r\n");
}

}  // namespace waybill::upstream
