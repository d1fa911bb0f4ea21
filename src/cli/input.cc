#include "cli/input.h"

#include <cerrno>
#include <cstring>

#include <boost/json.hpp>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/json_text.h"

namespace waybill::cli {

Result<std::string> text_of_json(std::string_view line) {
  const std::string decodable = decodable_json(line);
  boost::system::error_code error;
  const boost::json::value value = boost::json::parse(decodable, error);
  if (error) return fail(ErrorCode::kInvalidInput, "it is not JSON (" + error.message() + ")");
  const boost::json::value* text = &value;
  if (const boost::json::object* object = value.if_object(); object != nullptr)
    text = object->if_contains("text");
  if (text == nullptr || !text->is_string()) {
    return fail(ErrorCode::kInvalidInput,
                "it is neither a string nor an object with a string called \"text\"");
  }
  const boost::json::string& string = text->get_string();
  return std::string(string.data(), string.size());
}

void TextReader::read_more() {
  constexpr std::size_t kBlock = 1U << 16;
  const std::size_t old_size = buffer_.size();
  buffer_.resize(old_size + kBlock);
  ssize_t n = 0;
  do {
    n = ::read(descriptor_, buffer_.data() + old_size, kBlock);
  } while (n < 0 && errno == EINTR);
  if (n < 0) failure_ = fail(ErrorCode::kIo, fmt::format("cannot read the input: {}", std::strerror(errno)));
  buffer_.resize(old_size + static_cast<std::size_t>(n > 0 ? n : 0));
  bytes_read_ += static_cast<std::size_t>(n > 0 ? n : 0);
  ended_ = n <= 0;
  if (ended_ && !buffer_.empty()) {
    buffer_ += '\n';
    ++bytes_read_;
  }
}

void TextReader::take_line(std::string_view line, std::vector<std::string>& texts) {
  ++line_;
  if (line.ends_with('\r')) line.remove_suffix(1);
  if (format_ == InputFormat::kLines) {
    texts.emplace_back(line);
    return;
  }
  if (line.find_first_not_of(" \t") == std::string_view::npos) return;
  Result<std::string> text = text_of_json(line);
  if (text) {
    texts.push_back(std::move(*text));
  } else {
    failure_ = fail(text.error().code,
                    fmt::format("line {} of the input cannot be taken: {}", line_, text.error().message));
  }
}

void TextReader::take_lines(std::vector<std::string>& texts) {
  std::size_t taken = 0;
  std::size_t end = buffer_.find('\n', searched_);
  while (end != std::string::npos && failure_) {
    take_line(std::string_view(buffer_).substr(taken, end - taken), texts);
    taken = end + 1;
    end = buffer_.find('\n', taken);
  }
  buffer_.erase(0, taken);
  searched_ = buffer_.size();
}

Status TextReader::next(std::vector<std::string>& texts) {
  texts.clear();
  while (texts.empty() && failure_ && !(ended_ && buffer_.empty())) {
    if (!ended_) read_more();
    if (failure_) take_lines(texts);
  }
  return texts.empty() ? failure_ : Status();
}

std::size_t TextReader::bytes_total() const noexcept {
  struct stat info = {};
  const bool is_file = ::fstat(descriptor_, &info) == 0 && S_ISREG(info.st_mode);
  return is_file ? static_cast<std::size_t>(info.st_size) : 0;
}

}  // namespace waybill::cli
