#include "upstream/answer_frame.h"

#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>

#include <gtest/gtest.h>

namespace waybill::upstream {
namespace {

std::string chunk(std::string_view choice) {
  return R"({"id":"c","object":"chat.completion.chunk","created":1,"model":"m","choices":[{"index":0,)" +
         std::string(choice) + R"(,"logprobs":null}],"usage":null})";
}

TEST(AnswerFrame, KnowsTheEndOfAStream) {
  EXPECT_TRUE(read_answer_frame("[DONE]").done);
  EXPECT_TRUE(read_answer_frame("[DONE] ").done);
  EXPECT_FALSE(read_answer_frame(chunk(R"("delta":{})")).done);
  EXPECT_TRUE(read_answer("[DONE]").malformed);
}

TEST(AnswerFrame, KnowsWhatIsContent) {
  for (const char* choice :
       {R"("delta":{"content":"x"})",
        R"("delta":{"role":"assistant","content":null,"reasoning_content":"hm"})",
        R"("delta":{"tool_calls":[{"index":0,"function":{"arguments":""}}]})", R"("delta":{"refusal":"no"})",
        R"("delta":{"audio":{"data":"AAAA"}})", R"("text":" w")", R"("message":{"content":"x"})",
        R"("delta":{"cont\u0065nt":"x"})", R"("delta":{"function_call":{"name":"f"}})",
        R"("delta":{"content":[{"type":"text","text":"x"}]})"}) {
    const AnswerFrame frame = read_answer_frame(chunk(choice));
    EXPECT_TRUE(frame.content) << choice;
    EXPECT_EQ(frame.choices, 1U);
    EXPECT_FALSE(frame.malformed || frame.is_error || frame.usage) << choice;
  }
  for (const char* choice : {R"("delta":{"role":"assistant","content":""})", R"("delta":{})",
                             R"("delta":{"content":null,"tool_calls":[ ]})", R"("delta":null)",
                             R"("text":"")", R"("delta":{"audio":{}})", R"("finish_reason":"stop")"}) {
    const AnswerFrame frame = read_answer_frame(chunk(choice));
    EXPECT_FALSE(frame.content) << choice;
    EXPECT_FALSE(frame.malformed) << choice;
  }
}

TEST(AnswerFrame, CountsContentOfAllChoices) {
  const AnswerFrame frame = read_answer(
      R"({"choices":[{"message":{"content":"abc"}},{"message":{"content":"de"},"finish_reason":"length"}]})");
  EXPECT_EQ(frame.choices, 2U);
  EXPECT_EQ(frame.content_bytes, 5U);
  EXPECT_TRUE(frame.finish_reason.is("length"));
}

TEST(AnswerFrame, FindsAUsageThatSaysNothingWithItsComma) {
  for (const auto& [frame, part] : std::initializer_list<std::pair<std::string_view, std::string_view>>{
           {R"({"choices":[],"usage":null})", R"(,"usage":null)"},
           {R"({"choices":[] , "usage" : null })", R"(, "usage" : null)"},
           {R"({"usage": null , "choices":[]})", R"("usage": null ,)"},
           {R"({ "usage":null })", R"("usage":null)"},
           {R"({"choices":[{"usage":null}]})", ""},
           {R"({"choices":[],"usage":0})", ""},
           {R"({"choices":[]})", ""}}) {
    EXPECT_EQ(read_answer_frame(frame).null_usage, part) << frame;
  }
}

TEST(AnswerFrame, ReadsUsage) {
  const AnswerFrame last = read_answer_frame(
      R"({"choices":[],"usage":{"prompt_tokens":11,"completion_tokens":7,"total_tokens":18,)"
      R"("prompt_tokens_details":{"audio_tokens":0,"cached_tokens":4},"completion_tokens_details":{"x":1}}})");
  EXPECT_TRUE(last.is_usage_only());
  EXPECT_EQ(last.usage, (Usage{.prompt = 11, .cached_prompt = 4, .completion = 7}));
  EXPECT_EQ(read_answer(R"({"choices":[],"usage":{"prompt_tokens":5,"prompt_cache_hit_tokens":9}})").usage,
            (Usage{.prompt = 5, .cached_prompt = 5}));
  EXPECT_FALSE(read_answer_frame(R"({"choices":[],"usage":null})").is_usage_only());
  const AnswerFrame inside = read_answer_frame(R"({"choices":[{"delta":{}}],"usage":{"prompt_tokens":1}})");
  EXPECT_FALSE(inside.is_usage_only());
  EXPECT_TRUE(inside.usage);
}

TEST(AnswerFrame, ReadsEmbeddings) {
  const AnswerFrame frame = read_answer(
      R"({"object":"list","data":[{"embedding":[0.5,1],"index":0}],"usage":{"prompt_tokens":3,"total_tokens":3}})");
  EXPECT_TRUE(frame.content);
  EXPECT_EQ(frame.choices, 1U);
  EXPECT_EQ(frame.usage->prompt, 3U);
  EXPECT_EQ(read_answer(R"({"object":"list","data":[]})").choices, 0U);
}

TEST(AnswerFrame, ReadsErrorsInAllTheirForms) {
  struct Case {
    const char* text;
    const char* message;
    unsigned status;
  };
  for (const Case& one : {
           Case{R"({"error":{"message":"m","type":"server_error","code":503}})", "m", 503},
           Case{R"({"error":{"message":"m","type":"rate_limit_exceeded","code":null}})", "m", 429},
           Case{R"({"error":{"message":"m","type":"tokens","code":"rate_limit_exceeded"}})", "m", 429},
           Case{R"({"error":{"message":"m","code":"529"}})", "m", 529},
           Case{R"({"error":{"message":"m","type":"weird"}})", "m", 0},
           Case{R"({"error":"m"})", "m", 0},
           Case{R"({"error":true,"message":"m"})", "m", 0},
           Case{R"({"object":"error","message":"m","type":"BadRequestError","param":null,"code":400})", "m",
                400},
           Case{R"({"choices":[{"index":0,"error":{"code":502,"message":"m"},"finish_reason":"error"}]})",
                "m", 502},
           Case{R"([{"error":{"code":404,"message":"m","status":"NOT_FOUND"}}])", "m", 404},
       }) {
    const AnswerFrame frame = read_answer_frame(one.text);
    EXPECT_TRUE(frame.is_error) << one.text;
    EXPECT_FALSE(frame.malformed) << one.text;
    EXPECT_EQ(frame.error.message.raw, one.message) << one.text;
    EXPECT_EQ(frame.error.status, one.status) << one.text;
  }
  for (const char* text :
       {R"({"error":null,"choices":[]})", R"({"error":false,"choices":[]})", R"({"detail":"Not Found"})"})
    EXPECT_FALSE(read_answer(text).is_error) << text;
  EXPECT_EQ(read_answer(R"({"detail":"Not Found"})").error.message.raw, "Not Found");
}

TEST(AnswerFrame, KnowsWhatIsMalformed) {
  for (const std::string& text :
       {std::string(), std::string("{"), chunk(R"("delta":{"content":"x)"), std::string("null"),
        std::string("[]"), std::string(R"({"choices":[}])"), std::string(R"({"choices":3})"),
        std::string(R"({"choices":["x"]})"), std::string(R"({"choices":[]}{)"), std::string("<html></html>"),
        std::string(R"([{"choices":[]}])")}) {
    const AnswerFrame frame = read_answer_frame(text);
    EXPECT_TRUE(frame.malformed) << text;
    EXPECT_FALSE(frame.content || frame.usage || frame.is_error) << text;
  }
}

}  // namespace
}  // namespace waybill::upstream
