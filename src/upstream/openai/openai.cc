#include "upstream/openai/openai.h"

#include <algorithm>
#include <array>
#include <functional>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "base/json_writer.h"
#include "upstream/answer_frame.h"
#include "upstream/error_body.h"
#include "upstream/json_members.h"
#include "upstream/model_names.h"
#include "upstream/request_head.h"
#include "upstream/sse_reader.h"
#include "upstream/usage_meter.h"

namespace waybill::upstream {
namespace {

constexpr std::string_view kDoneEvent = "data: [DONE]\n\n";

std::string message_of(const AnswerError& error) {
  std::string message;
  error.message.append_to(message);
  if (message.empty()) error.type.append_to(message);
  return message;
}

AnswerFault fault_of(const AnswerFrame& frame) {
  if (frame.malformed) return {AnswerFault::Kind::kMalformed, 0, "it is not what an answer looks like"};
  return {AnswerFault::Kind::kError, frame.error.status, message_of(frame.error)};
}

class OpenAiReader final : public AnswerReader {
 public:
  explicit OpenAiReader(const Call& call)
      : hide_usage_(call.request.stream() && !call.request.include_usage()),
        meter_(call.request.prompt_tokens()) {}

  void append(std::string_view bytes) override { events_.append(bytes); }

  std::expected<std::optional<StreamPiece>, AnswerFault> next() override {
    for (;;) {
      const std::optional<SseEvent> event = events_.next();
      if (!event) {
        if (events_.failed())
          return std::unexpected(AnswerFault{AnswerFault::Kind::kMalformed, 0, "an event is too large"});
        return std::nullopt;
      }
      auto piece = read(*event);
      if (!piece) return std::unexpected(std::move(piece.error()));
      if (!piece->events.empty() || piece->done) return *piece;
    }
  }

  std::expected<StreamPiece, AnswerFault> end() override {
    // An event that ends with the body, without a blank line, counts for nothing (WHATWG HTML, 9.2.6), but
    // some servers end so behind the last one.
    events_.finish();
    if (finished_) return StreamPiece{.events = kDoneEvent, .content = false, .done = true};
    return std::unexpected(AnswerFault{AnswerFault::Kind::kCut, 0, "the stream stopped before its end"});
  }

  std::expected<void, AnswerFault> whole(std::string& body) override {
    const AnswerFrame frame = read_answer(body);
    if (frame.usage) meter_.tell(*frame.usage);
    if (frame.malformed || frame.is_error) return std::unexpected(fault_of(frame));
    if (frame.choices == 0)
      return std::unexpected(AnswerFault{AnswerFault::Kind::kEmpty, 0, "the answer has nothing in it"});
    meter_.count_content(frame.content_bytes);
    return {};
  }

  Usage usage() const noexcept override { return meter_.usage(); }

 private:
  std::expected<StreamPiece, AnswerFault> read(const SseEvent& event) {
    if (!event.has_data) return StreamPiece{.events = event.raw, .content = false, .done = false};
    const AnswerFrame frame = read_answer_frame(event.data);
    if (frame.done) return StreamPiece{.events = event.raw, .content = false, .done = true};
    if (frame.malformed || frame.is_error) return std::unexpected(fault_of(frame));
    if (frame.usage) meter_.tell(*frame.usage);
    meter_.count_content(frame.content_bytes);
    finished_ = finished_ || !frame.finish_reason.empty();
    if (frame.is_usage_only() && hide_usage_)
      return StreamPiece{.events = {}, .content = false, .done = false};
    // An end without content is content too: there are answers that say nothing.
    return StreamPiece{.events = hide_usage_ ? without(frame.null_usage, event) : event.raw,
                       .content = frame.content || !frame.finish_reason.empty(),
                       .done = false};
  }

  // The event as it came, but for `part` of its data. An event with several lines of data stays as it is: its
  // data lie elsewhere.
  std::string_view without(std::string_view part, const SseEvent& event) {
    const auto inside = [&event](const char* at) {
      return std::less_equal<>()(event.raw.data(), at) &&
             std::less<>()(at, event.raw.data() + event.raw.size());
    };
    if (part.empty() || !inside(part.data())) return event.raw;
    edited_.assign(event.raw.data(), part.data());
    edited_.append(part.data() + part.size(), event.raw.data() + event.raw.size());
    return edited_;
  }

  SseReader events_;
  std::string edited_;
  const bool hide_usage_;
  UsageMeter meter_;
  bool finished_ = false;  // a finish reason was here
};

class OpenAiDialect final : public Dialect {
 public:
  explicit OpenAiDialect(OpenAiSettings settings) : settings_(settings) {}

  Status prepare(const Call& call, const TargetAddress& target, WireRequest& request) const override {
    const ChatRequest& asked = call.request;
    std::string model;
    JsonWriter(model).string(target.model.empty() ? call.model : target.model);
    std::array<JsonEdit, 2> edits = {JsonEdit{"model", model}, JsonEdit{"stream_options", std::nullopt}};
    std::size_t count = 1;
    std::string options;
    if (!settings_.stream_options) {
      ++count;  // without a value: there is to be none
    } else if (asked.stream() && !asked.include_usage()) {
      options = asked.stream_options_with_usage();
      edits[count++].value = options;
    }
    asked.members().splice({edits.data(), count}, request.body);
    begin_head(call, target, path_of(call.operation), request.head);
    if (!target.key.empty()) add_header("Authorization", fmt::format("Bearer {}", target.key), request.head);
    end_head(request.body.size(), request.head);
    return {};
  }

  std::unique_ptr<AnswerReader> reader(const Call& call) const override {
    return std::make_unique<OpenAiReader>(call);
  }

  std::string refusal(unsigned status, std::string_view body, std::string& message) const override {
    const AnswerFrame frame = read_answer(body);
    if (!frame.malformed && frame.is_error) message = message_of(frame.error);
    if (message.empty()) message = "the provider gave no reason";
    // What is in OpenAI's shape goes through; what is not is put into it.
    JsonMembers members;
    if (members.parse(body) && members.find("error") != nullptr &&
        members.find("error")->value.starts_with('{'))
      return std::string(body);
    return error_body(status, message);
  }

  std::string_view health_path() const noexcept override { return "/models"; }
  std::string_view models_path() const noexcept override { return "/models"; }
  bool read_models(std::string_view body, std::vector<std::string>& names) const override {
    return append_names(body, "data", "id", names);
  }

 private:
  const OpenAiSettings settings_;
};

}  // namespace

std::unique_ptr<const Dialect> make_openai_dialect(OpenAiSettings settings) {
  return std::make_unique<OpenAiDialect>(settings);
}

}  // namespace waybill::upstream
