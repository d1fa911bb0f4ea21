#include "upstream/sse_reader.h"

#include <cstring>

#include "upstream/byte_search.h"

namespace waybill::upstream {

void SseReader::append(std::string_view bytes) {
  if (bytes.empty()) return;
  std::memcpy(prepare(bytes.size()).data(), bytes.data(), bytes.size());
  commit(bytes.size());
}

std::optional<SseEvent> SseReader::next() {
  const std::string_view bytes = window_.bytes();
  const char* const begin = bytes.data();
  const char* const end = begin + bytes.size();
  while (!failed_) {
    const char* const stop = find_line_end(begin + looked_, end);
    looked_ = static_cast<std::size_t>(stop - begin);
    const bool half = stop != end && *stop == '\r' && stop + 1 == end && !finished_;
    if (stop == end || half) {
      failed_ = bytes.size() > max_event_bytes_;
      return std::nullopt;
    }
    const Span line{line_, looked_ - line_};
    const bool crlf = *stop == '\r' && stop + 1 != end && stop[1] == '\n';
    line_ = looked_ = looked_ + (crlf ? 2 : 1);
    std::string_view text = bytes.substr(line.begin, line.size);
    std::size_t mark = 0;
    if (at_start_) {
      at_start_ = false;
      if (text.starts_with("\xEF\xBB\xBF")) mark = 3;
    }
    if (line.size != mark) {
      take_line(bytes, {line.begin + mark, line.size - mark});
      continue;
    }
    // A blank line: the event is complete.
    failed_ = line_ > max_event_bytes_;
    if (failed_) break;
    SseEvent event;
    event.raw = bytes.substr(0, line_);
    event.has_data = data_lines_ != 0;
    event.data = data_lines_ > 1 ? std::string_view(joined_) : bytes.substr(data_.begin, data_.size);
    event.name = bytes.substr(name_.begin, name_.size);
    window_.consume(line_);
    line_ = looked_ = data_lines_ = 0;
    data_ = name_ = {};
    return event;
  }
  return std::nullopt;
}

void SseReader::take_line(std::string_view event, Span line) {
  const std::string_view text = event.substr(line.begin, line.size);
  const bool data = text.starts_with("data"), name = text.starts_with("event");
  if (!data && !name) return;  // a comment, or a field that matters to clients only
  std::size_t value = data ? 4 : 5;
  if (value < text.size()) {
    if (text[value] != ':') return;  // another field that begins alike
    ++value;
    if (value < text.size() && text[value] == ' ') ++value;
  }
  const Span span{line.begin + value, line.size - value};
  if (name) {
    name_ = span;
    return;
  }
  if (data_lines_ == 0) {
    data_ = span;
  } else {
    if (data_lines_ == 1) joined_.assign(event.substr(data_.begin, data_.size));
    joined_.append(1, '\n').append(event.substr(span.begin, span.size));
  }
  ++data_lines_;
}

}  // namespace waybill::upstream
