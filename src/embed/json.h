// JSON files of a model folder, read strictly: damaged text, repeated keys, wrong types and numbers out of
// bounds are told in a sentence that names the file and the key.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include <boost/json/object.hpp>
#include <boost/json/value.hpp>

#include "base/result.h"

namespace waybill::embed {

// One JSON document (RFC 8259, valid UTF-8, at most 32 levels). kCorrupt when it is not, or when an object
// has the same key twice. `name` is the file's name in messages.
[[nodiscard]] Result<boost::json::value> parse_json(std::string_view text, std::string_view name);

// Text from a file as it may appear in a message: quoted, cut after 60 bytes, control characters as '?'.
[[nodiscard]] std::string quoted(std::string_view text);

// The object at the top of a JSON file, with typed look-ups. A key that is absent or null reads as the
// fallback; a value of another type reads as the fallback too and is remembered as an error, the first one of
// all (kCorrupt): look everything up, then ask for status(). Borrows both arguments.
class JsonFields {
 public:
  [[nodiscard]] static Result<JsonFields> of(const boost::json::value& value, std::string_view name);

  [[nodiscard]] bool has(std::string_view key) const { return find(key) != nullptr; }
  [[nodiscard]] std::string_view text(std::string_view key, std::string_view fallback = {});
  [[nodiscard]] bool boolean(std::string_view key, bool fallback);
  [[nodiscard]] double number(std::string_view key, double fallback);
  // A whole number within [min, max].
  [[nodiscard]] std::size_t size(std::string_view key, std::size_t min, std::size_t max,
                                 std::size_t fallback);
  // The same, and it must be there. Reads as `min` when it is not.
  [[nodiscard]] std::size_t required_size(std::string_view key, std::size_t min, std::size_t max);

  [[nodiscard]] const Status& status() const noexcept { return status_; }
  [[nodiscard]] const boost::json::object& object() const noexcept { return *object_; }

 private:
  JsonFields(const boost::json::object& object, std::string_view name) : object_(&object), name_(name) {}
  [[nodiscard]] const boost::json::value* find(std::string_view key) const;
  void refuse(std::string_view key, std::string_view must);

  const boost::json::object* object_;
  std::string_view name_;
  Status status_;
};

}  // namespace waybill::embed
