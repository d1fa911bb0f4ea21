// What reading frames and bodies costs, beside simdjson when that is installed, and beside Boost.JSON. Prints
// nanoseconds of CPU time and ratios; not a test. usage: upstream_bench [ROUNDS]
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>

#include <boost/json.hpp>
#include <time.h>

#ifdef WAYBILL_BENCH_SIMDJSON
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wsign-conversion"
#pragma GCC diagnostic ignored "-Wconversion"
#pragma GCC diagnostic ignored "-Wshadow"
#pragma GCC diagnostic ignored "-Wpedantic"
#include <simdjson.h>
#pragma GCC diagnostic pop
#endif

#include "upstream/answer_frame.h"
#include "upstream/chat_request.h"
#include "upstream/rate_limit.h"
#include "upstream/sse_reader.h"

namespace {

using namespace waybill;
using namespace waybill::upstream;

double cpu_ns() {
  timespec time{};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) * 1e9 + static_cast<double>(time.tv_nsec);
}

int g_rounds = 5;
std::size_t g_sum = 0;  // so that nothing is optimised away

// For one call, the best of several rounds.
template <class Work>
double measure(int repeat, Work work) {
  double best = 1e18;
  for (int round = 0; round < g_rounds; ++round) {
    const double start = cpu_ns();
    for (int i = 0; i < repeat; ++i) g_sum += work();
    best = std::min(best, (cpu_ns() - start) / repeat);
  }
  return best;
}

double print(const char* what, std::size_t bytes, double ns) {
  std::printf("%-44s %8zu B %12.0f ns %7.2f GB/s\n", what, bytes, ns, static_cast<double>(bytes) / ns);
  return ns;
}

void ratio(const char* peer, double theirs, double ours) {
  std::printf("  %-42s %22.2f x\n", peer, theirs / ours);
}

const std::string kFrame =
    R"({"id":"chatcmpl-9xKd8sJ2","object":"chat.completion.chunk","created":1735689600,"model":"gpt-4o-mini","system_fingerprint":)"
    R"("fp_44709d6f","choices":[{"index":0,"delta":{"content":" Hello"},"logprobs":null,"finish_reason":null}]})";

std::string body_of(std::size_t turns, std::size_t text_bytes) {
  std::string body = R"({"model":"gpt-4o-mini","stream":true,"temperature":0.7,"max_tokens":256,"messages":[)"
                     R"({"role":"system","content":"You are a helpful assistant."})";
  std::string text;
  while (text.size() < text_bytes) text += "The quick brown fox jumps over the lazy dog.\\n";
  for (std::size_t i = 0; i < turns; ++i) body += R"(,{"role":"user","content":")" + text + "\"}";
  return body + "]}";
}

void bench_json(const char* what, const std::string& text, int repeat, double ours) {
  const double boost = measure(repeat, [&] {
    unsigned char memory[8192];
    boost::json::monotonic_resource resource(memory, sizeof memory);
    return static_cast<std::size_t>(boost::json::parse(text, &resource).kind());
  });
  ratio("Boost.JSON, the tree alone", boost, ours);
#ifdef WAYBILL_BENCH_SIMDJSON
  const simdjson::padded_string padded(text);
  simdjson::dom::parser parser;
  const double tree = measure(repeat, [&] {
    simdjson::dom::element element;
    return static_cast<std::size_t>(parser.parse(padded).get(element));
  });
  ratio("simdjson, the tree alone", tree, ours);
#endif
  (void)what;
}

void bench_frames() {
  constexpr int kRepeat = 200'000;
  const double frame = print("a frame of a stream", kFrame.size(),
                             measure(kRepeat, [] { return read_answer_frame(kFrame).content_bytes; }));
  bench_json("frame", kFrame, kRepeat, frame);

  std::string events;
  for (int i = 0; i < 10; ++i) events += "data: " + kFrame + "\n\n";
  SseReader reader;
  print("ten events of a stream, cut apart", events.size(), measure(kRepeat / 10, [&] {
          reader.append(events);
          std::size_t bytes = 0;
          while (const auto event = reader.next()) bytes += event->data.size();
          return bytes;
        }));
}

void bench_body(const char* what, const std::string& body, int repeat) {
  ChatRequest request;
  const double read = print(what, body.size(), measure(repeat, [&] {
                              const bool good = request.parse(Operation::kChat, body).has_value();
                              return request.prompt_tokens() + (good ? 1U : 0U);
                            }));
  bench_json(what, body, repeat, read);
  std::string out;
  const JsonEdit edits[] = {{"model", "\"llama-3.1-8b\""}, {"stream_options", R"({"include_usage":true})"}};
  print("  with another model and stream_options", body.size(), measure(repeat, [&] {
          request.members().splice(edits, out);
          return out.size();
        }));
}

void bench_limits() {
  RateLimit limit(1'000'000'000, 1'000'000'000);
  TimePoint now{std::chrono::hours(1)};
  print("a rate reserved, answered and settled", 0, measure(200'000, [&] {
          now += std::chrono::microseconds(10);
          auto taken = limit.reserve(300, now);
          if (!taken) return std::size_t{0};
          taken->sent();
          taken->answered({}, now);
          taken->settle(200, now);
          return std::size_t{1};
        }));
}

}  // namespace

int main(int argc, char** argv) {
  if (argc > 1) g_rounds = std::max(1, std::atoi(argv[1]));
  bench_frames();
  bench_body("a body of one short message", body_of(1, 100), 100'000);
  bench_body("a body of 20 messages of 1 kB", body_of(20, 1000), 10'000);
  bench_body("a body of 10 MB", body_of(10, 1'000'000), 5);
  bench_limits();
  return g_sum == 1 ? 1 : 0;
}
