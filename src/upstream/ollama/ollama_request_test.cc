#include "upstream/ollama/ollama_request.h"

#include <boost/json.hpp>
#include <gtest/gtest.h>

#include "upstream/fake_call_test.h"
#include "upstream/ollama/ollama.h"

namespace waybill::upstream {
namespace {

namespace json = boost::json;

constexpr const char* kHi = R"("messages":[{"role":"user","content":"hi"}])";

Result<json::object> sent(Operation operation, const std::string& body, const OllamaSettings& settings = {}) {
  const FakeCall fake(operation, body);
  if (!fake.status()) return std::unexpected(fake.status().error());
  std::string out;
  if (Status written = write_ollama_request(operation, fake.call().request, "theirs", settings, out);
      !written)
    return std::unexpected(written.error());
  return json::parse(out).as_object();
}
json::object chat(const std::string& fields, const OllamaSettings& settings = {}) {
  auto made = sent(Operation::kChat, R"({"model":"m",)" + fields + "}", settings);
  EXPECT_TRUE(made) << made.error().message;
  return made.value_or(json::object());
}
// The field that a request is refused for, with "!" where the request is wrong.
std::string refused(Operation operation, const std::string& fields) {
  const auto made = sent(operation, R"({"model":"m",)" + fields + "}");
  if (made) return "taken";
  EXPECT_NE(made.error().message.find(made.error().field), std::string::npos) << made.error().message;
  return made.error().field + (made.error().code == ErrorCode::kUnsupported ? "" : "!");
}
std::string refused_chat(const std::string& field) {
  return refused(Operation::kChat, std::string(kHi) + "," + field);
}
std::string refused_message(const std::string& message) {
  return refused(Operation::kChat, R"("messages":[)" + message + "]");
}

TEST(OllamaRequest, TranslatesSampling) {
  const json::object body =
      chat(std::string(kHi) +
           R"(,"temperature":0.5,"top_p":0.9,"seed":3,"stop":["a","b"],"max_completion_tokens":9,
       "presence_penalty":1,"frequency_penalty":-1,"top_k":5,"user":"u","store":true,"metadata":{}, "n":1,
       "logprobs":false,"logit_bias":{},"parallel_tool_calls":true,"temperature":0.25)");
  EXPECT_EQ(body.at("options"), json::parse(R"({"temperature":0.25,"top_p":0.9,"seed":3,"stop":["a","b"],
       "num_predict":9,"presence_penalty":1,"frequency_penalty":-1,"top_k":5})"));
  EXPECT_EQ(body.size(), 4U) << json::serialize(body);
}

TEST(OllamaRequest, TheBodysOwnWordsGoFirst) {
  const OllamaSettings settings = {.keep_alive = "10m", .num_ctx = 4096};
  const json::object body = chat(
      std::string(kHi) +
          R"(,"temperature":1,"top_p":0.5,"keep_alive":-1,"options":{"temperature":0,"num_ctx":8192,"mirostat":1})",
      settings);
  EXPECT_EQ(body.at("options"), json::parse(R"({"temperature":0,"num_ctx":8192,"mirostat":1,"top_p":0.5})"));
  EXPECT_EQ(body.at("keep_alive"), -1);
  EXPECT_EQ(chat(kHi, settings).at("keep_alive"), "10m");
  EXPECT_EQ(chat(kHi, {.keep_alive = "-1"}).at("keep_alive"), -1);
  EXPECT_FALSE(chat(kHi).contains("keep_alive"));
  EXPECT_FALSE(chat(kHi).contains("options"));
}

TEST(OllamaRequest, StreamsOnlyWhenToldTo) {
  EXPECT_EQ(chat(kHi).at("stream"), false);
  EXPECT_EQ(chat(std::string(kHi) + R"(,"stream":true)").at("stream"), true);
}

TEST(OllamaRequest, TranslatesFormatsAndThinking) {
  const auto with = [](const std::string& field) { return chat(std::string(kHi) + "," + field); };
  EXPECT_EQ(with(R"("response_format":{"type":"json_object"})").at("format"), "json");
  EXPECT_FALSE(with(R"("response_format":{"type":"text"})").contains("format"));
  EXPECT_EQ(with(R"("reasoning_effort":"high")").at("think"), "high");
  EXPECT_EQ(with(R"("reasoning_effort":"none")").at("think"), false);
  EXPECT_EQ(with(R"("reasoning_effort":"high","think":false)").at("think"), false);
  EXPECT_EQ(refused_chat(R"("response_format":{"type":"grammar"})"), "response_format.type");
  EXPECT_EQ(refused_chat(R"("response_format":{"type":"json_schema"})"),
            "response_format.json_schema.schema!");
  EXPECT_EQ(refused_chat(R"("reasoning_effort":"much")"), "reasoning_effort");
}

TEST(OllamaRequest, TranslatesMessages) {
  const json::object body = chat(R"("messages":[
      {"role":"developer","content":"be \"brief\""},
      {"role":"assistant","reasoning_content":"hm","content":"a","tool_calls":[
        {"id":"0","type":"function","function":{"name":"f","arguments":""}},
        {"type":"function","function":{"name":"g","arguments":{"x":1}}}]},
      {"role":"tool","tool_call_id":"0","content":[{"type":"text","text":"r"}]},
      {"role":"tool","tool_call_id":"9","name":"h","content":"s"},
      {"role":"user","content":["a",{"type":"image_url","image_url":"data:image\/png;base64,AAAA"}]}])");
  EXPECT_EQ(body.at("messages"), json::parse(R"([
      {"role":"system","content":"be \"brief\""},
      {"role":"assistant","content":"a","thinking":"hm","tool_calls":[
        {"id":"0","function":{"index":0,"name":"f","arguments":{}}},{"function":{"index":1,"name":"g","arguments":{"x":1}}}]},
      {"role":"tool","content":"r","tool_name":"f","tool_call_id":"0"},
      {"role":"tool","content":"s","tool_name":"h","tool_call_id":"9"},
      {"role":"user","content":"a","images":["AAAA"]}])"));
}

TEST(OllamaRequest, OffersToolsUnlessNoneIsToBeUsed) {
  const std::string tools =
      std::string(kHi) + R"(,"tools":[{"type":"function","function":{"name":"f"}}],"tool_choice":)";
  EXPECT_TRUE(chat(tools + "\"auto\"").contains("tools"));
  EXPECT_FALSE(chat(tools + "\"none\"").contains("tools"));
  EXPECT_EQ(refused(Operation::kChat, tools + "\"required\""), "tool_choice");
  EXPECT_EQ(refused(Operation::kChat, tools + R"({"type":"function","function":{"name":"f"}})"),
            "tool_choice");
  EXPECT_EQ(refused_chat(R"("tools":[{"type":"web_search"}])"), "tools[0]");
}

TEST(OllamaRequest, RefusesWhatWouldMeanSomethingElse) {
  EXPECT_EQ(refused_chat(R"("n":2)"), "n");
  EXPECT_EQ(refused_chat(R"("logprobs":true)"), "logprobs");
  EXPECT_EQ(refused_chat(R"("logit_bias":{"1":1})"), "logit_bias");
  EXPECT_EQ(refused_chat(R"("audio":{"voice":"x"})"), "audio");
  EXPECT_EQ(refused_chat(R"("modalities":["text","audio"])"), "modalities");
  EXPECT_EQ(refused_chat(R"("modalities":["text"])"), "taken");
  EXPECT_EQ(refused_chat(R"("functions":[{"name":"f"}])"), "functions");
  EXPECT_EQ(refused_chat(R"("options":[1])"), "options!");
  EXPECT_EQ(refused_message(
                R"({"role":"user","content":[{"type":"image_url","image_url":{"url":"https://a/b.png"}}]})"),
            "messages[0].content[0].image_url");
  EXPECT_EQ(refused_message(R"({"role":"user","content":[{"type":"input_audio","input_audio":{}}]})"),
            "messages[0].content[0].input_audio");
  EXPECT_EQ(refused_message(R"({"role":"user","content":[{"type":"file","file":{}}]})"),
            "messages[0].content[0]");
  EXPECT_EQ(refused_message(R"({"content":"a"})"), "messages[0].role!");
  EXPECT_EQ(refused_message(R"({"role":"user","content":1})"), "messages[0].content!");
  EXPECT_EQ(
      refused_message(R"({"role":"assistant","tool_calls":[{"function":{"name":"f","arguments":"{"}}]})"),
      "messages[0].tool_calls[0].function.arguments!");
}

TEST(OllamaRequest, TakesOnePromptAsItIs) {
  const auto body = sent(Operation::kCompletions, R"({"model":"m","prompt":["a b"],"max_tokens":2})");
  ASSERT_TRUE(body);
  EXPECT_EQ(body->at("prompt"), "a b");
  EXPECT_EQ(body->at("raw"), true);
  const auto filled = sent(Operation::kCompletions, R"({"model":"m","prompt":"a","suffix":"b"})");
  ASSERT_TRUE(filled);
  EXPECT_FALSE(filled->contains("raw"));
  EXPECT_EQ(filled->at("suffix"), "b");
  for (const char* prompt : {R"(["a","b"])", "[1,2]", "[[1]]", "[]"})
    EXPECT_EQ(refused(Operation::kCompletions, std::string(R"("prompt":)") + prompt), "prompt") << prompt;
  EXPECT_EQ(refused(Operation::kCompletions, R"("prompt":"a","echo":true)"), "echo");
  EXPECT_EQ(refused(Operation::kCompletions, R"("prompt":"a","best_of":2)"), "best_of");
  EXPECT_EQ(refused(Operation::kCompletions, R"("prompt":"a","logprobs":0)"), "logprobs");
}

TEST(OllamaRequest, EmbedsTextsOnly) {
  const auto body =
      sent(Operation::kEmbeddings, R"({"model":"m","input":"a","dimensions":64,"encoding_format":"base64"})");
  ASSERT_TRUE(body);
  EXPECT_EQ(*body, json::parse(R"({"model":"theirs","input":"a","dimensions":64})"));
  EXPECT_EQ(refused(Operation::kEmbeddings, R"("input":[1,2])"), "input");
  EXPECT_EQ(refused(Operation::kEmbeddings, R"("input":[[1],[2]])"), "input");
  EXPECT_EQ(refused(Operation::kEmbeddings, R"("messages":[])"), "messages");
}

TEST(OllamaAnswer, PacksEmbeddingsForWhoWantsThemSo) {
  const std::string body = R"({"model":"m","input":"a","encoding_format":"base64"})";
  const FakeCall fake(Operation::kEmbeddings, body);
  const auto reader = make_ollama_dialect({})->reader(fake.call());
  std::string answer = R"({"model":"m","embeddings":[[1,-2.5e-1]],"prompt_eval_count":1})";
  ASSERT_TRUE(reader->whole(answer).has_value());
  EXPECT_EQ(json::parse(answer).at("data").at(0).at("embedding"), "AACAPwAAgL4=");
  std::string wrong = R"({"model":"m","embeddings":[["x"]]})";
  EXPECT_FALSE(reader->whole(wrong).has_value());
}

}  // namespace
}  // namespace waybill::upstream
