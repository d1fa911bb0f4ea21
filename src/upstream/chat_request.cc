#include "upstream/chat_request.h"

#include <algorithm>
#include <limits>
#include <optional>

#include <fmt/format.h>

#include "base/hash.h"

namespace waybill::upstream {
namespace {

constexpr std::size_t kBytesPerToken = 4;
// About what OpenAI counts for a picture of 1024 x 1024 (765), files and recordings alike.
constexpr std::size_t kTokensPerAttachment = 800;
constexpr std::size_t kTokensPerMessage = 4;  // the role, and what separates messages
constexpr std::size_t kPromptHead = 256;      // bytes by which a prompt without messages is recognised

std::unexpected<Error> wrong(std::string_view field, std::string_view wanted) {
  return fail(ErrorCode::kInvalidInput, fmt::format("\"{}\" must be {}.", field, wanted), std::string(field));
}

bool is_null(const JsonMember* member) noexcept { return member == nullptr || member->value == "null"; }

std::uint32_t narrowed(std::uint64_t value) noexcept {
  return static_cast<std::uint32_t>(
      std::min<std::uint64_t>(value, std::numeric_limits<std::uint32_t>::max()));
}

// One piece of a message: some text, or (text empty) something else.
struct Part {
  std::optional<JsonString> text;
  std::string_view raw;
};

Part read_part(std::string_view raw) {
  Part part{.text = {}, .raw = raw};
  JsonScanner json(raw);
  if (json.peek() == JsonKind::kString) {
    json.read(part.text.emplace());
    return part;
  }
  if (!json.enter_object()) return part;
  for (JsonString key; json.next_member(key);) {
    JsonString text;
    if (key.is("text") && json.read(text)) {
      part.text = text;
    } else {
      json.skip();
    }
  }
  return part;
}

// Gives the parts of a `content`, which has been checked: a string, or an array of strings and objects.
template <class Take>
void for_each_part(std::string_view content, Take take) {
  JsonScanner json(content);
  if (!json.enter_array()) {
    if (json.peek() == JsonKind::kString) take(read_part(content));
    return;
  }
  while (json.next_element()) take(read_part(json.skip()));
}

void append_text(std::string_view content, std::string& out) {
  bool first = true;
  for_each_part(content, [&](const Part& part) {
    if (!part.text) return;
    if (!first) out += '\n';
    first = false;
    part.text->append_to(out);
  });
}

struct Message {
  JsonString role;
  std::string_view content;     // raw
  std::size_t other_bytes = 0;  // of tool calls and the like
};

// Nothing: the next element is not a message.
std::optional<Message> read_message(JsonScanner& json) {
  if (!json.enter_object()) return std::nullopt;
  Message message;
  for (JsonString key; json.next_member(key);) {
    if (key.is("role") && json.read(message.role)) continue;
    const std::string_view value = json.skip();
    if (key.is("content")) {
      message.content = value;
    } else if (key.is("tool_calls") || key.is("function_call") || key.is("reasoning_content")) {
      message.other_bytes += value.size();
    }
  }
  return message;
}

}  // namespace

Status ChatRequest::parse(Operation operation, std::string_view body) {
  operation_ = operation;
  model_ = messages_ = last_user_ = {};
  stream_ = include_usage_ = false;
  max_tokens_ = prompt_tokens_ = 0;
  answers_ = 1;
  conversation_ = 0;
  Status status = members_.parse(body);
  if (status) status = read_model();
  if (status && operation != Operation::kEmbeddings) status = read_options();
  if (!status) return status;
  switch (operation) {
    case Operation::kChat:
      return read_messages();
    case Operation::kCompletions:
      return read_inputs("prompt");
    case Operation::kEmbeddings:
      return read_inputs("input");
  }
  return status;
}

Status ChatRequest::read_model() {
  const JsonMember* member = members_.find("model");
  if (is_null(member)) {
    return fail(ErrorCode::kInvalidInput, "\"model\" is missing: name a model, a route, or \"auto\".",
                "model");
  }
  JsonString name;
  if (!JsonScanner(member->value).read(name) || name.empty()) return wrong("model", "the name of a model");
  model_ = name.text(decoded_model_);
  return {};
}

Status ChatRequest::read_options() {
  const JsonMember* member = members_.find("stream");
  if (!is_null(member) && !JsonScanner(member->value).read(stream_)) return wrong("stream", "true or false");

  if (member = members_.find("stream_options"); !is_null(member)) {
    JsonScanner json(member->value);
    if (!json.enter_object()) return wrong("stream_options", "an object");
    for (JsonString key; json.next_member(key);) {
      if (!key.is("include_usage")) {
        json.skip();
        continue;
      }
      if (json.read(include_usage_)) continue;
      if (json.skip() != "null") return wrong("stream_options.include_usage", "true or false");
      include_usage_ = false;
    }
  }

  for (const std::string_view name : {"max_tokens", "max_completion_tokens"}) {
    member = members_.find(name);
    if (is_null(member)) continue;
    if (JsonScanner(member->value).peek() != JsonKind::kNumber) return wrong(name, "a whole number");
    if (member->value.starts_with('-')) continue;
    const auto number = json_whole_number(member->value);
    if (!number) return wrong(name, "a whole number");
    max_tokens_ = narrowed(*number);
  }

  if (member = members_.find("n"); !is_null(member)) {
    const auto number = json_whole_number(member->value);
    if (!number || *number == 0) return wrong("n", "a whole number from 1 on");
    answers_ = narrowed(*number);
  }
  return {};
}

void ChatRequest::count(std::size_t text_bytes, std::size_t attachments) noexcept {
  const std::size_t tokens =
      (text_bytes + kBytesPerToken - 1) / kBytesPerToken + attachments * kTokensPerAttachment;
  prompt_tokens_ = narrowed(std::uint64_t{prompt_tokens_} + tokens);
}

Status ChatRequest::read_messages() {
  const JsonMember* member = members_.find("messages");
  if (is_null(member)) {
    return fail(ErrorCode::kInvalidInput, "\"messages\" is missing: send the messages of the conversation.",
                "messages");
  }
  messages_ = member->value;
  JsonScanner json(messages_);
  if (!json.enter_array()) return wrong("messages", "an array of messages");
  std::size_t index = 0, text_bytes = 0, attachments = 0;
  bool beginning = true;  // of the conversation
  for (; json.next_element(); ++index) {
    const std::optional<Message> message = read_message(json);
    if (!message) return wrong(fmt::format("messages[{}]", index), "an object with a role and a content");
    if (message->role.is("user")) last_user_ = message->content;
    text_bytes += message->other_bytes + kTokensPerMessage * kBytesPerToken;
    if (beginning) conversation_ = hash64(message->role.raw, conversation_);
    for_each_part(message->content, [&](const Part& part) {
      if (part.text) {
        text_bytes += part.text->raw.size();
      } else {
        ++attachments;
      }
      if (beginning) conversation_ = hash64(part.text ? part.text->raw : part.raw, conversation_);
    });
    beginning = beginning && (message->role.is("system") || message->role.is("developer"));
  }
  if (index == 0) return wrong("messages", "an array of at least one message");
  for (const std::string_view name : {"tools", "functions", "response_format"}) {
    if (const JsonMember* more = members_.find(name); !is_null(more)) text_bytes += more->value.size();
  }
  count(text_bytes, attachments);
  return {};
}

// A string, an array of strings, token ids, or an array of arrays of them.
Status ChatRequest::read_inputs(std::string_view name) {
  const JsonMember* member = members_.find(name);
  // vLLM also takes messages for embeddings, and prompts that are embeddings already.
  if (is_null(member)) {
    if (operation_ == Operation::kCompletions || members_.find("messages") != nullptr) return {};
    return fail(ErrorCode::kInvalidInput,
                fmt::format("\"{}\" is missing: send a text, or an array of texts.", name),
                std::string(name));
  }
  messages_ = member->value;
  JsonScanner json(messages_);
  std::size_t text_bytes = 0, ids = 0;
  JsonString text;
  if (json.read(text)) {
    text_bytes = text.raw.size();
  } else if (json.enter_array()) {
    while (json.next_element()) {
      if (json.read(text)) {
        text_bytes += text.raw.size();
      } else if (json.enter_array()) {
        for (; json.next_element(); ++ids) json.skip();
      } else {
        json.skip();
        ++ids;
      }
    }
  } else {
    return wrong(name, "a text, or an array of texts or of token ids");
  }
  count(text_bytes, 0);
  prompt_tokens_ = narrowed(std::uint64_t{prompt_tokens_} + ids);
  conversation_ = hash64(messages_.substr(0, kPromptHead));
  return {};
}

void ChatRequest::append_last_user_text(std::string& out) const {
  if (operation_ == Operation::kChat) {
    append_text(last_user_, out);
    return;
  }
  JsonScanner json(messages_);
  if (json.enter_array() && !json.next_element()) return;
  if (JsonString text; json.read(text)) text.append_to(out);
}

void ChatRequest::append_turns(std::vector<Turn>& out) const {
  if (operation_ != Operation::kChat) {
    Turn turn{"user", {}};
    append_last_user_text(turn.text);
    if (!turn.text.empty()) out.push_back(std::move(turn));
    return;
  }
  JsonScanner json(messages_);
  if (!json.enter_array()) return;
  while (json.next_element()) {
    const std::optional<Message> message = read_message(json);
    if (!message) return;
    Turn& turn = out.emplace_back();
    message->role.append_to(turn.role);
    append_text(message->content, turn.text);
  }
}

std::string ChatRequest::stream_options_with_usage() const {
  const JsonMember* member = members_.find("stream_options");
  JsonMembers options;
  if (is_null(member) || !options.parse(member->value)) return R"({"include_usage":true})";
  const JsonEdit edit{"include_usage", "true"};
  std::string out;
  options.splice({&edit, 1}, out);
  return out;
}

}  // namespace waybill::upstream
