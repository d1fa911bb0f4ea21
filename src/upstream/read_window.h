// The bytes of a stream that have come and are not done with.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string_view>

namespace waybill::upstream {

// Bytes are read straight into it and looked at where they lie. It grows by doubling to hold the largest
// piece that is not done with, and gives memory beyond kKept back once it is empty. Not thread-safe.
class ReadWindow {
 public:
  static constexpr std::size_t kKept = 64U << 10;  // bytes that an idle stream may hold

  // Room for `bytes` more at least. Views of the window are invalid afterwards.
  [[nodiscard]] std::span<char> prepare(std::size_t bytes);
  // So many of the prepared bytes have been filled.
  void commit(std::size_t bytes) noexcept { end_ += bytes; }
  // The first bytes are done with. Views stay valid until prepare().
  void consume(std::size_t bytes) noexcept { begin_ += bytes; }

  [[nodiscard]] std::string_view bytes() const noexcept { return {memory_.get() + begin_, end_ - begin_}; }
  [[nodiscard]] std::size_t capacity() const noexcept { return capacity_; }

 private:
  std::unique_ptr<char[]> memory_;
  std::size_t capacity_ = 0, begin_ = 0, end_ = 0;
};

}  // namespace waybill::upstream
