#include "config/base_url.h"

#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace waybill::config {
namespace {

using testing::HasSubstr;
using testing::Not;

std::string problem_of(std::string_view url) {
  const auto read = parse_base_url(url);
  EXPECT_FALSE(read) << url;
  return read ? std::string() : read.error().message;
}

TEST(BaseUrl, IsTakenApart) {
  const auto openai = parse_base_url("https://api.openai.com/v1/");
  ASSERT_TRUE(openai) << openai.error().message;
  EXPECT_TRUE(openai->tls);
  EXPECT_EQ(openai->host, "api.openai.com");
  EXPECT_EQ(openai->port, 443);
  EXPECT_EQ(openai->path, "/v1");
  EXPECT_FALSE(openai->is_local());

  const auto ollama = parse_base_url("http://127.0.0.1:11434");
  ASSERT_TRUE(ollama) << ollama.error().message;
  EXPECT_FALSE(ollama->tls);
  EXPECT_EQ(ollama->port, 11434);
  EXPECT_EQ(ollama->path, "");
  EXPECT_TRUE(ollama->is_local());

  const auto six = parse_base_url("http://[::1]:8000/a/b");
  ASSERT_TRUE(six) << six.error().message;
  EXPECT_EQ(six->host, "::1");
  EXPECT_EQ(six->port, 8000);
  EXPECT_EQ(six->path, "/a/b");
  EXPECT_TRUE(six->is_local());

  const auto plain = parse_base_url("http://vllm/v1");
  ASSERT_TRUE(plain) << plain.error().message;
  EXPECT_EQ(plain->port, 80);
}

TEST(BaseUrl, TellsWhatIsWrongAndWhatToWrite) {
  EXPECT_THAT(problem_of("api.openai.com/v1"), HasSubstr("has no scheme; write https://api.openai.com/v1"));
  EXPECT_THAT(problem_of("localhost:8000/v1"), HasSubstr("has no scheme; write http://localhost:8000/v1"));
  EXPECT_THAT(problem_of("what is this"), HasSubstr("is no URL"));
  EXPECT_THAT(problem_of("ftp://host/v1"), HasSubstr("has a scheme that is not spoken here"));
  EXPECT_THAT(problem_of("wss://host/v1"), HasSubstr("is the URL of a WebSocket"));
  EXPECT_THAT(problem_of("https:///v1"), HasSubstr("has no host"));
  EXPECT_THAT(problem_of("https://"), HasSubstr("has no host"));
  EXPECT_THAT(problem_of("https://${HOST}/v1"), HasSubstr("characters that no host has"));
  EXPECT_THAT(problem_of("https://[v1]/"), HasSubstr("characters that no host has"));
  EXPECT_THAT(problem_of("https://[::1/v1"), HasSubstr("no end to the brackets"));
  EXPECT_THAT(problem_of("https://::1/v1"), HasSubstr("write an IPv6 address in brackets"));
  for (const std::string_view port : {"0", "65536", "http", "", "80x", "-1"})
    EXPECT_THAT(problem_of("https://host:" + std::string(port) + "/v1"), HasSubstr("has a port that is not"))
        << port;
  EXPECT_THAT(problem_of("https://[::1]80/v1"), HasSubstr("has a port that is not"));
  EXPECT_THAT(problem_of("https://host/v1?api-version=1"),
              HasSubstr("has a query; leave out what begins with the \"?\""));
  EXPECT_THAT(problem_of("https://host/v1#a"), HasSubstr("has a fragment"));
  EXPECT_THAT(problem_of("https://host/a b"), HasSubstr("characters in its path that no URL has"));
  EXPECT_THAT(problem_of("https://host/caf\xC3\xA9"), HasSubstr("characters in its path that no URL has"));
}

TEST(BaseUrl, DoesNotRepeatAPassword) {
  for (const std::string_view url :
       {"https://me:hunter2@host/v1", "me:hunter2@host", "https://hunter2@host?a"}) {
    EXPECT_THAT(problem_of(url), HasSubstr("has a user name or password in it"));
    EXPECT_THAT(problem_of(url), Not(HasSubstr("hunter2")));
  }
}

}  // namespace
}  // namespace waybill::config
