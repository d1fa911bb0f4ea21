// The words that everything about calls to models shares.
#pragma once

#include <cstdint>
#include <string_view>

namespace waybill::upstream {

// The operations of OpenAI's API that go to a provider.
enum class Operation : std::uint8_t { kChat, kCompletions, kEmbeddings };
[[nodiscard]] std::string_view path_of(Operation operation) noexcept;  // "/chat/completions"

// Interactive calls come first; batch calls have what is left, and a share of their own so that none starves.
enum class Lane : std::uint8_t { kInteractive, kBatch };
[[nodiscard]] std::string_view to_string(Lane lane) noexcept;  // "interactive", "batch"

// Tokens as a provider counts them; estimated where it does not tell.
struct Usage {
  std::uint32_t prompt = 0, cached_prompt = 0, completion = 0;  // cached_prompt is part of prompt

  friend bool operator==(const Usage&, const Usage&) = default;
};

}  // namespace waybill::upstream
