// The top level of a JSON object: read, and changed in the text, while every other byte stays as it was.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "upstream/json_scanner.h"

namespace waybill::upstream {

struct JsonMember {
  JsonString key;
  std::string_view value;  // its bytes, without white space around them
};

// What splice() does to one name.
struct JsonEdit {
  std::string_view name;                  // printable ASCII that needs no escape
  std::optional<std::string_view> value;  // JSON; nothing: there is to be no such member
};

// Members are found however their names are spelled. Where a name stands more than once, the last counts for
// reading, as most parsers have it, and all are changed by splice(), so that it does not matter which one a
// provider reads. Everything is views into the text, which must outlive them; reused, it allocates nothing.
// Not thread-safe.
class JsonMembers {
 public:
  static constexpr std::size_t kMaxMembers = 1024;

  // kInvalidInput, with the byte at fault, when the text is not one JSON object (JsonScanner says how
  // strictly). The members are then empty.
  Status parse(std::string_view text);

  // Null: there is none.
  [[nodiscard]] const JsonMember* find(std::string_view name) const;
  [[nodiscard]] std::span<const JsonMember> all() const noexcept { return members_; }

  // Writes the text, changed, to `out`. Values of members that are there are replaced where they stand; those
  // that are not come last.
  void splice(std::span<const JsonEdit> edits, std::string& out) const;

 private:
  std::string_view text_;
  std::vector<JsonMember> members_;
};

}  // namespace waybill::upstream
