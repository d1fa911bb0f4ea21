#include "upstream/ndjson_reader.h"

#include "base/trim.h"

namespace waybill::upstream {

std::optional<std::string_view> NdjsonReader::next() {
  while (!failed_) {
    const std::string_view bytes = window_.bytes();
    std::size_t end = bytes.find('\n', looked_);
    if (end == std::string_view::npos) {
      looked_ = bytes.size();
      failed_ = bytes.size() > max_line_bytes_;
      if (failed_ || !finished_ || bytes.empty()) return std::nullopt;
      end = bytes.size();
    }
    failed_ = end > max_line_bytes_;
    if (failed_) return std::nullopt;
    window_.consume(end == bytes.size() ? end : end + 1);
    looked_ = 0;
    const std::string_view line = trimmed(bytes.substr(0, end));
    if (!line.empty()) return line;
  }
  return std::nullopt;
}

}  // namespace waybill::upstream
