#include "cli/output.h"

#include <cerrno>
#include <cstring>

#include <fmt/format.h>
#include <unistd.h>

namespace waybill::cli {

void Output::write(std::string_view text) {
  if (error_ != 0) return;
  buffer_ += text;
  constexpr std::size_t kSendAbove = 1U << 16;
  if (buffer_.size() > kSendAbove) send();
}

void Output::send() {
  std::string_view rest = buffer_;
  while (error_ == 0 && !rest.empty()) {
    const ssize_t n = ::write(descriptor_, rest.data(), rest.size());
    if (n >= 0) {
      rest.remove_prefix(static_cast<std::size_t>(n));
    } else if (errno != EINTR) {
      error_ = errno;
    }
  }
  buffer_.clear();
}

Status Output::flush() {
  send();
  if (error_ == 0) return {};
  return fail(ErrorCode::kIo, fmt::format("cannot write the output: {}", std::strerror(error_)));
}

}  // namespace waybill::cli
