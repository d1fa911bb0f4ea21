#include "upstream/call.h"

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

}  // namespace waybill::upstream
