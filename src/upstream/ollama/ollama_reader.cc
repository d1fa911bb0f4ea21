#include "upstream/ollama/ollama_reader.h"

#include <algorithm>
#include <bit>
#include <charconv>
#include <chrono>
#include <cstddef>
#include <iterator>
#include <span>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/base64.h"
#include "base/json_writer.h"
#include "base/uuid.h"
#include "upstream/answer_frame.h"

namespace waybill::upstream {
namespace {

std::unexpected<AnswerFault> fault(AnswerFault::Kind kind, std::string message) {
  return std::unexpected(AnswerFault{kind, 0, std::move(message)});
}

std::unexpected<AnswerFault> malformed() {
  return fault(AnswerFault::Kind::kMalformed, "it is not what an answer looks like");
}

std::unexpected<AnswerFault> told_error(std::string_view text) {
  const AnswerFrame frame = read_answer(text);
  AnswerFault told{AnswerFault::Kind::kError, frame.error.status, {}};
  frame.error.message.append_to(told.message);
  if (told.message.empty()) told.message = "the provider gave no reason";
  return std::unexpected(std::move(told));
}

std::int64_t seconds_since_1970() {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  return std::chrono::duration_cast<std::chrono::seconds>(now).count();
}

bool wants_base64(const ChatRequest& request) {
  const JsonMember* format = request.members().find("encoding_format");
  JsonString text;
  return format != nullptr && JsonScanner(format->value).read(text) && text.is("base64");
}

std::string id_of(const Call& call) {
  const std::string_view prefix = call.operation == Operation::kChat ? "chatcmpl-" : "cmpl-";
  return std::string(prefix) +
         (call.request_id.empty() ? to_string(uuid_v7()) : std::string(call.request_id));
}

// A string of the provider's, with its quotes: its escapes have been read as JSON's.
std::string quoted(const JsonString& text) { return fmt::format("\"{}\"", text.raw); }

void write_usage(const Usage& usage, bool completion, JsonWriter& json) {
  json.key("usage").begin_object().key("prompt_tokens").integer(usage.prompt);
  if (completion) json.key("completion_tokens").integer(usage.completion);
  json.key("total_tokens").integer(std::int64_t{usage.prompt} + usage.completion).end_object();
}

// The numbers of one raw array as OpenAI packs them: float32, little-endian. Nothing: there is something else
// among them.
std::optional<std::string> packed(std::string_view raw) {
  static_assert(std::endian::native == std::endian::little);
  std::vector<float> numbers;
  JsonScanner json(raw);
  if (!json.enter_array()) return std::nullopt;
  while (json.next_element()) {
    const std::string_view text = json.skip();
    float number = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
    numbers.push_back(number);
  }
  return base64(std::as_bytes(std::span(numbers)));
}

}  // namespace

OllamaReader::OllamaReader(const Call& call)
    : operation_(call.operation),
      include_usage_(call.request.include_usage()),
      base64_(wants_base64(call.request)),
      estimated_prompt_(call.request.prompt_tokens()),
      created_(seconds_since_1970()),
      id_(id_of(call)),
      meter_(estimated_prompt_) {}

void OllamaReader::append(std::string_view bytes) {
  std::ranges::copy(bytes, lines_.prepare(bytes.size()).begin());
  lines_.commit(bytes.size());
}

std::expected<std::optional<StreamPiece>, AnswerFault> OllamaReader::next() {
  while (const std::optional<std::string_view> line = lines_.next()) {
    std::expected<StreamPiece, AnswerFault> piece = read_line(*line);
    if (!piece) return std::unexpected(std::move(piece.error()));
    if (!piece->events.empty()) return *piece;
  }
  if (lines_.failed()) return fault(AnswerFault::Kind::kMalformed, "a line is too large");
  return std::nullopt;
}

std::expected<StreamPiece, AnswerFault> OllamaReader::end() {
  lines_.finish();
  // The last line needs no line end.
  if (const std::optional<std::string_view> line = lines_.next()) {
    std::expected<StreamPiece, AnswerFault> piece = read_line(*line);
    if (!piece || piece->done) return piece;
  }
  return fault(AnswerFault::Kind::kCut, "the stream stopped before its end");
}

std::expected<StreamPiece, AnswerFault> OllamaReader::read_line(std::string_view line) {
  const std::optional<OllamaAnswer> answer = read_ollama_answer(line);
  if (!answer) return malformed();
  if (answer->is_error) return told_error(line);
  if (!answer->has_answer && !answer->done) return malformed();
  account(*answer);
  events_.clear();
  write_chunks(*answer);
  // An end without content is content too: there are answers that say nothing.
  return StreamPiece{
      .events = events_, .content = answer->has_content() || answer->done, .done = answer->done};
}

void OllamaReader::account(const OllamaAnswer& answer) {
  meter_.count_content(answer.content.raw.size() + answer.thinking.raw.size() + answer.tool_calls.size());
  if (!answer.prompt_tokens && !answer.completion_tokens) return;
  // A prompt that is known from before is not counted by some versions.
  meter_.tell({.prompt = answer.prompt_tokens.value_or(estimated_prompt_),
               .cached_prompt = 0,
               .completion = answer.completion_tokens.value_or(0)});
}

std::string_view OllamaReader::finish_reason(const OllamaAnswer& answer) const {
  if (answer.done_reason.is("length")) return "length";
  return tool_calls_ > 0 ? "tool_calls" : "stop";
}

void OllamaReader::write_chunks(const OllamaAnswer& answer) {
  if (is_chat() && !std::exchange(begun_, true)) {
    begin_chunk(answer);
    events_ += R"("role":"assistant","content":"")";
    end_chunk({});
  }
  if (answer.has_content()) {
    begin_chunk(answer);
    JsonWriter json(events_);
    if (!is_chat()) {
      events_ += quoted(answer.content);
    } else {
      if (!answer.thinking.empty()) json.key("reasoning_content").raw(quoted(answer.thinking));
      if (!answer.content.empty()) json.key("content").raw(quoted(answer.content));
      if (!answer.tool_calls.empty()) write_tool_calls(answer.tool_calls, true, json);
    }
    end_chunk({});
  }
  if (!answer.done) return;
  begin_chunk(answer);
  if (!is_chat()) events_ += R"("")";
  end_chunk(finish_reason(answer));
  if (include_usage_) write_usage_chunk(answer);
  events_ += "data: [DONE]\n\n";
}

// Up to where its delta, or its text, goes.
void OllamaReader::begin_chunk(const OllamaAnswer& answer) {
  fmt::format_to(std::back_inserter(events_),
                 R"(data: {{"id":"{}","object":"{}","created":{},"model":"{}","choices":[{{"index":0,)", id_,
                 is_chat() ? "chat.completion.chunk" : "text_completion", created_, answer.model.raw);
  events_ += is_chat() ? R"("delta":{)" : R"("text":)";
}

void OllamaReader::end_chunk(std::string_view finish_reason) {
  if (is_chat()) events_ += '}';
  events_ += R"(,"logprobs":null,"finish_reason":)";
  if (finish_reason.empty()) {
    events_ += "null";
  } else {
    events_.append("\"").append(finish_reason).append("\"");
  }
  events_ += include_usage_ ? "}],\"usage\":null}\n\n" : "}]}\n\n";
}

void OllamaReader::write_usage_chunk(const OllamaAnswer& answer) {
  events_ += "data: ";
  JsonWriter json(events_);
  json.begin_object().key("id").string(id_).key("object");
  json.string(is_chat() ? "chat.completion.chunk" : "text_completion").key("created").integer(created_);
  json.key("model").raw(quoted(answer.model)).key("choices").begin_array().end_array();
  write_usage(meter_.usage(), true, json);
  json.end_object();
  events_ += "\n\n";
}

// OpenAI's arguments are text, and each call has an id; of a stream, an index too.
void OllamaReader::write_tool_calls(std::string_view calls, bool indexed, JsonWriter& json) {
  JsonScanner scanner(calls);
  json.key("tool_calls").begin_array();
  if (scanner.enter_array()) {
    for (; scanner.next_element(); ++tool_calls_) {
      const OllamaToolCall call = read_ollama_tool_call(scanner.skip());
      json.begin_object();
      if (indexed) json.key("index").integer(static_cast<std::int64_t>(tool_calls_));
      json.key("id");
      if (call.id.empty()) {
        // Unlike any other of the conversation, and no longer than the 40 characters that OpenAI takes.
        json.string(fmt::format("call_{}_{}", id_.substr(id_.size() - std::min<std::size_t>(id_.size(), 12)),
                                tool_calls_));
      } else {
        json.raw(quoted(call.id));
      }
      json.key("type").string("function").key("function").begin_object();
      json.key("name").raw(quoted(call.name));
      json.key("arguments").string(call.arguments.empty() ? std::string_view("{}") : call.arguments);
      json.end_object().end_object();
    }
  }
  json.end_array();
}

std::expected<void, AnswerFault> OllamaReader::whole(std::string& body) {
  const std::optional<OllamaAnswer> answer = read_ollama_answer(body);
  if (!answer) return malformed();
  if (answer->is_error) return told_error(body);
  const bool embeds = operation_ == Operation::kEmbeddings;
  const bool loaded = answer->done_reason.is("load") || answer->done_reason.is("unload");
  if (!answer->has_answer || loaded || (embeds && answer->embeddings.empty()))
    return fault(AnswerFault::Kind::kEmpty, "the answer has nothing in it");
  if (!embeds && !answer->done) return fault(AnswerFault::Kind::kCut, "the answer is not complete");
  account(*answer);
  std::string out;
  out.reserve(body.size() + 512);
  if (!embeds) {
    write_whole(*answer, out);
  } else if (!write_embeddings(*answer, out)) {
    return malformed();
  }
  body = std::move(out);
  return {};
}

void OllamaReader::write_whole(const OllamaAnswer& answer, std::string& out) {
  JsonWriter json(out);
  json.begin_object().key("id").string(id_);
  json.key("object").string(is_chat() ? "chat.completion" : "text_completion");
  json.key("created").integer(created_).key("model").raw(quoted(answer.model));
  json.key("choices").begin_array();
  write_choice(answer, json);
  json.end_array();
  write_usage(meter_.usage(), true, json);
  json.end_object();
}

void OllamaReader::write_choice(const OllamaAnswer& answer, JsonWriter& json) {
  json.begin_object().key("index").integer(0);
  if (is_chat()) {
    json.key("message").begin_object().key("role").string("assistant").key("content");
    if (answer.content.empty() && !answer.tool_calls.empty()) {
      json.null();
    } else {
      json.raw(quoted(answer.content));
    }
    if (!answer.thinking.empty()) json.key("reasoning_content").raw(quoted(answer.thinking));
    if (!answer.tool_calls.empty()) write_tool_calls(answer.tool_calls, false, json);
    json.end_object();
  } else {
    json.key("text").raw(quoted(answer.content));
  }
  json.key("logprobs").null().key("finish_reason").string(finish_reason(answer)).end_object();
}

bool OllamaReader::write_embeddings(const OllamaAnswer& answer, std::string& out) const {
  JsonWriter json(out);
  json.begin_object().key("object").string("list").key("data").begin_array();
  JsonScanner list(answer.embeddings);
  bool good = list.enter_array();
  for (std::int64_t index = 0; good && list.next_element(); ++index) {
    const std::string_view raw = list.skip();
    json.begin_object().key("object").string("embedding").key("index").integer(index).key("embedding");
    if (base64_) {
      const std::optional<std::string> text = packed(raw);
      good = text.has_value();
      json.string(text.value_or(std::string()));
    } else {
      json.raw(raw);
    }
    json.end_object();
  }
  json.end_array().key("model").raw(quoted(answer.model));
  write_usage(meter_.usage(), false, json);
  json.end_object();
  return good;
}

}  // namespace waybill::upstream
