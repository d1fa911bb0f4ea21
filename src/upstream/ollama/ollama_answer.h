// What a line of an answer of Ollama's, or a whole one, says.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "upstream/json_scanner.h"

namespace waybill::upstream {

// Of /api/chat (`message`), /api/generate (`response`) or /api/embed (`embeddings`). The views are into the
// text that was read. Source: github.com/ollama/ollama, api/types.go.
struct OllamaAnswer {
  JsonString model;
  bool has_answer = false;  // one of the three members above is there
  JsonString content, thinking;
  std::string_view tool_calls;  // the raw array; empty: none, or not one element
  std::string_view embeddings;  // the raw array
  bool done = false;
  JsonString done_reason;
  std::optional<std::uint32_t> prompt_tokens, completion_tokens;
  bool is_error = false;  // read_answer() says which

  [[nodiscard]] bool has_content() const noexcept {
    return !content.empty() || !thinking.empty() || !tool_calls.empty();
  }
};

// Nothing: the text is not one JSON object, or not what an answer looks like.
[[nodiscard]] std::optional<OllamaAnswer> read_ollama_answer(std::string_view text);

// One element of `tool_calls`.
struct OllamaToolCall {
  JsonString id;  // empty: older versions have none
  JsonString name;
  std::string_view arguments;  // a raw object; empty: none
};
[[nodiscard]] OllamaToolCall read_ollama_tool_call(std::string_view raw);

}  // namespace waybill::upstream
