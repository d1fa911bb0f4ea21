// JSON (RFC 8259), read in one pass where it lies: strict, without a tree, without an allocation.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace waybill::upstream {

// A string as it is written: what stands between the quotes.
struct JsonString {
  std::string_view raw;
  bool escaped = false;  // it holds a backslash

  // Whether it reads as `text`, however it is spelled ("mod\u0065l" is "model").
  [[nodiscard]] bool is(std::string_view text) const { return escaped ? decoded_is(text) : raw == text; }
  [[nodiscard]] bool empty() const noexcept { return raw.empty(); }
  // What it reads as. Half of a surrogate pair reads as U+FFFD; bytes that are not UTF-8 stay as they are.
  void append_to(std::string& out) const;
  // The same, without a copy where nothing is escaped; else in `scratch`.
  [[nodiscard]] std::string_view text(std::string& scratch) const;

 private:
  [[nodiscard]] bool decoded_is(std::string_view text) const;
};

enum class JsonKind : std::uint8_t { kObject, kArray, kString, kNumber, kTrue, kFalse, kNull, kNothing };

// Goes through a text value by value:
//
//   JsonScanner json(text);
//   if (json.enter_object())
//     for (JsonString key; json.next_member(key);)
//       if (!key.is("id") || !json.read(id)) json.skip();
//   if (!json.at_end()) ...  // the text is not JSON
//
// What is passed over is checked as strictly as what is read (grammar, escapes, numbers; at most kMaxDepth
// levels), except that bytes in strings need not be UTF-8: they are relayed, not decoded. After a failure
// everything answers false. Views are into the text, which must outlive them. Not thread-safe.
class JsonScanner {
 public:
  static constexpr std::size_t kMaxDepth = 512;

  explicit JsonScanner(std::string_view text) noexcept
      : begin_(text.data()), at_(text.data()), end_(text.data() + text.size()) {}

  // Of the value that comes next. kNothing: no value begins here.
  [[nodiscard]] JsonKind peek() noexcept;

  // False, and nothing is passed over, when the value is of another kind.
  bool enter_object() noexcept { return enter('{'); }
  bool enter_array() noexcept { return enter('['); }
  bool read(JsonString& string) noexcept;
  bool read(bool& flag) noexcept;

  // The next member of the object that was entered last; its value must then be read, entered or skipped.
  // False after the last.
  bool next_member(JsonString& key) noexcept;
  // Whether there is another element in the array that was entered last, to be treated likewise.
  bool next_element() noexcept;

  // Passes over a value of any kind; its bytes, or empty when it is malformed.
  std::string_view skip() noexcept;

  // The one value has been passed over, and only white space follows. (A failure if not.)
  [[nodiscard]] bool at_end() noexcept;
  [[nodiscard]] bool failed() const noexcept { return failed_; }
  // It failed because of more than kMaxDepth levels.
  [[nodiscard]] bool too_deep() const noexcept { return too_deep_; }
  // Where it failed, or is.
  [[nodiscard]] std::size_t position() const noexcept { return position_of(failed_ ? failed_at_ : at_); }

 private:
  [[nodiscard]] std::size_t position_of(const char* at) const noexcept {
    return static_cast<std::size_t>(at - begin_);
  }
  [[nodiscard]] char look() noexcept {  // at the next byte that is not white space; 0 at the end
    while (at_ != end_ && (*at_ == ' ' || *at_ == '\n' || *at_ == '\r' || *at_ == '\t')) ++at_;
    return at_ != end_ ? *at_ : '\0';
  }
  bool fail() noexcept;
  bool enter(char bracket) noexcept;
  bool begin_item(char close) noexcept;
  bool scan_string(JsonString& string) noexcept;  // at its quote
  bool scan_escape() noexcept;                    // at its backslash
  bool scan_number() noexcept;
  bool scan_word(std::string_view word) noexcept;
  bool scan_scalar(char first) noexcept;
  bool scan_key(JsonString& key) noexcept;  // and its colon

  const char* begin_;
  const char* at_;
  const char* end_;
  const char* failed_at_ = nullptr;
  bool fresh_ = false;  // an object or array has been entered, and nothing of it read
  bool failed_ = false;
  bool too_deep_ = false;
};

// The raw text of a number as a whole one: "12", "12.0", "1.2e1". Nothing when it is negative, has a
// fraction, is beyond 2^53, or is no number.
[[nodiscard]] std::optional<std::uint64_t> json_whole_number(std::string_view raw) noexcept;

}  // namespace waybill::upstream
