#include "http/request.h"

namespace waybill::http {
namespace {

// A body or head of more than this is given back to the system once its request is done.
constexpr std::size_t kKeptBytes = 1U << 10;

constexpr char lower(char c) noexcept {
  return c >= 'A' && c <= 'Z' ? static_cast<char>(c + ('a' - 'A')) : c;
}

int hex_digit(char c) noexcept {
  if (c >= '0' && c <= '9') return c - '0';
  if (lower(c) >= 'a' && lower(c) <= 'f') return lower(c) - 'a' + 10;
  return -1;
}

void decode(std::string_view text, char plus, std::string& out) {
  out.clear();
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '%' && i + 2 < text.size() && hex_digit(text[i + 1]) >= 0 && hex_digit(text[i + 2]) >= 0) {
      out += static_cast<char>(hex_digit(text[i + 1]) * 16 + hex_digit(text[i + 2]));
      i += 2;
    } else {
      out += text[i] == '+' ? plus : text[i];
    }
  }
}

}  // namespace

std::string_view to_string(Method method) noexcept {
  switch (method) {
    case Method::kGet:
      return "GET";
    case Method::kHead:
      return "HEAD";
    case Method::kPost:
      return "POST";
    case Method::kPut:
      return "PUT";
    case Method::kPatch:
      return "PATCH";
    case Method::kDelete:
      return "DELETE";
    case Method::kOptions:
      return "OPTIONS";
    case Method::kOther:
      break;
  }
  return "another method";
}

bool equal_names(std::string_view a, std::string_view b) noexcept {
  if (a.size() != b.size()) return false;
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (lower(a[i]) != lower(b[i])) return false;
  }
  return true;
}

std::string_view Request::header(std::string_view name) const noexcept {
  for (const Header& header : headers) {
    if (equal_names(header.name, name)) return header.value;
  }
  return {};
}

void Request::clear() {
  method = Method::kOther;
  minor_version = 1;
  keep_alive = true;
  started = received = TimePoint{};
  target = path = query = {};
  headers.clear();
  if (body.capacity() > kKeptBytes) std::string().swap(body);
  body.clear();
  if (head.capacity() > kKeptBytes) std::string().swap(head);
  head.clear();
}

std::string percent_decoded(std::string_view text) {
  std::string out;
  decode(text, '+', out);
  return out;
}

bool next_parameter(std::string_view& query, std::string& name, std::string& value) {
  while (!query.empty()) {
    const std::string_view pair = query.substr(0, query.find('&'));
    query.remove_prefix(std::min(query.size(), pair.size() + 1));
    if (pair.empty()) continue;
    const std::size_t equals = std::min(pair.find('='), pair.size());
    decode(pair.substr(0, equals), ' ', name);
    decode(pair.substr(std::min(pair.size(), equals + 1)), ' ', value);
    return true;
  }
  return false;
}

bool query_parameter(std::string_view query, std::string_view name, std::string& value) {
  std::string found, text;
  while (next_parameter(query, found, text)) {
    if (found != name) continue;
    value = std::move(text);
    return true;
  }
  return false;
}

}  // namespace waybill::http
