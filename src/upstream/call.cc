#include "upstream/call.h"

#include <algorithm>

namespace waybill::upstream {

std::string_view path_of(Operation operation) noexcept {
  switch (operation) {
    case Operation::kChat:
      return "/chat/completions";
    case Operation::kCompletions:
      return "/completions";
    case Operation::kEmbeddings:
      return "/embeddings";
  }
  return "/";
}

std::string_view to_string(Lane lane) noexcept {
  return lane == Lane::kInteractive ? "interactive" : "batch";
}

std::uint32_t expected_answer_tokens(const ChatRequest& request) noexcept {
  constexpr std::uint64_t kUnsaid = 256;
  const std::uint64_t each = request.max_tokens() == 0 ? kUnsaid : request.max_tokens();
  return static_cast<std::uint32_t>(std::min<std::uint64_t>(each * request.answers(), UINT32_MAX));
}

}  // namespace waybill::upstream
