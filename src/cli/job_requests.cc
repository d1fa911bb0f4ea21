#include "cli/job_requests.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/json_writer.h"
#include "upstream/json_scanner.h"

namespace waybill::cli {
namespace {

using upstream::JsonScanner;
using upstream::JsonString;

constexpr std::size_t kLongestRequest = 256U << 20;

bool is_blank(std::string_view text) { return text.find_first_not_of(" \t\r\n") == std::string_view::npos; }

bool is_object(std::string_view text) {
  JsonScanner json(text);
  return json.peek() == upstream::JsonKind::kObject && !json.skip().empty() && json.at_end();
}

bool has_member(std::string_view object, std::string_view name) {
  JsonScanner json(object);
  if (!json.enter_object()) return false;
  for (JsonString key; json.next_member(key);) {
    if (key.is(name)) return true;
    json.skip();
  }
  return false;
}

}  // namespace

std::string make_job(std::string_view json, const JobFields& fields) {
  std::string out;
  JsonWriter writer(out);
  writer.begin_object();
  const bool is_job = has_member(json, "request");
  if (is_job) {
    JsonScanner scanner(json);
    scanner.enter_object();
    for (JsonString key; scanner.next_member(key);) {
      std::string name;
      key.append_to(name);
      writer.key(name).raw(scanner.skip());
    }
  } else {
    writer.key("request").raw(json);
  }
  for (const auto& [name, value] : fields) {
    if (!is_job || !has_member(json, name)) writer.key(name).raw(value);
  }
  writer.end_object();
  return out;
}

Status RequestReader::read_more() {
  constexpr std::size_t kBlock = 1U << 18;
  buffer_.erase(0, begin_);
  begin_ = 0;
  if (buffer_.size() > kLongestRequest)
    return fail(ErrorCode::kInvalidInput, fmt::format("{}: a request is too large", name_));
  const std::size_t before = buffer_.size();
  buffer_.resize(before + kBlock);
  ssize_t n = 0;
  do {
    n = ::read(descriptor_, buffer_.data() + before, kBlock);
  } while (n < 0 && errno == EINTR);
  const int error = errno;
  buffer_.resize(before + static_cast<std::size_t>(std::max<ssize_t>(n, 0)));
  bytes_read_ += buffer_.size() - before;
  ended_ = n <= 0;
  if (n < 0) return fail(ErrorCode::kIo, fmt::format("cannot read {}: {}", name_, std::strerror(error)));
  return {};
}

// The next line, without its end. The view is valid until more is read.
Status RequestReader::read_line(std::string_view& line, bool& found) {
  std::size_t searched = begin_;
  for (;;) {
    const std::size_t end = buffer_.find('\n', searched);
    if (end != std::string::npos || ended_) {
      found = begin_ < buffer_.size();
      line = std::string_view(buffer_).substr(begin_, end == std::string::npos ? end : end - begin_);
      begin_ = end == std::string::npos ? buffer_.size() : end + 1;
      if (found) ++line_;
      return {};
    }
    const std::size_t size = buffer_.size() - begin_;
    if (const Status read = read_more(); !read) return read;
    searched = begin_ + size;
  }
}

// From the beginning of a line that was read to the end of the file.
Status RequestReader::read_rest(std::string_view& line) {
  const std::string start(line);
  buffer_.erase(0, begin_);
  begin_ = 0;
  while (!ended_) {
    if (const Status read = read_more(); !read) return read;
  }
  buffer_.insert(0, start + "\n");
  line = buffer_;
  begin_ = buffer_.size();
  return {};
}

Status RequestReader::next(std::vector<RequestLine>& requests, std::size_t most, std::size_t bytes) {
  std::size_t size = 0;
  while (requests.size() < most && (size < bytes || requests.empty())) {
    std::string_view line;
    bool found = false;
    if (const Status read = read_line(line, found); !read) return read;
    if (!found) return {};
    if (is_blank(line)) continue;
    const std::size_t number = line_;
    const bool is_first = !std::exchange(has_begun_, true);
    bool is_good = is_object(line);
    if (!is_good && is_first) {  // one object over several lines?
      if (const Status read = read_rest(line); !read) return read;
      is_good = is_object(line);
    }
    if (!is_good) {
      return fail(
          ErrorCode::kInvalidInput,
          fmt::format("{}:{}: this is no JSON object; a request is one, alone or one a line", name_, number));
    }
    requests.push_back({.line = number, .json = std::string(line)});
    size += line.size();
  }
  return {};
}

std::size_t RequestReader::bytes_total() const noexcept {
  struct stat info = {};
  const bool is_file = ::fstat(descriptor_, &info) == 0 && S_ISREG(info.st_mode);
  return is_file ? static_cast<std::size_t>(info.st_size) : 0;
}

}  // namespace waybill::cli
