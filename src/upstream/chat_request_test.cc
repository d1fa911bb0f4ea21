#include "upstream/chat_request.h"

#include <string>

#include <gtest/gtest.h>

namespace waybill::upstream {
namespace {

ChatRequest chat(std::string_view body) {
  ChatRequest request;
  const Status status = request.parse(Operation::kChat, body);
  EXPECT_TRUE(status) << body << ": " << (status ? "" : status.error().message);
  return request;
}

std::string last_text(const ChatRequest& request) {
  std::string text;
  request.append_last_user_text(text);
  return text;
}

TEST(ChatRequest, ReadsWhatTheGatewayNeeds) {
  const std::string body =
      R"({"messages":[{"role":"system","content":"be brief"},{"role":"user","content":"hi \"you\"\n\u00fc"}],)"
      R"("model":"gpt-4o","stream":true,"stream_options":{"include_usage":true,"x":1},"max_tokens":5,)"
      R"("max_completion_tokens":64,"n":2,"unknown":{"a":[1]}})";
  const ChatRequest request = chat(body);
  EXPECT_EQ(request.model(), "gpt-4o");
  EXPECT_TRUE(request.stream());
  EXPECT_TRUE(request.include_usage());
  EXPECT_EQ(request.max_tokens(), 64U);
  EXPECT_EQ(request.answers(), 2U);
  EXPECT_EQ(last_text(request), "hi \"you\"\n\u00fc");
  EXPECT_NE(request.conversation(), 0U);
}

TEST(ChatRequest, ReadsTheSameHoweverNamesAreSpelled) {
  const std::string body =
      R"({"mod\u0065l":"a\u0062c","messages":[{"r\u006fle":"user","cont\u0065nt":"x"}],"model":"d\u0065f"})";
  const ChatRequest request = chat(body);
  EXPECT_EQ(request.model(), "def");
  EXPECT_EQ(last_text(request), "x");
}

TEST(ChatRequest, TheModelsNameOutlivesAReuseOfTheRequest) {
  ChatRequest request;
  const std::string first = R"({"model":"\u0061","messages":[{"role":"user","content":"x"}]})";
  const std::string second = R"({"model":"b","messages":[{"role":"user","content":"y"}]})";
  ASSERT_TRUE(request.parse(Operation::kChat, first));
  ASSERT_TRUE(request.parse(Operation::kChat, second));
  EXPECT_EQ(request.model(), "b");
  EXPECT_EQ(last_text(request), "y");
  EXPECT_FALSE(request.stream());
}

TEST(ChatRequest, NullMeansNotSaid) {
  const ChatRequest request = chat(
      R"({"model":"m","messages":[{"role":"user","content":null}],"stream":null,"stream_options":null,"max_tokens":null,"n":null})");
  EXPECT_FALSE(request.stream());
  EXPECT_EQ(request.max_tokens(), 0U);
  EXPECT_EQ(request.answers(), 1U);
  EXPECT_EQ(last_text(request), "");
}

TEST(ChatRequest, TakesTextFromPartsAndTheLastUserMessage) {
  const std::string body =
      R"({"model":"m","messages":[{"role":"user","content":"first"},)"
      R"({"role":"user","content":[{"type":"text","text":"look\n"},{"type":"image_url","image_url":{"url":"data:AAAA"}},)"
      R"({"text":"here","type":"text"}]},{"role":"assistant","content":null,"tool_calls":[{"id":"1"}]},)"
      R"({"role":"tool","content":"42"}]})";
  const ChatRequest request = chat(body);
  EXPECT_EQ(last_text(request), "look\n\nhere");
  std::vector<Turn> turns;
  request.append_turns(turns);
  ASSERT_EQ(turns.size(), 4U);
  EXPECT_EQ(turns[0].text, "first");
  EXPECT_EQ(turns[2].role, "assistant");
  EXPECT_EQ(turns[2].text, "");
  EXPECT_EQ(turns[3].text, "42");
}

TEST(ChatRequest, KnowsAConversationByItsBeginning) {
  const auto with = [](std::string_view messages) {
    const std::string body = R"({"model":"m","messages":[)" + std::string(messages) + "]}";
    return chat(body).conversation();
  };
  const std::string system = R"({"role":"system","content":"s"},)";
  const std::uint64_t first = with(system + R"({"role":"user","content":"a"})");
  EXPECT_EQ(
      with(
          system +
          R"({"role":"user","content":"a"},{"role":"assistant","content":"b"},{"role":"user","content":"c"})"),
      first);
  EXPECT_EQ(with(system + R"({"content":[{"type":"text","text":"a"}],"role":"user"})"), first);
  EXPECT_NE(with(system + R"({"role":"user","content":"d"})"), first);
  EXPECT_NE(with(R"({"role":"user","content":"a"})"), first);
  EXPECT_NE(with(R"({"role":"user","content":[{"type":"image_url","image_url":{"url":"x"}}]})"),
            with(R"({"role":"user","content":[{"type":"image_url","image_url":{"url":"y"}}]})"));
}

TEST(ChatRequest, EstimatesPromptTokens) {
  const auto tokens = [](std::string_view content, std::string_view more = "") {
    const std::string body = R"({"model":"m","messages":[{"role":"user","content":)" + std::string(content) +
                             "}]" + std::string(more) + "}";
    return chat(body).prompt_tokens();
  };
  const std::uint32_t none = tokens("\"\"");
  EXPECT_EQ(tokens("\"" + std::string(4000, 'x') + "\""), none + 1000);
  EXPECT_EQ(tokens("\"\"", R"(,"tools":)" + ("[\"" + std::string(396, 'x') + "\"]")), none + 100);
  const std::string image =
      R"([{"type":"image_url","image_url":{"url":"data:)" + std::string(1'000'000, 'A') + "\"}}]";
  EXPECT_EQ(tokens(image), none + 800);
}

TEST(ChatRequest, ErrorsNameTheField) {
  struct Case {
    const char* body;
    const char* field;
  };
  const char* const kBad[] = {"", "[]", "{", R"({"model":"m","messages":[{"role":"user"}]}x)"};
  for (const char* body : kBad) {
    ChatRequest request;
    const Status status = request.parse(Operation::kChat, body);
    ASSERT_FALSE(status) << body;
    EXPECT_EQ(status.error().code, ErrorCode::kInvalidInput);
  }
  for (const Case& one : {
           Case{R"({"messages":[{}]})", "model"},
           Case{R"({"model":null,"messages":[{}]})", "model"},
           Case{R"({"model":"","messages":[{}]})", "model"},
           Case{R"({"model":3,"messages":[{}]})", "model"},
           Case{R"({"model":"m"})", "messages"},
           Case{R"({"model":"m","messages":null})", "messages"},
           Case{R"({"model":"m","messages":"hi"})", "messages"},
           Case{R"({"model":"m","messages":[]})", "messages"},
           Case{R"({"model":"m","messages":[{},"x"]})", "messages[1]"},
           Case{R"({"model":"m","messages":[{}],"stream":"yes"})", "stream"},
           Case{R"({"model":"m","messages":[{}],"stream_options":true})", "stream_options"},
           Case{R"({"model":"m","messages":[{}],"stream_options":{"include_usage":1}})",
                "stream_options.include_usage"},
           Case{R"({"model":"m","messages":[{}],"max_tokens":"5"})", "max_tokens"},
           Case{R"({"model":"m","messages":[{}],"max_completion_tokens":1.5})", "max_completion_tokens"},
           Case{R"({"model":"m","messages":[{}],"n":0})", "n"},
       }) {
    ChatRequest request;
    const Status status = request.parse(Operation::kChat, one.body);
    ASSERT_FALSE(status) << one.body;
    EXPECT_EQ(status.error().code, ErrorCode::kInvalidInput);
    EXPECT_EQ(status.error().field, one.field) << one.body;
  }
}

TEST(ChatRequest, NegativeMaxTokensMeanNoLimit) {
  EXPECT_EQ(chat(R"({"model":"m","messages":[{}],"max_tokens":-1})").max_tokens(), 0U);
}

TEST(ChatRequest, ReadsCompletionsAndEmbeddings) {
  ChatRequest request;
  ASSERT_TRUE(
      request.parse(Operation::kCompletions, R"({"model":"m","prompt":["one","two"],"max_tokens":3})"));
  EXPECT_EQ(last_text(request), "one");
  EXPECT_EQ(request.max_tokens(), 3U);
  ASSERT_TRUE(request.parse(Operation::kCompletions, R"({"model":"m","prompt":[[1,2,3],[4]]})"));
  EXPECT_EQ(request.prompt_tokens(), 4U);
  EXPECT_EQ(last_text(request), "");
  ASSERT_TRUE(request.parse(Operation::kCompletions, R"({"model":"m"})"));
  ASSERT_TRUE(request.parse(Operation::kEmbeddings, R"({"model":"m","input":"text 123"})"));
  EXPECT_EQ(request.prompt_tokens(), 2U);
  EXPECT_EQ(last_text(request), "text 123");
  const Status missing = request.parse(Operation::kEmbeddings, R"({"model":"m"})");
  ASSERT_FALSE(missing);
  EXPECT_EQ(missing.error().field, "input");
  const Status wrong = request.parse(Operation::kEmbeddings, R"({"model":"m","input":5})");
  ASSERT_FALSE(wrong);
  EXPECT_EQ(wrong.error().field, "input");
}

TEST(ChatRequest, AsksForUsageAndKeepsOtherOptions) {
  EXPECT_EQ(chat(R"({"model":"m","messages":[{}]})").stream_options_with_usage(),
            R"({"include_usage":true})");
  EXPECT_EQ(chat(R"({"model":"m","messages":[{}],"stream_options":{"include_obfuscation":false}})")
                .stream_options_with_usage(),
            R"({"include_obfuscation":false,"include_usage":true})");
  EXPECT_EQ(chat(R"({"model":"m","messages":[{}],"stream_options":{"include_usage":false}})")
                .stream_options_with_usage(),
            R"({"include_usage":true})");
}

}  // namespace
}  // namespace waybill::upstream
