#include "upstream/ollama/ollama_answer.h"

#include <algorithm>
#include <limits>

namespace waybill::upstream {
namespace {

// Anything else than a string is passed over, and `text` stays as it was.
bool read_text(JsonScanner& json, JsonString& text) {
  const bool is_null = json.peek() == JsonKind::kNull;
  if (json.read(text)) return true;
  json.skip();
  return is_null;
}

std::optional<std::uint32_t> read_count(JsonScanner& json) {
  const std::optional<std::uint64_t> number = json_whole_number(json.skip());
  if (!number) return std::nullopt;
  constexpr std::uint64_t kMost = std::numeric_limits<std::uint32_t>::max();
  return static_cast<std::uint32_t>(std::min(kMost, *number));
}

// The raw array, or nothing where it has no element.
std::string_view read_list(JsonScanner& json) {
  const std::string_view raw = json.skip();
  JsonScanner list(raw);
  return list.enter_array() && list.next_element() ? raw : std::string_view();
}

// False: it is no message.
bool read_message(JsonScanner& json, OllamaAnswer& answer) {
  if (!json.enter_object()) return false;
  bool good = true;
  for (JsonString key; json.next_member(key);) {
    if (key.is("content")) {
      good = read_text(json, answer.content) && good;
    } else if (key.is("thinking")) {
      good = read_text(json, answer.thinking) && good;
    } else if (key.is("tool_calls")) {
      answer.tool_calls = read_list(json);
    } else {
      json.skip();
    }
  }
  return good;
}

// One member, at its value. False: it is not what an answer has there.
bool read_member(JsonScanner& json, const JsonString& key, OllamaAnswer& answer) {
  if (key.is("message")) {
    answer.has_answer = true;
    return read_message(json, answer);
  }
  if (key.is("response")) {
    answer.has_answer = true;
    return read_text(json, answer.content);
  }
  if (key.is("embeddings")) {
    answer.has_answer = true;
    answer.embeddings = read_list(json);
  } else if (key.is("thinking")) {
    return read_text(json, answer.thinking);
  } else if (key.is("tool_calls")) {
    answer.tool_calls = read_list(json);
  } else if (key.is("model")) {
    return read_text(json, answer.model);
  } else if (key.is("done_reason")) {
    return read_text(json, answer.done_reason);
  } else if (key.is("done")) {
    return json.read(answer.done);
  } else if (key.is("prompt_eval_count")) {
    answer.prompt_tokens = read_count(json);
  } else if (key.is("eval_count")) {
    answer.completion_tokens = read_count(json);
  } else if (key.is("error")) {
    const JsonKind kind = json.peek();
    answer.is_error = kind != JsonKind::kNull && kind != JsonKind::kFalse;
    json.skip();
  } else {
    json.skip();
  }
  return true;
}

}  // namespace

std::optional<OllamaAnswer> read_ollama_answer(std::string_view text) {
  OllamaAnswer answer;
  JsonScanner json(text);
  if (!json.enter_object()) return std::nullopt;
  for (JsonString key; json.next_member(key);) {
    if (!read_member(json, key, answer)) return std::nullopt;
  }
  if (!json.at_end()) return std::nullopt;
  return answer;
}

OllamaToolCall read_ollama_tool_call(std::string_view raw) {
  OllamaToolCall call;
  JsonScanner json(raw);
  if (!json.enter_object()) return call;
  for (JsonString key; json.next_member(key);) {
    if (key.is("id")) {
      (void)read_text(json, call.id);
    } else if (key.is("function") && json.enter_object()) {
      for (JsonString inner; json.next_member(inner);) {
        if (inner.is("name")) {
          (void)read_text(json, call.name);
        } else if (inner.is("arguments") && json.peek() == JsonKind::kObject) {
          call.arguments = json.skip();
        } else {
          json.skip();
        }
      }
    } else {
      json.skip();
    }
  }
  return call;
}

}  // namespace waybill::upstream
