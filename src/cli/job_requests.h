// Requests that are to become jobs: read from a file, put into calls of the API.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"

namespace waybill::cli {

// A job's fields that the command line says: name and JSON.
using JobFields = std::vector<std::pair<std::string, std::string>>;

// One job of the API: the JSON is its request, or a job already where it has a "request"; of the fields those
// that it does not say itself.
[[nodiscard]] std::string make_job(std::string_view json, const JobFields& fields);

struct RequestLine {
  std::size_t line = 0;  // 1: the first of the file
  std::string json;      // one object
};

// Reads a JSON object, or JSON Lines: an object a line, blank lines passed over. Not all of the latter is in
// memory at a time.
class RequestReader {
 public:
  // `name` is for messages. Does not close the descriptor.
  RequestReader(int descriptor, std::string name) : descriptor_(descriptor), name_(std::move(name)) {}

  // Appends what comes next, up to `most` of them and about `bytes`; nothing at the end.
  [[nodiscard]] Status next(std::vector<RequestLine>& requests, std::size_t most, std::size_t bytes);

  // For showing progress: bytes so far, and in all (0 when it is not a file).
  [[nodiscard]] std::size_t bytes_taken() const noexcept { return bytes_read_ - (buffer_.size() - begin_); }
  [[nodiscard]] std::size_t bytes_total() const noexcept;
  [[nodiscard]] const std::string& name() const noexcept { return name_; }

 private:
  [[nodiscard]] Status read_more();
  [[nodiscard]] Status read_line(std::string_view& line, bool& found);
  [[nodiscard]] Status read_rest(std::string_view& line);

  const int descriptor_;
  const std::string name_;
  std::string buffer_;
  std::size_t begin_ = 0;  // what stands before is taken
  std::size_t line_ = 0;
  std::size_t bytes_read_ = 0;
  bool has_begun_ = false, ended_ = false;
};

}  // namespace waybill::cli
