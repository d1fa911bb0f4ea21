#include "api/query.h"

#include <algorithm>
#include <charconv>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "base/suggest.h"
#include "http/request.h"

namespace waybill::api {
namespace {

constexpr std::size_t kMostListed = 1000;
constexpr std::size_t kMostShown = 100;  // bytes of a name that a client made up

// Of Endpoint::query.
std::vector<std::string_view> names_in(std::string_view list) {
  std::vector<std::string_view> names;
  while (!list.empty()) {
    names.push_back(list.substr(0, list.find(' ')));
    list.remove_prefix(std::min(list.size(), names.back().size() + 1));
  }
  return names;
}

bool is_one_of(std::string_view name, const std::vector<std::string_view>& known) {
  return std::ranges::any_of(known, [name](std::string_view each) {
    return each.ends_with('.') ? name.size() > each.size() && name.starts_with(each) : name == each;
  });
}

Error unknown_parameter(const Endpoint& endpoint, const std::string& name,
                        const std::vector<std::string_view>& known) {
  const std::string shown = name.substr(0, kMostShown);
  const std::string likely = did_you_mean(shown, known);
  std::string takes;
  for (const std::string_view each : known)
    takes += fmt::format("{}{}{}", takes.empty() ? "" : ", ", each, each.ends_with('.') ? "NAME" : "");
  return {.code = ErrorCode::kInvalidInput,
          .message = fmt::format("Unknown query parameter \"{}\" of {} {}{} It takes {}.", shown,
                                 http::to_string(endpoint.method), endpoint.path,
                                 likely.empty() ? "." : likely, takes.empty() ? "none" : takes),
          .field = shown};
}

}  // namespace

Status check_query(const Endpoint& endpoint, std::string_view query) {
  if (query.empty() || endpoint.query == kAnyQuery) return {};
  const std::vector<std::string_view> known = names_in(endpoint.query);
  std::vector<std::string> seen;
  std::string name, value;
  while (http::next_parameter(query, name, value)) {
    if (!is_one_of(name, known)) return std::unexpected(unknown_parameter(endpoint, name, known));
    if (std::ranges::find(seen, name) != seen.end()) {
      const std::string shown = name.substr(0, kMostShown);
      return fail(ErrorCode::kInvalidInput,
                  fmt::format("The query parameter \"{}\" is there more than once; give it once.", shown),
                  shown);
    }
    seen.push_back(name);
  }
  return {};
}

Result<std::size_t> read_limit(std::string_view query, std::size_t otherwise) {
  std::string text;
  if (!http::query_parameter(query, "limit", text)) return otherwise;
  std::size_t limit = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), limit);
  if (error != std::errc() || end != text.data() + text.size() || limit < 1 || limit > kMostListed) {
    return fail(ErrorCode::kInvalidInput,
                fmt::format("\"limit\" must be a whole number from 1 to {}.", kMostListed), "limit");
  }
  return limit;
}

}  // namespace waybill::api
