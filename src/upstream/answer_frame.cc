#include "upstream/answer_frame.h"

#include <algorithm>
#include <array>
#include <limits>
#include <utility>

namespace waybill::upstream {
namespace {

std::uint32_t read_count(JsonScanner& json) noexcept {
  constexpr std::uint64_t kMost = std::numeric_limits<std::uint32_t>::max();
  return static_cast<std::uint32_t>(std::min(kMost, json_whole_number(json.skip()).value_or(0)));
}

// Passes over a value; how many bytes of content it has. Numbers, flags and null have none.
std::size_t skip_content(JsonScanner& json) noexcept {
  JsonString text;
  if (json.read(text)) return text.raw.size();
  const JsonKind kind = json.peek();
  const std::string_view raw = json.skip();
  if (kind != JsonKind::kArray && kind != JsonKind::kObject) return 0;
  const bool any = raw.find_first_not_of(" \t\r\n", 1) + 1 < raw.size();
  return any ? raw.size() : 0;
}

void read_text(JsonScanner& json, JsonString& text) noexcept {
  if (!json.read(text)) json.skip();
}

unsigned status_of_name(const JsonString& name) {
  if (name.empty()) return 0;
  static constexpr std::array<std::pair<std::string_view, unsigned>, 13> kKnown{{
      {"rate_limit_exceeded", 429},
      {"rate_limit_error", 429},
      {"insufficient_quota", 429},
      {"overloaded_error", 529},
      {"server_error", 500},
      {"api_error", 500},
      {"internal_server_error", 500},
      {"service_unavailable", 503},
      {"invalid_request_error", 400},
      {"BadRequestError", 400},
      {"context_length_exceeded", 400},
      {"authentication_error", 401},
      {"not_found_error", 404},
  }};
  const auto* const known =
      std::ranges::find_if(kKnown, [&](const auto& each) { return name.is(each.first); });
  return known == kKnown.end() ? 0 : known->second;
}

// `code` may be a name, a status or a status in quotes; `status` a number, or a name of Google's.
void read_code(JsonScanner& json, AnswerError& error) noexcept {
  JsonString text;
  const bool quoted = json.read(text);
  const auto number = json_whole_number(quoted ? text.raw : json.skip());
  if (number && *number >= 400 && *number <= 599) {
    error.status = static_cast<unsigned>(*number);
  } else if (quoted && error.code.empty()) {
    error.code = text;
  }
}

// One of its members, at its value.
bool read_error_member(JsonScanner& json, const JsonString& key, AnswerError& error) {
  if (key.is("message") || key.is("detail")) {
    read_text(json, error.message);
  } else if (key.is("type")) {
    read_text(json, error.type);
  } else if (key.is("code") || key.is("status")) {
    read_code(json, error);
  } else {
    return false;
  }
  return true;
}

// The value of a member `error`; false when it says that there is none.
bool read_error(JsonScanner& json, AnswerError& error) {
  if (json.read(error.message)) return true;
  if (!json.enter_object()) {
    const JsonKind kind = json.peek();
    json.skip();
    return kind != JsonKind::kNull && kind != JsonKind::kFalse;
  }
  for (JsonString key; json.next_member(key);) {
    if (!read_error_member(json, key, error)) json.skip();
  }
  return true;
}

// A `delta` of a frame, or the `message` of an answer.
std::size_t read_message(JsonScanner& json) {
  static constexpr std::array<std::string_view, 11> kContent{
      "content",       "reasoning_content",
      "reasoning",     "reasoning_details",
      "thinking",      "tool_calls",
      "function_call", "refusal",
      "audio",         "images",
      "annotations",
  };
  if (!json.enter_object()) return json.skip(), 0;
  std::size_t bytes = 0;
  for (JsonString key; json.next_member(key);) {
    if (std::ranges::any_of(kContent, [&](std::string_view name) { return key.is(name); })) {
      bytes += skip_content(json);
    } else {
      json.skip();
    }
  }
  return bytes;
}

// False when it is none.
bool read_choice(JsonScanner& json, AnswerFrame& frame) {
  if (!json.enter_object()) return false;
  ++frame.choices;
  for (JsonString key; json.next_member(key);) {
    if (key.is("delta") || key.is("message")) {
      frame.content_bytes += read_message(json);
    } else if (key.is("text")) {
      frame.content_bytes += skip_content(json);
    } else if (key.is("finish_reason")) {
      read_text(json, frame.finish_reason);
    } else if (key.is("error")) {
      frame.is_error |= read_error(json, frame.error);
    } else {
      json.skip();
    }
  }
  return true;
}

// A member of an object, and the comma that goes with it.
std::string_view with_comma(const JsonString& key, std::string_view value) noexcept {
  const auto is_space = [](char c) { return c == ' ' || c == '\t' || c == '\r' || c == '\n'; };
  const char* begin = key.raw.data() - 1;  // the quote
  const char* end = value.data() + value.size();
  const char* after = end;  // the object ends behind it: there is something to look at
  while (is_space(*after)) ++after;
  if (*after == ',') return {begin, after + 1};
  const char* before = begin - 1;  // the object begins before it
  while (is_space(*before)) --before;
  return {*before == ',' ? before : begin, end};
}

void read_usage(JsonScanner& json, const JsonString& name, AnswerFrame& frame) {
  if (!json.enter_object()) {
    const bool null = json.peek() == JsonKind::kNull;
    const std::string_view value = json.skip();
    if (null && !json.failed()) frame.null_usage = with_comma(name, value);
    return;
  }
  Usage usage;
  for (JsonString key; json.next_member(key);) {
    if (key.is("prompt_tokens")) {
      usage.prompt = read_count(json);
    } else if (key.is("completion_tokens")) {
      usage.completion = read_count(json);
    } else if (key.is("prompt_cache_hit_tokens")) {  // DeepSeek
      usage.cached_prompt = read_count(json);
    } else if (key.is("prompt_tokens_details") && json.enter_object()) {
      for (JsonString detail; json.next_member(detail);) {
        if (detail.is("cached_tokens")) {
          usage.cached_prompt = read_count(json);
        } else {
          json.skip();
        }
      }
    } else {
      json.skip();
    }
  }
  usage.cached_prompt = std::min(usage.cached_prompt, usage.prompt);
  frame.usage = usage;
}

// False when the text does not have the shape of an answer.
bool read_object(JsonScanner& json, AnswerFrame& frame) {
  if (!json.enter_object()) return false;
  for (JsonString key; json.next_member(key);) {
    if (key.is("choices")) {
      if (!json.enter_array()) {
        if (json.peek() != JsonKind::kNull) return false;
        json.skip();
        continue;
      }
      while (json.next_element())
        if (!read_choice(json, frame)) return false;
    } else if (key.is("data") && json.enter_array()) {
      for (; json.next_element(); ++frame.choices) frame.content_bytes += skip_content(json);
    } else if (key.is("usage")) {
      read_usage(json, key, frame);
    } else if (key.is("error")) {
      frame.is_error |= read_error(json, frame.error);
    } else if (JsonString object; key.is("object") && json.read(object)) {
      frame.is_error |= object.is("error");
    } else if (!read_error_member(json, key, frame.error)) {
      json.skip();
    }
  }
  return true;
}

}  // namespace

AnswerFrame read_answer(std::string_view body) noexcept {
  AnswerFrame frame;
  JsonScanner json(body);
  bool read = true;
  if (json.enter_array()) {  // an error of Gemini's
    while (read && json.next_element()) read = read_object(json, frame);
    read = read && frame.is_error;
  } else {
    read = read_object(json, frame);
  }
  if (!read || !json.at_end()) {
    frame = {};
    frame.malformed = true;
    return frame;
  }
  frame.content = frame.content_bytes != 0;
  if (frame.error.status == 0) frame.error.status = status_of_name(frame.error.code);
  if (frame.error.status == 0) frame.error.status = status_of_name(frame.error.type);
  return frame;
}

AnswerFrame read_answer_frame(std::string_view data) noexcept {
  if (data.starts_with("[DONE]")) {
    AnswerFrame frame;
    frame.done = true;
    return frame;
  }
  return read_answer(data);
}

}  // namespace waybill::upstream
