// JSON, written piece by piece.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace waybill {

// Appends one JSON value to a string, piece by piece. Strings are made valid UTF-8; numbers that JSON has no
// word for become null. The caller keeps objects and arrays balanced.
class JsonWriter {
 public:
  explicit JsonWriter(std::string& out) : out_(out) {}

  JsonWriter& begin_object() { return open('{'); }
  JsonWriter& end_object() { return close('}'); }
  JsonWriter& begin_array() { return open('['); }
  JsonWriter& end_array() { return close(']'); }
  JsonWriter& key(std::string_view name);

  JsonWriter& string(std::string_view text);
  JsonWriter& boolean(bool value);
  JsonWriter& integer(std::int64_t value);
  JsonWriter& number(double value, int significant_digits = 6);
  JsonWriter& null();
  // A value that is JSON already, as it is.
  JsonWriter& raw(std::string_view json);

  JsonWriter& integers(std::span<const std::int32_t> values);
  // Nine digits bring a float32 back exactly.
  JsonWriter& floats(std::span<const float> values, int significant_digits = 9);

 private:
  JsonWriter& open(char bracket);
  JsonWriter& close(char bracket);
  void separate();

  std::string& out_;
  bool comma_ = false;  // something stands before on this level
};

}  // namespace waybill
