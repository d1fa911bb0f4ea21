#include "api/json_body.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <vector>

#include <boost/json/parser.hpp>
#include <fmt/format.h>

#include "base/json_text.h"
#include "base/suggest.h"
#include "base/utf8.h"

namespace waybill::api {
namespace {

namespace json = boost::json;

std::string_view kind_name(const json::value& value) noexcept {
  switch (value.kind()) {
    case json::kind::null:
      return "null";
    case json::kind::bool_:
      return "a boolean";
    case json::kind::int64:
    case json::kind::uint64:
    case json::kind::double_:
      return "a number";
    case json::kind::string:
      return "a string";
    case json::kind::array:
      return "an array";
    case json::kind::object:
      return "an object";
  }
  return "something else";
}

}  // namespace

std::unexpected<Error> wrong_type(std::string_view field, std::string_view wanted, const json::value& got) {
  return fail(ErrorCode::kInvalidInput,
              fmt::format("\"{}\" must be {}, not {}.", field, wanted, kind_name(got)), std::string(field));
}

std::unexpected<Error> missing_field(std::string_view field, std::string_view what) {
  return fail(ErrorCode::kInvalidInput, fmt::format("\"{}\" is missing: {}.", field, what),
              std::string(field));
}

JsonBody::JsonBody() : memory_(buffer_, sizeof buffer_) {}

Status JsonBody::parse(std::string_view body) {
  Status parsed = parse_text(body);
  if (!parsed) {
    // Only where it failed: what is decodable already need not be looked at twice.
    repaired_ = decodable_json(body);
    if (repaired_ != body) parsed = parse_text(repaired_);
  }
  return parsed;
}

Status JsonBody::parse_text(std::string_view text) {
  if (text.find_first_not_of(" \t\r\n") == std::string_view::npos) {
    return fail(ErrorCode::kInvalidInput, "The request has no body; send a JSON object.");
  }
  std::array<unsigned char, 1024> scratch;
  json::parser parser({}, json::parse_options(), scratch.data(), scratch.size());
  parser.reset(json::storage_ptr(&memory_));
  boost::system::error_code error;
  const std::size_t read = parser.write_some(json::string_view(text.data(), text.size()), error);
  const bool trailing = !error && text.find_first_not_of(" \t\r\n", read) != std::string_view::npos;
  if (error || trailing) {
    const std::string reason = error      ? error.message()
                               : trailing ? "text after the end"
                                          : "it ends too early";
    return fail(
        ErrorCode::kInvalidInput,
        fmt::format("The body is not valid JSON: {} at byte {}. Send a JSON object, with Content-Type: "
                    "application/json.",
                    reason, read));
  }
  value_.emplace(parser.release());
  object_ = value_->if_object();
  if (object_ == nullptr) {
    return fail(ErrorCode::kInvalidInput,
                fmt::format("The body must be a JSON object, not {}.", kind_name(*value_)));
  }
  return {};
}

Status JsonBody::check_fields(std::initializer_list<std::string_view> known) const {
  for (const auto& [key, value] : *object_) {
    const std::string_view name(key.data(), key.size());
    if (std::ranges::find(known, name) != known.end()) continue;
    const std::vector<std::string_view> names(known);
    const std::string guess = did_you_mean(name, names);
    return fail(ErrorCode::kInvalidInput,
                fmt::format("There is no field \"{}\" here{}", name, guess.empty() ? "." : guess),
                std::string(name));
  }
  return {};
}

const json::value* JsonBody::find(std::string_view name) const {
  const json::value* value = object_->if_contains(json::string_view(name.data(), name.size()));
  return value == nullptr || value->is_null() ? nullptr : value;
}

Result<std::optional<std::string_view>> JsonBody::text(std::string_view name) const {
  const json::value* value = find(name);
  if (value == nullptr) return std::nullopt;
  const json::string* text = value->if_string();
  if (text == nullptr) return wrong_type(name, "a string", *value);
  return std::string_view(text->data(), text->size());
}

Result<std::optional<bool>> JsonBody::flag(std::string_view name) const {
  const json::value* value = find(name);
  if (value == nullptr) return std::nullopt;
  if (!value->is_bool()) return wrong_type(name, "true or false", *value);
  return value->get_bool();
}

Result<std::optional<std::int64_t>> JsonBody::integer(std::string_view name, std::int64_t min,
                                                      std::int64_t max) const {
  const json::value* value = find(name);
  if (value == nullptr) return std::nullopt;
  if (!value->is_number()) return wrong_type(name, "a whole number", *value);
  boost::system::error_code error;
  const auto number = value->to_number<std::int64_t>(error);
  if (error || number < min || number > max) {
    return fail(ErrorCode::kInvalidInput,
                fmt::format("\"{}\" must be a whole number from {} to {}.", name, min, max),
                std::string(name));
  }
  return number;
}

Result<std::optional<double>> JsonBody::number(std::string_view name, double min, double max) const {
  const json::value* value = find(name);
  if (value == nullptr) return std::nullopt;
  if (!value->is_number()) return wrong_type(name, "a number", *value);
  const auto number = value->to_number<double>();
  if (!(number >= min && number <= max)) {
    return fail(ErrorCode::kInvalidInput,
                fmt::format("\"{}\" must be a number from {} to {}.", name, min, max), std::string(name));
  }
  return number;
}

}  // namespace waybill::api
