// Newline-delimited JSON, as Ollama streams it: one object a line.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string_view>

#include "upstream/read_window.h"

namespace waybill::upstream {

// Takes a body in pieces of any size and gives its lines one by one, without LF, CRLF and blanks around them;
// lines with nothing else are left out. Allocates when a line is longer than any before, not for each.
// Not thread-safe.
class NdjsonReader {
 public:
  static constexpr std::size_t kMaxLineBytes = 4U << 20;

  explicit NdjsonReader(std::size_t max_line_bytes = kMaxLineBytes) : max_line_bytes_(max_line_bytes) {}

  [[nodiscard]] std::span<char> prepare(std::size_t bytes) { return window_.prepare(bytes); }
  void commit(std::size_t bytes) noexcept { window_.commit(bytes); }
  // No more bytes will come: what is left is a line.
  void finish() noexcept { finished_ = true; }

  // Nothing: more bytes are needed, or failed(). The view is valid until the next call of next() or
  // prepare().
  [[nodiscard]] std::optional<std::string_view> next();

  // A line is longer than the bound; nothing more comes.
  [[nodiscard]] bool failed() const noexcept { return failed_; }
  // The bytes of a line that is not complete.
  [[nodiscard]] std::string_view rest() const noexcept { return window_.bytes(); }

 private:
  const std::size_t max_line_bytes_;
  ReadWindow window_;       // begins with the line that is being read
  std::size_t looked_ = 0;  // up to where it has been searched for its end
  bool finished_ = false, failed_ = false;
};

}  // namespace waybill::upstream
