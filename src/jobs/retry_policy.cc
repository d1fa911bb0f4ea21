#include "jobs/retry_policy.h"

#include <algorithm>
#include <chrono>
#include <string>
#include <string_view>

#include <boost/json.hpp>
#include <fmt/format.h>

#include "base/utf8.h"

namespace waybill::jobs {
namespace {

constexpr std::size_t kLargestErrorBody = 64U << 10;
constexpr std::size_t kLongestCode = 64;
constexpr std::size_t kLongestMessage = 500;
constexpr Duration kLongestWait = std::chrono::hours(24);  // whatever an answer asks for

store::Time microseconds(Duration duration) {
  return std::chrono::duration_cast<std::chrono::microseconds>(duration).count();
}

std::string cut(std::string_view text, std::size_t most) {
  std::string out = to_valid_utf8(text.substr(0, most));
  return text.size() > most ? out + "..." : out;
}

// {"error":{"code","message"}}, or Ollama's {"error":"..."}.
void read_error(std::string_view body, store::AttemptError& error) {
  if (body.empty() || body.size() > kLargestErrorBody) return;
  boost::system::error_code failed;
  const boost::json::value whole = boost::json::parse(body, failed);
  if (failed || !whole.is_object()) return;
  const boost::json::value* told = whole.get_object().if_contains("error");
  if (told == nullptr) return;
  if (told->is_string()) {
    error.message = cut(told->get_string(), kLongestMessage);
  } else if (told->is_object()) {
    const auto text = [told](std::string_view name) {
      const boost::json::value* value = told->get_object().if_contains(name);
      return value != nullptr && value->is_string() ? std::string_view(value->get_string())
                                                    : std::string_view();
    };
    const std::string_view code = text("code").empty() ? text("type") : text("code");
    if (!code.empty()) error.code = cut(code, kLongestCode);
    if (!text("message").empty()) error.message = cut(text("message"), kLongestMessage);
  }
}

store::Time after(store::Time now, Duration backoff, Duration asked) {
  return now + microseconds(std::max(backoff, std::min(asked, kLongestWait)));
}

}  // namespace

Answered classify(const Performed& performed) noexcept {
  const unsigned status = performed.status;
  if (status >= 200 && status < 300) return Answered::kCompleted;
  if (!performed.called && (status == 429 || status == 503)) return Answered::kNotCalled;
  if (status == 0 || status == 408 || status == 425 || status == 429 || status >= 500)
    return Answered::kAgain;
  return Answered::kFailed;
}

Duration backoff_of(const config::JobBackoff& backoff, std::uint32_t failures, double random) noexcept {
  Duration bound = backoff.first;
  for (std::uint32_t i = 1; i < failures && bound < backoff.most; ++i) bound *= 2;
  bound = std::min(bound, backoff.most);
  return Duration(static_cast<Duration::rep>(static_cast<double>(bound.count()) * random));
}

store::AttemptError error_of(const Performed& performed, store::Time now) {
  store::AttemptError error;
  error.ended = now;
  error.status = performed.status;
  error.code = performed.status == 0 ? "no_answer" : fmt::format("http_{}", performed.status);
  error.message = performed.status == 0 ? "there was no answer"
                                        : fmt::format("the call was answered {}", performed.status);
  read_error(performed.body, error);
  return error;
}

Verdict judge(const Performed& performed, const config::JobQueue& queue, std::uint32_t receives,
              std::uint32_t releases, store::Time now, double random) {
  Verdict verdict;
  switch (classify(performed)) {
    case Answered::kCompleted:
      break;
    case Answered::kFailed:
      verdict.state = store::State::kFailed;
      break;
    case Answered::kAgain:
      verdict.what = Verdict::What::kFail;
      verdict.error = error_of(performed, now);
      verdict.at = after(now, backoff_of(queue.backoff, receives, random), performed.retry_after);
      break;
    case Answered::kNotCalled:
      verdict.what = Verdict::What::kRelease;
      verdict.at = after(now, backoff_of(queue.backoff, releases + 1, random), performed.retry_after);
      break;
  }
  return verdict;
}

Verdict judge_interrupted(const config::JobQueue& queue, bool begun, store::Time now) {
  Verdict verdict;
  if (!begun) {
    verdict.what = Verdict::What::kRelease;
  } else if (queue.in_doubt == config::InDoubt::kHold) {
    verdict.what = Verdict::What::kLeave;
  } else {
    verdict.what = Verdict::What::kFail;
    verdict.error.ended = now;
    verdict.error.code = "shutting_down";
    verdict.error.message = "the server ended before the call had its answer";
    verdict.error.in_doubt = true;
    verdict.at = now;
  }
  return verdict;
}

Verdict judge_overdue(const config::JobQueue& queue, std::uint32_t receives, bool begun, store::Time now,
                      double random) {
  Verdict verdict;
  verdict.what = Verdict::What::kFail;
  verdict.error.ended = now;
  verdict.error.code = "timeout";
  verdict.error.message = "the call did not end within the timeout of its queue";
  verdict.error.in_doubt = begun;
  verdict.at = after(now, backoff_of(queue.backoff, receives, random), Duration::zero());
  return verdict;
}

}  // namespace waybill::jobs
