// Answers of providers, of every kind: the first byte says in pieces of which size a stream comes. Cut into
// pieces or whole it reads the same, and whatever a client is told is JSON.
#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "base/check.h"
#include "upstream/fake_call_test.h"
#include "upstream/json_scanner.h"
#include "upstream/ollama/ollama.h"
#include "upstream/openai/openai.h"

namespace {

using namespace waybill;
using namespace waybill::upstream;

struct Read {
  std::size_t bytes = 0;  // of events; the moment that they tell has always the same length
  bool done = false;
  std::optional<AnswerFault::Kind> fault;
  Usage usage;

  friend bool operator==(const Read&, const Read&) = default;
};

bool is_json(std::string_view text) {
  JsonScanner json(text);
  json.skip();
  return json.at_end();
}

void check_events(std::string_view events) {
  while (!events.empty()) {
    const std::size_t end = events.find("\n\n");
    WAYBILL_CHECK(end != std::string_view::npos && events.starts_with("data: "));
    const std::string_view data = events.substr(6, end - 6);
    WAYBILL_CHECK(data == "[DONE]" || is_json(data));
    events.remove_prefix(end + 2);
  }
}

Read read_stream(const Dialect& dialect, const Call& call, std::string_view wire, std::size_t step,
                 bool translated) {
  Read read;
  const std::unique_ptr<AnswerReader> reader = dialect.reader(call);
  const auto take = [&](const auto& piece) {
    if (!piece) {
      read.fault = piece.error().kind;
      return;
    }
    read.bytes += piece->events.size();
    read.done = piece->done;
    if (translated) check_events(piece->events);
  };
  while (!wire.empty() && !read.done && !read.fault) {
    reader->append(wire.substr(0, step));
    wire.remove_prefix(std::min(step, wire.size()));
    while (!read.done && !read.fault) {
      auto piece = reader->next();
      if (piece && !*piece) break;
      take(piece ? std::expected<StreamPiece, AnswerFault>(**piece) : std::unexpected(piece.error()));
    }
  }
  if (!read.done && !read.fault) take(reader->end());
  read.usage = reader->usage();
  return read;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const std::unique_ptr<const Dialect> dialects[] = {make_openai_dialect(), make_ollama_dialect({})};
  static const FakeCall chat(
      Operation::kChat,
      R"({"model":"m","stream":true,"stream_options":{"include_usage":true},"messages":[{}]})");
  static const FakeCall completion(Operation::kCompletions, R"({"model":"m","stream":true,"prompt":"p"})");
  static const FakeCall embeddings(Operation::kEmbeddings,
                                   R"({"model":"m","input":"i","encoding_format":"base64"})");
  if (size == 0) return 0;
  const std::size_t step = std::size_t{1} + data[0] % 64;
  const std::string_view wire(reinterpret_cast<const char*>(data) + 1, size - 1);
  for (const auto& dialect : dialects) {
    const bool translated = dialect == dialects[1];
    for (const FakeCall* fake : {&chat, &completion}) {
      WAYBILL_CHECK(read_stream(*dialect, fake->call(), wire, wire.size() + 1, translated) ==
                    read_stream(*dialect, fake->call(), wire, step, translated));
    }
    for (const FakeCall* fake : {&chat, &completion, &embeddings}) {
      std::string body(wire);
      if (dialect->reader(fake->call())->whole(body)) WAYBILL_CHECK(is_json(body));
    }
    std::string message;
    WAYBILL_CHECK(is_json(dialect->refusal(400, wire, message)) && !message.empty());
  }
  return 0;
}
