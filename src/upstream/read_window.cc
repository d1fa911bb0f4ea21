#include "upstream/read_window.h"

#include <algorithm>
#include <cstring>

namespace waybill::upstream {

std::span<char> ReadWindow::prepare(std::size_t bytes) {
  const std::size_t held = end_ - begin_;
  if (held == 0) {
    begin_ = end_ = 0;
    if (capacity_ > kKept && bytes <= kKept) {
      memory_.reset();
      capacity_ = 0;
    }
  }
  if (capacity_ - end_ < bytes) {
    // Moving is paid for by the bytes that were consumed since: each is moved a bounded number of times.
    if (capacity_ >= held + bytes && begin_ >= held) {
      std::memmove(memory_.get(), memory_.get() + begin_, held);
    } else {
      const std::size_t capacity = std::max(held + bytes, 2 * held);
      auto memory = std::make_unique_for_overwrite<char[]>(capacity);
      if (held != 0) std::memcpy(memory.get(), memory_.get() + begin_, held);
      memory_ = std::move(memory);
      capacity_ = capacity;
    }
    begin_ = 0;
    end_ = held;
  }
  return {memory_.get() + end_, capacity_ - end_};
}

}  // namespace waybill::upstream
