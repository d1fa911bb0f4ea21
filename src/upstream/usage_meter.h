// The tokens of one answer: as its provider tells them, or estimated.
#pragma once

#include <cstddef>
#include <cstdint>

#include "upstream/terms.h"

namespace waybill::upstream {

class UsageMeter {
 public:
  explicit UsageMeter(std::uint32_t estimated_prompt) noexcept : estimated_prompt_(estimated_prompt) {}

  // Of one frame, as written: most providers send a token a frame, and none is shorter than a token.
  void count_content(std::size_t bytes) noexcept {
    constexpr std::size_t kBytesPerToken = 4;
    tokens_seen_ += static_cast<std::uint32_t>((bytes + kBytesPerToken - 1) / kBytesPerToken);
  }
  void tell(const Usage& usage) noexcept {
    usage_ = usage;
    told_ = true;
  }

  [[nodiscard]] Usage usage() const noexcept {
    if (told_) return usage_;
    if (tokens_seen_ == 0) return {};
    return {.prompt = estimated_prompt_, .cached_prompt = 0, .completion = tokens_seen_};
  }

 private:
  const std::uint32_t estimated_prompt_;
  std::uint32_t tokens_seen_ = 0;  // estimated
  Usage usage_;
  bool told_ = false;
};

}  // namespace waybill::upstream
