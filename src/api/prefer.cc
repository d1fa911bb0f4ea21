#include "api/prefer.h"

#include <algorithm>
#include <charconv>
#include <chrono>
#include <string_view>

#include "base/trim.h"

namespace waybill::api {
namespace {

constexpr std::int64_t kLongest = 86'400;  // seconds; whoever waits is told sooner

// Where the first preference of a list ends: at a comma that no quotes are around, or with the list. npos:
// its quotes do not end.
std::size_t end_of_first(std::string_view list) noexcept {
  bool quoted = false;
  for (std::size_t i = 0; i < list.size(); ++i) {
    if (list[i] == '"') quoted = !quoted;
    if (list[i] == '\\' && quoted) ++i;
    if (i < list.size() && list[i] == ',' && !quoted) return i;
  }
  return quoted ? std::string_view::npos : list.size();
}

void take(std::string_view one, Preference& preference, bool& async_seen, bool& wait_seen) {
  one = trimmed(one.substr(0, one.find(';')));  // parameters mean nothing to us
  const std::size_t equals = one.find('=');
  const std::string_view name = trimmed(one.substr(0, equals));
  std::string_view value =
      equals == std::string_view::npos ? std::string_view() : trimmed(one.substr(equals + 1));
  if (value.size() >= 2 && value.front() == '"' && value.back() == '"')
    value = value.substr(1, value.size() - 2);
  if (http::equal_names(name, "respond-async") && !async_seen) {
    async_seen = true;
    preference.respond_async = value.empty();
  }
  if (http::equal_names(name, "wait") && !wait_seen) {
    wait_seen = true;
    std::int64_t seconds = 0;
    const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), seconds);
    if (error == std::errc() && end == value.data() + value.size() && seconds >= 0)
      preference.wait = std::chrono::seconds(std::min(seconds, kLongest));
  }
}

}  // namespace

Preference read_preference(const http::Request& request) {
  Preference preference;
  bool async_seen = false, wait_seen = false;
  for (const http::Header& header : request.headers) {
    if (!http::equal_names(header.name, "prefer")) continue;
    for (std::string_view rest = header.value; !rest.empty();) {
      const std::size_t end = end_of_first(rest);
      if (end == std::string_view::npos) break;
      take(rest.substr(0, end), preference, async_seen, wait_seen);
      rest.remove_prefix(std::min(rest.size(), end + 1));
    }
  }
  return preference;
}

std::string applied(const Preference& preference) {
  std::string text = "respond-async";
  if (preference.wait) {
    text += ", wait=";
    text += std::to_string(std::chrono::duration_cast<std::chrono::seconds>(*preference.wait).count());
  }
  return text;
}

}  // namespace waybill::api
