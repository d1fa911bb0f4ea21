// A string with a bound that lives inside its owner.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace waybill::telemetry {

// At most N - 1 bytes; what is longer is cut, at a border between UTF-8 characters.
template <std::size_t N>
class InlineString {
  static_assert(N >= 2 && N <= 256);

 public:
  InlineString() = default;
  InlineString& operator=(std::string_view text) noexcept {
    std::size_t length = text.size();
    if (length > kCapacity) {
      length = kCapacity;
      // A character has at most three continuation bytes; more of them in a row are not UTF-8 anyway.
      for (int i = 0; i < 3 && (static_cast<unsigned char>(text[length]) & 0xC0) == 0x80; ++i) --length;
    }
    std::copy_n(text.data(), length, bytes_.data());  // unlike memcpy, of no text at all too
    size_ = static_cast<std::uint8_t>(length);
    return *this;
  }

  [[nodiscard]] std::string_view view() const noexcept { return {bytes_.data(), size_}; }
  [[nodiscard]] bool empty() const noexcept { return size_ == 0; }
  void clear() noexcept { size_ = 0; }
  friend bool operator==(const InlineString& a, std::string_view b) noexcept { return a.view() == b; }

  static constexpr std::size_t kCapacity = N - 1;

 private:
  std::uint8_t size_ = 0;
  std::array<char, kCapacity> bytes_;
};

}  // namespace waybill::telemetry
