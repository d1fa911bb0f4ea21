#include "answer.h"

#include <algorithm>
#include <charconv>
#include <cstddef>

#include <strings.h>

namespace burst {
namespace {

bool begins_with(std::string_view text, std::string_view word) {
  return text.size() >= word.size() && strncasecmp(text.data(), word.data(), word.size()) == 0;
}

// The value of a header field; `head` holds whole lines and begins with the status line.
std::string_view header(std::string_view head, std::string_view name) {
  for (std::size_t line = head.find("\r\n"); line != head.npos; line = head.find("\r\n", line + 2)) {
    const std::string_view rest = head.substr(line + 2);
    if (rest.size() > name.size() && rest[name.size()] == ':' && begins_with(rest, name)) {
      std::string_view value = rest.substr(name.size() + 1, rest.find("\r\n") - name.size() - 1);
      while (value.starts_with(' ')) value.remove_prefix(1);
      return value;
    }
  }
  return {};
}

std::size_t number(std::string_view text, int base = 10) {
  std::size_t value = 0;
  std::from_chars(text.data(), text.data() + text.size(), value, base);
  return value;
}

}  // namespace

Answer parse_answer(std::string_view in, bool at_end) {
  Answer a;
  const std::size_t end = in.find("\r\n\r\n");
  if (end == in.npos) return a;
  const std::string_view head = in.substr(0, end + 2);
  if (head.size() < 12 || !head.starts_with("HTTP/1.")) {
    a.state = Answer::State::bad;
    return a;
  }
  a.status = static_cast<int>(number(head.substr(9, 3)));
  a.body = in.substr(end + 4);
  a.keep_alive = !at_end && !begins_with(header(head, "connection"), "close");
  const std::string_view length = header(head, "content-length");
  bool complete = false;
  if (!length.empty()) {
    complete = a.body.size() >= number(length);
  } else if (begins_with(header(head, "transfer-encoding"), "chunked")) {
    a.chunked = true;
    complete = a.body.starts_with("0\r\n\r\n") || a.body.find("\r\n0\r\n\r\n") != a.body.npos;
  } else {
    complete = at_end || a.status == 204 || a.status / 100 == 1;
  }
  if (complete) a.state = Answer::State::complete;
  return a;
}

std::string dechunk(std::string_view in) {
  std::string out;
  for (;;) {
    const std::size_t size = number(in, 16);
    const std::size_t line = in.find("\r\n");
    if (size == 0 || line == in.npos || line + 2 + size > in.size()) return out;
    out += in.substr(line + 2, size);
    in.remove_prefix(std::min(in.size(), line + 2 + size + 2));
  }
}

std::string_view member(std::string_view json, std::string_view name) {
  for (std::size_t at = json.find(name); at != json.npos; at = json.find(name, at + 1)) {
    const std::size_t end = at + name.size();
    if (at == 0 || json[at - 1] != '"' || end >= json.size() || json[end] != '"') continue;
    const std::size_t colon = json.find_first_not_of(' ', end + 1);
    if (colon == json.npos || json[colon] != ':') continue;
    const std::size_t value = json.find_first_not_of(' ', colon + 1);
    if (value == json.npos) return {};
    if (json[value] != '"') return json.substr(value, json.find_first_of(",} \r\n", value) - value);
    return json.substr(value + 1, json.find('"', value + 1) - value - 1);
  }
  return {};
}

}  // namespace burst
