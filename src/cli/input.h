// Texts from stdin.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace waybill::cli {

enum class InputFormat : std::uint8_t {
  kLines,  // a text a line; an empty line is the empty text
  kJsonl,  // a JSON string, or an object with a "text", a line; blank lines are passed over
};

// The text of one line of JSON Lines. A lone surrogate and invalid UTF-8 read as U+FFFD; \u0000 is a
// character like any other.
[[nodiscard]] Result<std::string> text_of_json(std::string_view line);

// Reads what is there and no more: a person typing lines gets an answer to each, a file comes in large
// blocks.
class TextReader {
 public:
  explicit TextReader(InputFormat format, int descriptor = 0) : format_(format), descriptor_(descriptor) {}

  // Replaces `texts` by the next ones, at least one of them; empty at the end of the input. What stands
  // before a line that cannot be taken is given first, then the failure.
  [[nodiscard]] Status next(std::vector<std::string>& texts);

  // For showing progress: bytes of the input so far, and in all (0 when it is not a file).
  [[nodiscard]] std::size_t bytes_taken() const noexcept { return bytes_read_ - buffer_.size(); }
  [[nodiscard]] std::size_t bytes_total() const noexcept;

 private:
  void read_more();
  void take_lines(std::vector<std::string>& texts);
  void take_line(std::string_view line, std::vector<std::string>& texts);

  InputFormat format_;
  int descriptor_;
  std::string buffer_;        // read and not yet taken
  std::size_t searched_ = 0;  // no line ends before here
  std::size_t line_ = 0;
  std::size_t bytes_read_ = 0;
  bool ended_ = false;
  Status failure_;
};

}  // namespace waybill::cli
