// Requests of OpenAI's API as Ollama's own API has them.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "base/result.h"
#include "upstream/chat_request.h"
#include "upstream/terms.h"

namespace waybill::upstream {

// What a provider's configuration says for all calls; what a body says itself goes first.
struct OllamaSettings {
  std::string keep_alive;   // how long a model stays loaded: "10m", "-1"; empty: Ollama's own
  std::size_t num_ctx = 0;  // tokens of context; 0: the model's own
};

// Appends the body of /api/chat, /api/generate or /api/embed to `body`. `model` is Ollama's name for it.
// Fields that Ollama has no equivalent for are left out, where the answer would be of the same kind without
// them. kUnsupported names a field that would have changed the answer's meaning, kInvalidInput one that
// cannot be read; `body` is then unspecified. Source: github.com/ollama/ollama, api/types.go.
[[nodiscard]] Status write_ollama_request(Operation operation, const ChatRequest& request,
                                          std::string_view model, const OllamaSettings& settings,
                                          std::string& body);

}  // namespace waybill::upstream
