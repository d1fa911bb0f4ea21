// What an answer of OpenAI's API says, frame by frame or whole.
#pragma once

#include <cstddef>
#include <optional>
#include <string_view>

#include "upstream/json_scanner.h"
#include "upstream/terms.h"

namespace waybill::upstream {

// An error as providers write it: {"error": {"message", "type", "code"}}, {"error": "text"}, vLLM's
// {"object": "error", "message", ...}, one in a choice (OpenRouter), one in an array (Gemini).
struct AnswerError {
  JsonString message, type;
  JsonString code;      // where it is text
  unsigned status = 0;  // 400 to 599: what it says of itself, in numbers or by a well-known type; 0: nothing
};

// One frame of a stream (the data of an event) or one whole answer. The views are into the text that was
// read.
struct AnswerFrame {
  bool done = false;       // "[DONE]": the stream is complete
  bool malformed = false;  // no JSON object, or not what an answer looks like; nothing else is set then
  bool is_error = false;
  AnswerError error;  // where it is one; of a refusal also where only {"message"} or {"detail"} says so

  std::size_t choices = 0;        // or embeddings
  bool content = false;           // a choice has some: text, reasoning, tool calls, refusal, audio ...
  std::size_t content_bytes = 0;  // of it, as written; for estimates where no usage is told
  JsonString finish_reason;       // of the last choice that has one; empty: not finished
  std::optional<Usage> usage;
  std::string_view null_usage;  // a member "usage": null, with the comma that goes with it; empty: none

  // The last frame of a stream that asked for usage: `"choices": []`.
  [[nodiscard]] bool is_usage_only() const noexcept { return choices == 0 && usage && !is_error; }
};

// The data of one event.
[[nodiscard]] AnswerFrame read_answer_frame(std::string_view data) noexcept;
// The body of an answer that does not stream: of chat, completions (`choices`) or embeddings (`data`); or of
// a refusal.
[[nodiscard]] AnswerFrame read_answer(std::string_view body) noexcept;

}  // namespace waybill::upstream
