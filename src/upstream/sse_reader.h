// Server-sent events (WHATWG HTML, 9.2 "Server-sent events"), read as they come and relayed as they came.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "upstream/read_window.h"

namespace waybill::upstream {

// One event, or what stands in its place: comments, or a blank line, that end like one. The views are valid
// until the next call of next() or prepare().
struct SseEvent {
  std::string_view raw;   // all its bytes, up to and with the blank line that ends it
  std::string_view data;  // of its data lines, joined by "\n"; the bytes themselves when there is one line
  std::string_view name;  // of its last `event` line; empty: "message"
  bool has_data = false;  // without, a client is told nothing of it: comments, ids, blank lines
};

// Takes a body of text/event-stream in pieces of any size and gives its events one by one; how it was cut
// does not matter. The raw bytes of all events and rest() are the stream, byte for byte. Lines end with LF,
// CRLF or CR; an event whose last byte so far is a CR is given when the next byte has come or finish() was
// called, as it may be half of a CRLF. Bytes are not decoded: UTF-8 stays as it is, valid or not.
//
// Allocates when an event is larger than any before, not for each. Not thread-safe.
class SseReader {
 public:
  static constexpr std::size_t kMaxEventBytes = 4U << 20;

  explicit SseReader(std::size_t max_event_bytes = kMaxEventBytes) : max_event_bytes_(max_event_bytes) {}

  // Where the next bytes go: room for `bytes` at least. Then commit() says how many came.
  [[nodiscard]] std::span<char> prepare(std::size_t bytes) { return window_.prepare(bytes); }
  void commit(std::size_t bytes) noexcept { window_.commit(bytes); }
  // Copies, for callers that have the bytes elsewhere.
  void append(std::string_view bytes);
  // No more bytes will come.
  void finish() noexcept { finished_ = true; }

  // Nothing: more bytes are needed, or failed().
  [[nodiscard]] std::optional<SseEvent> next();

  // An event is larger than the bound; nothing more comes.
  [[nodiscard]] bool failed() const noexcept { return failed_; }
  // The bytes of an event that is not complete. After the stream has ended, an event that was cut: clients
  // are to drop it.
  [[nodiscard]] std::string_view rest() const noexcept { return window_.bytes(); }

 private:
  struct Span {
    std::size_t begin = 0, size = 0;  // from the first byte of the event
  };
  void take_line(std::string_view event, Span line);

  const std::size_t max_event_bytes_;
  ReadWindow window_;       // begins with the event that is being read
  std::size_t line_ = 0;    // where its current line begins,
  std::size_t looked_ = 0;  // and up to where that has been searched for its end
  std::size_t data_lines_ = 0;
  Span data_, name_;
  std::string joined_;  // when there are several
  bool at_start_ = true, finished_ = false, failed_ = false;
};

}  // namespace waybill::upstream
