// The JSON object in a request's body, read with errors that name the field.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>

#include <boost/json/monotonic_resource.hpp>
#include <boost/json/object.hpp>

#include "base/result.h"

namespace waybill::api {

// Owns what was parsed; the views point into it. Neither copied nor moved.
class JsonBody {
 public:
  JsonBody();
  JsonBody(const JsonBody&) = delete;
  JsonBody& operator=(const JsonBody&) = delete;

  // kInvalidInput when it is no JSON object. Invalid UTF-8 and lone surrogates are read as U+FFFD.
  [[nodiscard]] Status parse(std::string_view body);
  // kInvalidInput for a field that is not one of `known`, with a guess at what was meant.
  [[nodiscard]] Status check_fields(std::initializer_list<std::string_view> known) const;

  [[nodiscard]] const boost::json::value* find(std::string_view name) const;
  // Empty when the field is not there or null; kInvalidInput when it is something else.
  [[nodiscard]] Result<std::optional<std::string_view>> text(std::string_view name) const;
  [[nodiscard]] Result<std::optional<bool>> flag(std::string_view name) const;
  [[nodiscard]] Result<std::optional<std::int64_t>> integer(std::string_view name, std::int64_t min,
                                                            std::int64_t max) const;
  [[nodiscard]] Result<std::optional<double>> number(std::string_view name, double min, double max) const;

 private:
  static constexpr std::size_t kInlineBytes = 2048;  // most requests need no allocation

  [[nodiscard]] Status parse_text(std::string_view text);

  alignas(16) unsigned char buffer_[kInlineBytes];
  boost::json::monotonic_resource memory_;
  std::string repaired_;
  std::optional<boost::json::value> value_;
  const boost::json::object* object_ = nullptr;
};

// "field \"n\" must be a number, not a string"
[[nodiscard]] std::unexpected<Error> wrong_type(std::string_view field, std::string_view wanted,
                                                const boost::json::value& got);
[[nodiscard]] std::unexpected<Error> missing_field(std::string_view field, std::string_view what);

}  // namespace waybill::api
