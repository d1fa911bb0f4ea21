// What every kind of provider must do, on examples of its own wire format:
// src/upstream/KIND/testdata/cases.json has the requests that it makes of the questions in
// src/upstream/testdata, and answers with what a client must read in them. A new kind is one line in kKinds,
// and such a file.
#include "upstream/dialect.h"

#include <array>
#include <fstream>
#include <functional>
#include <iterator>
#include <map>
#include <ostream>
#include <set>

#include <boost/json.hpp>
#include <gtest/gtest.h>

#include "upstream/fake_call_test.h"
#include "upstream/ollama/ollama.h"
#include "upstream/openai/openai.h"

namespace waybill::upstream {
namespace {

namespace json = boost::json;

struct Kind {
  const char* name;
  std::function<std::unique_ptr<const Dialect>()> make;

  friend std::ostream& operator<<(std::ostream& out, const Kind& kind) { return out << kind.name; }
};

const Kind kKinds[] = {
    {"openai", [] { return make_openai_dialect(); }},
    {"ollama", [] { return make_ollama_dialect({.keep_alive = "10m", .num_ctx = 4096}); }},
};

// Answers that the examples of each kind must hold.
const std::set<std::string_view> kNeeded = {"chat",
                                            "stream",
                                            "stream_usage",
                                            "stream_reasoning",
                                            "stream_length",
                                            "stream_silent",
                                            "tools",
                                            "tools_stream",
                                            "completion",
                                            "completion_stream",
                                            "embeddings",
                                            "stream_error_first",
                                            "stream_error_later",
                                            "stream_malformed",
                                            "stream_empty",
                                            "stream_cut",
                                            "whole_error",
                                            "whole_malformed",
                                            "whole_empty"};

std::string contents(const std::string& path) {
  std::ifstream file(WAYBILL_SOURCE_DIR "/src/upstream/" + path, std::ios::binary);
  EXPECT_TRUE(file) << path;
  return {std::istreambuf_iterator<char>(file), {}};
}

std::string text_at(const json::object& object, std::string_view name) {
  const json::value* value = object.if_contains(name);
  return value != nullptr && value->is_string() ? std::string(value->as_string()) : std::string();
}

// One question, asked.
struct Asked {
  explicit Asked(const json::object& question, bool embeds, bool completes)
      : body(json::serialize(question)),
        fake(embeds      ? Operation::kEmbeddings
             : completes ? Operation::kCompletions
                         : Operation::kChat,
             body) {
    EXPECT_TRUE(fake.status()) << body;
  }
  const std::string body;
  FakeCall fake;
};

std::unique_ptr<Asked> ask(std::string_view name) {
  static const json::object questions = json::parse(contents("testdata/questions.json")).as_object();
  return std::make_unique<Asked>(questions.at(name).as_object(), name == "embeddings",
                                 name.starts_with("completion"));
}

// What came of reading a stream.
struct Read {
  std::string events;
  std::string before_content;  // of them, those that could still be taken back
  bool done = false;
  std::optional<AnswerFault> fault;
  Usage usage;
};

// Gives the wire's bytes in pieces, the first of `first` bytes, the others of `step`.
Read read_stream(const Dialect& dialect, const Call& call, std::string_view wire, std::size_t first,
                 std::size_t step) {
  Read read;
  const std::unique_ptr<AnswerReader> reader = dialect.reader(call);
  bool content = false;
  const auto take = [&](const StreamPiece& piece) {
    if (!content && !piece.content) read.before_content += piece.events;
    content = content || piece.content;
    read.events += piece.events;
    read.done = piece.done;
  };
  const auto take_all = [&] {
    while (!read.done && !read.fault) {
      auto piece = reader->next();
      if (!piece) {
        read.fault = piece.error();
      } else if (*piece) {
        take(**piece);
      } else {
        break;
      }
    }
  };
  for (std::size_t size = first; !wire.empty() && !read.done && !read.fault; size = step) {
    reader->append(wire.substr(0, size));
    wire.remove_prefix(std::min(size, wire.size()));
    take_all();
  }
  if (!read.done && !read.fault) {
    if (const auto last = reader->end()) {
      take(*last);
    } else {
      read.fault = last.error();
    }
  }
  read.usage = reader->usage();
  return read;
}

// The moment of an answer is in its frames.
std::string without_time(std::string events) {
  constexpr std::string_view kName = "\"created\":";
  for (std::size_t at = 0; (at = events.find(kName, at)) != std::string::npos;) {
    at += kName.size();
    events.erase(at, events.find_first_not_of("0123456789", at) - at);
  }
  return events;
}

// An answer as a client understands it.
struct Understood {
  std::string text, reasoning, finish;
  std::map<std::int64_t, std::pair<std::string, std::string>> tools;  // name and arguments
  std::set<std::string> ids, tool_ids;
  std::optional<Usage> usage;
  bool usage_last = false;

  void take_message(const json::object& message) {
    text += text_at(message, "content");
    reasoning += text_at(message, "reasoning_content");
    const json::value* calls = message.if_contains("tool_calls");
    if (calls == nullptr) return;
    std::int64_t position = 0;
    for (const json::value& each : calls->as_array()) {
      const json::object& call = each.as_object();
      const json::value* index = call.if_contains("index");
      auto& [name, arguments] = tools[index == nullptr ? position++ : index->as_int64()];
      const json::object& function = call.at("function").as_object();
      name += text_at(function, "name");
      arguments += text_at(function, "arguments");
      if (!text_at(call, "id").empty()) tool_ids.insert(text_at(call, "id"));
    }
  }
  void take_choice(const json::object& choice) {
    for (const std::string_view name : {"delta", "message"}) {
      if (const json::value* message = choice.if_contains(name)) take_message(message->as_object());
    }
    text += text_at(choice, "text");
    if (const std::string reason = text_at(choice, "finish_reason"); !reason.empty()) {
      EXPECT_EQ(finish, "");
      finish = reason;
    }
  }
  void take(const json::object& frame) {
    ids.insert(text_at(frame, "id"));
    usage_last = false;
    for (const json::value& choice : frame.at("choices").as_array()) take_choice(choice.as_object());
    const json::value* told = frame.if_contains("usage");
    if (told == nullptr || !told->is_object()) return;
    usage_last = frame.at("choices").as_array().empty();
    const auto count = [told](const char* name) {
      return static_cast<std::uint32_t>(told->at(name).as_int64());
    };
    usage =
        Usage{.prompt = count("prompt_tokens"), .cached_prompt = 0, .completion = count("completion_tokens")};
    EXPECT_EQ(count("total_tokens"), usage->prompt + usage->completion);
  }
};

std::vector<std::string> data_of(std::string_view events) {
  std::vector<std::string> data;
  while (!events.empty()) {
    const std::size_t end = events.find("\n\n");
    EXPECT_NE(end, std::string_view::npos) << "an event without its end";
    const std::string_view event = events.substr(0, end);
    EXPECT_TRUE(event.starts_with("data: ")) << event;
    data.emplace_back(event.substr(6));
    events.remove_prefix(std::min(events.size(), end + 2));
  }
  return data;
}

Usage usage_in(const json::object& expected) {
  const json::array& counts = expected.at("usage").as_array();
  return {.prompt = static_cast<std::uint32_t>(counts.at(0).as_int64()),
          .cached_prompt = 0,
          .completion = static_cast<std::uint32_t>(counts.at(1).as_int64())};
}

AnswerFault::Kind fault_kind(std::string_view name) {
  if (name == "error") return AnswerFault::Kind::kError;
  if (name == "empty") return AnswerFault::Kind::kEmpty;
  if (name == "cut") return AnswerFault::Kind::kCut;
  EXPECT_EQ(name, "malformed");
  return AnswerFault::Kind::kMalformed;
}

void expect_fault(const AnswerFault& fault, const json::object& expected) {
  EXPECT_EQ(fault.kind, fault_kind(text_at(expected, "fault")));
  EXPECT_FALSE(fault.message.empty());
  if (expected.contains("message")) {
    EXPECT_EQ(fault.message, text_at(expected, "message"));
  }
}

void expect_understood(const Understood& got, const json::object& expected) {
  EXPECT_EQ(got.text, text_at(expected, "text"));
  EXPECT_EQ(got.reasoning, text_at(expected, "reasoning"));
  EXPECT_EQ(got.finish, text_at(expected, "finish"));
  EXPECT_EQ(got.ids.size(), 1U);
  const json::value* tools = expected.if_contains("tools");
  ASSERT_EQ(got.tools.size(), tools == nullptr ? 0U : tools->as_array().size());
  EXPECT_EQ(got.tool_ids.size(), got.tools.size());
  for (const auto& [index, tool] : got.tools) {
    const json::object& wanted = tools->as_array().at(static_cast<std::size_t>(index)).as_object();
    EXPECT_EQ(tool.first, text_at(wanted, "name"));
    EXPECT_EQ(json::parse(tool.second), wanted.at("arguments"));
  }
}

class Conformance : public ::testing::TestWithParam<Kind> {
 protected:
  void SetUp() override {
    dialect_ = GetParam().make();
    cases_ = json::parse(contents(GetParam().name + std::string("/testdata/cases.json"))).as_object();
  }
  // Each answer with its bytes.
  void for_each_answer(bool streams,
                       const std::function<void(const json::object&, const std::string&)>& check) {
    for (const json::value& each : cases_.at("answers").as_array()) {
      const json::object& example = each.as_object();
      const std::string question = text_at(example, "question");
      if (streams != ask(question)->fake.call().request.stream()) continue;
      const ::testing::ScopedTrace trace(__FILE__, __LINE__, text_at(example, "name"));
      const std::string file = text_at(example, "file");
      check(example, file.empty() ? text_at(example, "wire")
                                  : contents(GetParam().name + std::string("/testdata/") + file));
    }
  }

  std::unique_ptr<const Dialect> dialect_;
  json::object cases_;
};

INSTANTIATE_TEST_SUITE_P(Dialect, Conformance, ::testing::ValuesIn(kKinds),
                         [](const auto& kind) { return std::string(kind.param.name); });

TEST_P(Conformance, HasAnExampleOfEverything) {
  std::set<std::string> names;
  for (const json::value& each : cases_.at("answers").as_array())
    names.insert(text_at(each.as_object(), "name"));
  for (const std::string_view needed : kNeeded) EXPECT_TRUE(names.contains(std::string(needed))) << needed;
  const json::object questions = json::parse(contents("testdata/questions.json")).as_object();
  for (const auto& question : questions) EXPECT_TRUE(cases_.at("sent").as_object().contains(question.key()));
}

TEST_P(Conformance, MakesTheRequest) {
  const TargetAddress target = {.host = "models:8000",
                                .prefix = "/v1",
                                .key = "k-1",
                                .headers = "x-team: a\r\n",
                                .model = "their-model"};
  for (const auto& [question, sent] : cases_.at("sent").as_object()) {
    const ::testing::ScopedTrace trace(__FILE__, __LINE__, std::string(question));
    const auto asked = ask(question);
    WireRequest request;
    ASSERT_TRUE(dialect_->prepare(asked->fake.call(), target, request));
    EXPECT_EQ(json::parse(request.body), sent.at("body")) << request.body;
    const std::string path(sent.at("path").as_string());
    EXPECT_TRUE(request.head.starts_with("POST " + path + " HTTP/1.1\r\n")) << request.head;
    EXPECT_TRUE(request.head.ends_with("\r\n\r\n"));
    const std::string length = "\r\nContent-Length: " + std::to_string(request.body.size()) + "\r\n";
    for (const std::string& header :
         {std::string("\r\nHost: models:8000\r\n"), std::string("\r\nx-team: a\r\n"),
          std::string("\r\nIdempotency-Key: key-1\r\n"), length}) {
      EXPECT_NE(request.head.find(header), std::string::npos) << header;
    }
    EXPECT_NE(request.head.find("k-1"), std::string::npos) << "the key is not sent";
    EXPECT_EQ(request.body.find("k-1"), std::string::npos);
  }
}

TEST_P(Conformance, AsksForWhatTheCallNamesWhereTheTargetDoesNot) {
  const TargetAddress target = {.host = "h", .prefix = {}, .key = {}, .headers = {}, .model = {}};
  WireRequest request;
  ASSERT_TRUE(dialect_->prepare(ask("chat")->fake.call(), target, request));
  EXPECT_EQ(json::parse(request.body).at("model"), "m");
  EXPECT_EQ(request.head.find("Authorization"), std::string::npos);
}

TEST_P(Conformance, RelaysStreamsHoweverTheyAreCut) {
  for_each_answer(true, [this](const json::object& example, const std::string& wire) {
    const auto asked = ask(text_at(example, "question"));
    const Call& call = asked->fake.call();
    const Read whole = read_stream(*dialect_, call, wire, wire.size() + 1, 1);
    const auto same = [&](std::size_t first, std::size_t step) {
      const Read read = read_stream(*dialect_, call, wire, first, step);
      return without_time(read.events) == without_time(whole.events) && read.done == whole.done &&
             read.before_content == whole.before_content &&
             read.fault.has_value() == whole.fault.has_value() &&
             (!read.fault || read.fault->kind == whole.fault->kind) && read.usage == whole.usage;
    };
    for (std::size_t cut = 1; cut < wire.size(); ++cut)
      ASSERT_TRUE(same(cut, wire.size())) << "cut at " << cut;
    for (const std::size_t step : {1U, 2U, 3U, 7U, 64U})
      ASSERT_TRUE(same(step, step)) << "in pieces of " << step;
  });
}

TEST_P(Conformance, TellsStreamsInTheFormatOfOpenAi) {
  for_each_answer(true, [this](const json::object& example, const std::string& wire) {
    const auto asked = ask(text_at(example, "question"));
    const Read read = read_stream(*dialect_, asked->fake.call(), wire, wire.size(), wire.size());
    const bool fails = example.contains("fault");
    ASSERT_EQ(read.fault.has_value(), fails);
    if (fails) expect_fault(*read.fault, example);
    EXPECT_EQ(read.done, !fails);
    std::vector<std::string> data = data_of(read.events);
    if (!fails) {
      ASSERT_FALSE(data.empty());
      EXPECT_EQ(data.back(), "[DONE]");
      data.pop_back();
    }
    Understood got;
    for (const std::string& frame : data) got.take(json::parse(frame).as_object());
    if (!data.empty() &&
        text_at(json::parse(data.front()).as_object(), "object") == "chat.completion.chunk") {
      const json::value first = json::parse(data.front());
      EXPECT_EQ(first.at("choices").at(0).at("delta").at("role"), "assistant");
    }
    if (fails) {
      EXPECT_EQ(got.text, text_at(example, "text"));
      if (got.text.empty()) {
        EXPECT_EQ(read.before_content, read.events) << "it could not be tried elsewhere";
      }
      return;
    }
    expect_understood(got, example);
    EXPECT_EQ(read.usage, usage_in(example));
    EXPECT_NE(read.before_content, read.events);
    // The usage goes to those who asked for it.
    const bool asks = asked->fake.call().request.include_usage();
    EXPECT_EQ(got.usage_last, asks);
    if (asks) {
      EXPECT_EQ(got.usage, usage_in(example));
    }
  });
}

TEST_P(Conformance, NeverTakesAPartOfAStreamForTheWhole) {
  for_each_answer(true, [this](const json::object& example, const std::string& wire) {
    if (example.contains("fault")) return;
    const auto asked = ask(text_at(example, "question"));
    for (std::size_t size = 0; size < wire.size(); ++size) {
      const Read read = read_stream(*dialect_, asked->fake.call(), wire.substr(0, size), wire.size(), 1);
      ASSERT_NE(read.done, read.fault.has_value());
      if (!read.done) continue;
      Understood got;
      std::vector<std::string> data = data_of(read.events);
      for (const std::string& frame : data) {
        if (frame != "[DONE]") got.take(json::parse(frame).as_object());
      }
      ASSERT_EQ(got.finish, text_at(example, "finish")) << "of the first " << size << " bytes";
      ASSERT_EQ(got.text, text_at(example, "text"));
      ASSERT_EQ(data.back(), "[DONE]");
    }
  });
}

TEST_P(Conformance, TellsWholeAnswersInTheFormatOfOpenAi) {
  for_each_answer(false, [this](const json::object& example, const std::string& wire) {
    const auto asked = ask(text_at(example, "question"));
    const std::unique_ptr<AnswerReader> reader = dialect_->reader(asked->fake.call());
    std::string body = wire;
    const auto read = reader->whole(body);
    if (example.contains("fault")) {
      ASSERT_FALSE(read.has_value());
      expect_fault(read.error(), example);
      return;
    }
    ASSERT_TRUE(read.has_value()) << read.error().message;
    EXPECT_EQ(reader->usage().prompt, usage_in(example).prompt);
    EXPECT_EQ(reader->usage().completion, usage_in(example).completion);
    const json::object answer = json::parse(body).as_object();
    if (const json::value* vectors = example.if_contains("vectors")) {
      EXPECT_EQ(text_at(answer, "object"), "list");
      const json::array& data = answer.at("data").as_array();
      ASSERT_EQ(data.size(), vectors->as_array().size());
      for (std::size_t i = 0; i < data.size(); ++i) {
        EXPECT_EQ(data[i].at("index"), i);
        EXPECT_EQ(data[i].at("embedding"), vectors->as_array()[i]);
      }
      EXPECT_EQ(answer.at("usage").at("prompt_tokens"), usage_in(example).prompt);
      return;
    }
    EXPECT_EQ(answer.at("choices").as_array().size(), 1U);
    Understood got;
    got.take(answer);
    expect_understood(got, example);
    EXPECT_EQ(got.usage, usage_in(example));
  });
}

TEST_P(Conformance, EstimatesTheUsageOfABrokenStream) {
  const auto asked = ask("stream");
  for_each_answer(true, [&](const json::object& example, const std::string& wire) {
    if (!example.contains("fault")) return;
    const Read read = read_stream(*dialect_, asked->fake.call(), wire, wire.size(), 1);
    EXPECT_EQ(read.usage.completion > 0, !text_at(example, "text").empty());
    EXPECT_EQ(read.usage.prompt > 0, !text_at(example, "text").empty());
  });
}

TEST_P(Conformance, TellsRefusalsInTheShapeOfOpenAi) {
  for (const json::value& each : cases_.at("refusals").as_array()) {
    const json::object& example = each.as_object();
    std::string message;
    const std::string told = dialect_->refusal(static_cast<unsigned>(example.at("status").as_int64()),
                                               text_at(example, "body"), message);
    EXPECT_EQ(message, text_at(example, "message"));
    const json::value error = json::parse(told).at("error");
    EXPECT_EQ(text_at(error.as_object(), "message"), message);
    EXPECT_TRUE(error.at("type").is_string());
  }
}

TEST_P(Conformance, KnowsWhereItsModelsAre) {
  const json::object& models = cases_.at("models").as_object();
  EXPECT_EQ(dialect_->models_path(), text_at(models, "path"));
  EXPECT_TRUE(dialect_->health_path().starts_with('/'));
  std::vector<std::string> names;
  EXPECT_TRUE(dialect_->read_models(text_at(models, "body"), names));
  EXPECT_EQ(json::value(json::value_from(names)), models.at("names"));
  for (const char* nonsense : {"", "{}", "[]", "{\"data\":1,\"models\":1}", "<html>"})
    EXPECT_FALSE(dialect_->read_models(nonsense, names)) << nonsense;
}

// Providers that are asked for usage say in each frame before the last that there is none yet.
TEST(OpenAiDialect, ShowsNothingOfUsageToThoseWhoDidNotAskForIt) {
  const auto dialect = make_openai_dialect({});
  const std::string wire =
      "id: 1\r\ndata: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"a\"}}],\"usage\":null}\r\n\r\n"
      "data: {\"usage\":null,\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"stop\"}]}\n\n"
      "data: {\"choices\":[],\"usage\":{\"prompt_tokens\":3,\"completion_tokens\":1}}\n\ndata: [DONE]\n\n";
  const std::string shown =
      "id: 1\r\ndata: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"a\"}}]}\r\n\r\n"
      "data: {\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n";
  for (const std::size_t step : {std::size_t{1}, std::size_t{7}, wire.size()}) {
    const Read read = read_stream(*dialect, ask("stream")->fake.call(), wire, step, step);
    EXPECT_EQ(read.events, shown);
    EXPECT_EQ(read.usage.prompt, 3U);
  }
  EXPECT_EQ(read_stream(*dialect, ask("stream_usage")->fake.call(), wire, 7, 7).events, wire);
}

TEST(OpenAiDialect, SendsNoStreamOptionsWhereTheyAreRefused) {
  const auto dialect = make_openai_dialect({.stream_options = false});
  const TargetAddress target = {.host = "h", .prefix = {}, .key = {}, .headers = {}, .model = "theirs"};
  for (const char* question : {"stream", "stream_usage"}) {
    WireRequest request;
    ASSERT_TRUE(dialect->prepare(ask(question)->fake.call(), target, request));
    const json::value body = json::parse(request.body);
    EXPECT_FALSE(body.as_object().contains("stream_options"));
    EXPECT_EQ(body.at("model"), "theirs");
    EXPECT_EQ(body.at("stream"), true);
  }
}

}  // namespace
}  // namespace waybill::upstream
