// What the gateway must know of the body of a call: to route it, to limit it and to choose a target.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "upstream/json_members.h"
#include "upstream/terms.h"

namespace waybill::upstream {

// One message of a conversation: its text parts, joined by line ends. UTF-8 as the client sent it.
struct Turn {
  std::string role, text;
};

// A body of /v1/chat/completions, /v1/completions or /v1/embeddings. It is read, never changed: fields that
// are not named here are the provider's business, and what is sent on is the body itself, edited in place
// (members().splice()). Reads in time linear in the body; reused, it allocates only for a model name with
// escapes. Views are into the body, which must outlive it. Not thread-safe.
class ChatRequest {
 public:
  // kInvalidInput with the field at fault: the body is not one JSON object, or one of the fields below has a
  // value that no provider could take. What it holds then is unspecified.
  Status parse(Operation operation, std::string_view body);

  [[nodiscard]] std::string_view model() const noexcept { return model_; }  // not empty
  [[nodiscard]] bool stream() const noexcept { return stream_; }
  [[nodiscard]] bool include_usage() const noexcept { return include_usage_; }  // of stream_options
  // max_completion_tokens, else max_tokens; 0: not said, or negative, which some providers take for no limit.
  [[nodiscard]] std::uint32_t max_tokens() const noexcept { return max_tokens_; }
  [[nodiscard]] std::uint32_t answers() const noexcept { return answers_; }  // n, at least 1

  // Estimated: a token for every four bytes of text and tools, a constant for each image or file.
  [[nodiscard]] std::uint32_t prompt_tokens() const noexcept { return prompt_tokens_; }
  // A hash of how the conversation begins: system messages and the first that is not one; of completions, the
  // first bytes. The same for every turn of a conversation; 0: there is nothing to tell it by.
  [[nodiscard]] std::uint64_t conversation() const noexcept { return conversation_; }

  // What to route on: the text of the last message of the user; of completions and embeddings, of the first
  // input. Appended to `out`; nothing where there is none.
  void append_last_user_text(std::string& out) const;
  // All messages of a chat, oldest first; of completions and embeddings, the first input as one of the
  // user's.
  void append_turns(std::vector<Turn>& out) const;

  [[nodiscard]] const JsonMembers& members() const noexcept { return members_; }
  // The value of stream_options with include_usage true and all else as it was.
  [[nodiscard]] std::string stream_options_with_usage() const;

 private:
  Status read_model();
  Status read_options();
  Status read_messages();
  Status read_inputs(std::string_view name);
  void count(std::size_t text_bytes, std::size_t attachments) noexcept;

  Operation operation_ = Operation::kChat;
  JsonMembers members_;
  std::string_view model_;
  std::string decoded_model_;
  bool stream_ = false, include_usage_ = false;
  std::uint32_t max_tokens_ = 0, answers_ = 1, prompt_tokens_ = 0;
  std::uint64_t conversation_ = 0;
  std::string_view messages_;   // the raw array; of completions and embeddings, the raw inputs
  std::string_view last_user_;  // raw content of the last message of the user
};

}  // namespace waybill::upstream
