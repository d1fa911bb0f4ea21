#include <string>

#include <gtest/gtest.h>

#include "base/allocation_count_test.h"
#include "upstream/answer_frame.h"
#include "upstream/chat_request.h"
#include "upstream/rate_limit.h"
#include "upstream/sse_reader.h"

namespace waybill::upstream {
namespace {

TEST(FrameAllocation, AFrameCostsNone) {
  const std::string event =
      "event: x\r\ndata: {\"choices\":[{\"delta\":\r\ndata: {\"content\":\"a\\nb\"}}],\r\ndata: "
      "\"\\u0075sage\":{\"prompt_tokens\":1}}\r\n\r\n"
      ": ping\r\n\r\ndata: {\"error\":{\"type\":\"server_error\"}}\r\n\r\n";
  SseReader reader;
  std::size_t events = 0, content = 0;
  const auto read_all = [&] {
    for (std::size_t cut = 1; cut < event.size(); cut += 5) {
      reader.append(std::string_view(event).substr(0, cut));
      reader.append(std::string_view(event).substr(cut));
      while (const auto each = reader.next()) {
        ++events;
        if (each->has_data) content += read_answer_frame(each->data).content_bytes;
      }
    }
  };
  read_all();
  const std::size_t before = allocation_count();
  read_all();
  EXPECT_EQ(allocation_count() - before, 0U);
  EXPECT_GT(events, 30U);
  EXPECT_GT(content, 30U);
}

TEST(FrameAllocation, ABodyThatIsReadByAReusedRequestCostsNone) {
  const std::string body =
      R"({"model":"gpt-4o","stream":true,"messages":[{"role":"system","content":"s\n"},{"role":"user","content":[{"type":"text","text":"hi"}]}]})";
  const JsonEdit edits[] = {{"model", "\"other\""}, {"stream_options", R"({"include_usage":true})"}};
  ChatRequest request;
  std::string sent;
  const auto read = [&] {
    const bool good = request.parse(Operation::kChat, body).has_value();
    request.members().splice(edits, sent);
    return good;
  };
  EXPECT_TRUE(read());
  const std::size_t before = allocation_count();
  EXPECT_TRUE(read());
  EXPECT_EQ(allocation_count() - before, 0U);
}

TEST(FrameAllocation, ARateThatIsReservedCostsNone) {
  RateLimit limit(1000, 1000);
  const std::size_t before = allocation_count();
  auto taken = limit.reserve(10, TimePoint{std::chrono::hours(1)});
  EXPECT_TRUE(taken);
  taken->sent();
  taken->settle(5, TimePoint{std::chrono::hours(1)});
  EXPECT_FALSE(limit.reserve(2000, TimePoint{std::chrono::hours(1)}));
  EXPECT_EQ(allocation_count() - before, 0U);
}

}  // namespace
}  // namespace waybill::upstream
