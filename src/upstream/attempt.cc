#include "upstream/attempt.h"

#include <algorithm>
#include <memory>
#include <utility>

#include <fmt/format.h>

#include "base/json_writer.h"
#include "upstream/error_body.h"
#include "upstream/provider.h"

namespace waybill::upstream {
namespace {

using telemetry::Stage;
using End = AttemptResult::End;

constexpr std::size_t kMostRefusalBytes = 64U << 10;
constexpr Duration kRefusalPatience = std::chrono::seconds(5);  // for the body of an answer that is an error
constexpr std::size_t kMostHeldBytes = 1U << 20;                // of a stream, before its first content

TimePoint now() noexcept { return std::chrono::steady_clock::now(); }

// Everything that one attempt works with, so that its steps can be functions of their own.
struct Work {
  const Call& call;
  Target& target;
  Reply& reply;
  const AnswerFacts& facts;
  http::Resolver& resolver;
  RateReservation& rates;
  const config::UpstreamTimeouts& timeouts;
  TimePoint began;
  TimePoint until;  // of the whole attempt
  AttemptResult& result;
  std::unique_ptr<http::ClientConnection> connection = nullptr;
  std::unique_ptr<AnswerReader> reader = nullptr;

  [[nodiscard]] TimePoint within(Duration time) const noexcept { return std::min(until, now() + time); }

  void cancel() const {
    if (!call.finish_abandoned) connection->cancel();
  }
  // The end that an error of the connection means.
  void fail(const http::ClientError& error) {
    if (error.fault == http::ClientFault::kCancelled) {
      result.end = End::kAbandoned;
      return;
    }
    result.failure = failure_of(error);
    const bool expired = error.fault == http::ClientFault::kTimeout && now() >= call.deadline;
    result.end = expired ? End::kExpired : End::kFailed;
  }
  void fail(Failure failure) {
    result.failure = std::move(failure);
    result.end = End::kFailed;
  }
};

ToldRates told_rates(const http::ResponseHead& head) {
  const auto reset = [&head](std::string_view name) { return parse_reset(head.header(name)); };
  return {.requests = read_told_rate(head.header("x-ratelimit-limit-requests"),
                                     head.header("x-ratelimit-remaining-requests"),
                                     reset("x-ratelimit-reset-requests")),
          .tokens =
              read_told_rate(head.header("x-ratelimit-limit-tokens"),
                             head.header("x-ratelimit-remaining-tokens"), reset("x-ratelimit-reset-tokens"))};
}

// Opens a connection, sends the request and waits for the head of the answer.
http::Task<http::ClientResult<void>> exchange_heads(Work& work, const WireRequest& request, bool fresh) {
  http::ClientPool& pool = work.call.loop.local<http::ClientPool>();
  const auto& origin = work.target.provider->origin();
  work.connection = fresh ? pool.make(origin, work.resolver) : pool.take(origin, work.resolver);
  const http::Cancellation::Listener listener(work.call.cancellation, [&work] { work.cancel(); });
  const TimePoint start = now();
  if (!work.connection->is_open()) {
    http::ClientResult<void> opened = co_await work.connection->open(work.until);
    work.call.waybill.stage(Stage::kConnect, start, now());
    if (!opened) co_return opened;
  }
  const TimePoint connected = now();
  const Duration patience = work.call.request.stream() ? work.timeouts.headers : work.timeouts.answer;
  const TimePoint limit = std::min(work.until, connected + patience);
  work.rates.sent();
  http::ClientResult<void> done = co_await work.connection->send(request.head, request.body, limit);
  // A server may answer, and close, before it has read all: its answer says more than the failed write.
  const bool may_have_answered = !done && done.error().fault == http::ClientFault::kClosed;
  if (done || may_have_answered) {
    http::ClientResult<void> answered = co_await work.connection->read_head(limit);
    if (answered || done) done = std::move(answered);
  }
  work.call.waybill.stage(Stage::kHeaders, connected, now());
  co_return done;
}

// Appends the whole body, as far as `most`. Empty: it is all there.
http::Task<http::ClientResult<bool>> read_all(Work& work, std::size_t most, TimePoint limit,
                                              std::string& body) {
  for (;;) {
    http::ClientResult<std::string_view> bytes = co_await work.connection->read_body(limit);
    if (!bytes) co_return std::unexpected(std::move(bytes.error()));
    if (bytes->empty()) co_return true;
    if (body.size() + bytes->size() > most) co_return false;
    body.append(*bytes);
  }
}

void release(Work& work) { work.call.loop.local<http::ClientPool>().give_back(std::move(work.connection)); }

http::Task<> read_refusal(Work& work) {
  std::string body;
  {
    const http::Cancellation::Listener listener(work.call.cancellation, [&work] { work.cancel(); });
    // What is missing of an error's text does not matter; whose connection it is does.
    const TimePoint limit = work.within(kRefusalPatience);
    http::ClientResult<bool> read = co_await read_all(work, kMostRefusalBytes, limit, body);
    if (!read && read.error().fault == http::ClientFault::kCancelled) {
      work.result.end = End::kAbandoned;
      co_return;
    }
  }
  work.fail(failure_of(work.connection->head(), body, work.target.provider->dialect()));
  work.result.status = work.connection->head().status;
  release(work);
}

http::Task<> read_answer(Work& work, std::size_t most) {
  const TimePoint start = now();
  std::string body;
  bool complete = false;
  {
    const http::Cancellation::Listener listener(work.call.cancellation, [&work] { work.cancel(); });
    http::ClientResult<bool> read = co_await read_all(work, most, work.until, body);
    work.call.waybill.stage(Stage::kRelay, start, now());
    if (!read) {
      work.fail(read.error());
      // Nothing but the limit of the whole ends the reading of an answer.
      if (!work.result.failure.stage.empty()) work.result.failure.stage = "total";
      co_return;
    }
    complete = *read;
  }
  if (!complete) {
    work.fail({.kind = FailureKind::kProtocol,
               .message = "the answer is larger than gateway.max_answer_size",
               .body = {},
               .retry_after = {}});
    co_return;
  }
  const auto read = work.reader->whole(body);
  work.result.usage = work.reader->usage();
  release(work);
  if (!read) {
    work.fail(failure_of(read.error()));
    co_return;
  }
  work.result.end = End::kAnswered;
  work.result.body = std::move(body);
}

class StreamRelay {
 public:
  explicit StreamRelay(Work& work) : work_(work), headers_at_(now()) {}

  http::Task<> run() {
    for (;;) {
      bool ended = take_pieces();
      if (!ready_.empty() && (began_ || content_)) {
        const bool taken = co_await pass_on();
        if (!taken) co_return abandon();
      }
      if (ended) break;
      const http::Cancellation::Listener listener(work_.call.cancellation, [this] { work_.cancel(); });
      // Comments that keep a connection alive are no tokens: they move neither limit.
      const TimePoint limit = began_ ? std::min(work_.until, content_at_ + work_.timeouts.between_tokens)
                                     : std::min(work_.until, headers_at_ + work_.timeouts.first_token);
      http::ClientResult<std::string_view> bytes = co_await work_.connection->read_body(limit);
      if (!bytes) {
        if (bytes.error().fault == http::ClientFault::kCancelled) co_return abandon();
        failed_at_end(bytes.error());
        break;
      }
      if (bytes->empty()) {
        end_of_body();
        if (!ready_.empty() && (began_ || content_) && !fault_) {
          const bool taken = co_await pass_on();
          if (!taken) co_return abandon();
        }
        break;
      }
      work_.reader->append(*bytes);
    }
    co_await finish();
  }

 private:
  // Takes what can be read of the bytes so far. True: there is nothing to wait for any more.
  bool take_pieces() {
    for (;;) {
      auto piece = work_.reader->next();
      if (!piece) {
        fault_ = failure_of(piece.error());
        return true;
      }
      if (!*piece) return false;
      ready_.append((*piece)->events);
      if ((*piece)->content) {
        content_ = true;
        content_at_ = now();
      }
      if ((*piece)->done) {
        done_ = true;
        return true;
      }
      if (!content_ && ready_.size() > kMostHeldBytes) content_ = true;  // it will not be held for ever
    }
  }

  http::Task<bool> pass_on() {
    if (!began_) {
      began_ = true;
      first_token_at_ = now();
      work_.call.waybill.stage(Stage::kFirstToken, headers_at_, first_token_at_);
      work_.result.first_token = first_token_at_ - work_.began;
      work_.target.load.answered(work_.result.first_token);
      work_.reply.begin(work_.facts);
    }
    bool taken = true;
    if (!deaf_) taken = co_await work_.reply.write(ready_);
    ready_.clear();
    if (!taken && work_.call.finish_abandoned) deaf_ = taken = true;
    co_return taken;
  }

  void end_of_body() {
    auto piece = work_.reader->end();
    if (!piece) {
      fault_ = failure_of(piece.error());
      return;
    }
    ready_.append(piece->events);
    content_ = content_ || piece->content;
    done_ = true;
  }

  void failed_at_end(const http::ClientError& error) {
    fault_ = failure_of(error);
    if (error.fault == http::ClientFault::kTimeout) {
      expired_ = now() >= work_.call.deadline;
      fault_->stage = began_ ? "between_tokens" : "first_token";
      fault_->message = fmt::format("{}: nothing came in time", fault_->stage);
      if (now() >= work_.until) {
        fault_->stage = "total";
        fault_->message = "total: the call took longer than it may";
      }
    }
  }

  void abandon() {
    work_.result.end = End::kAbandoned;
    close();
  }

  http::Task<> finish() {
    if (done_ && !fault_ && !began_) {
      // A stream with an end but no content: an empty answer, which another target may do better.
      fault_ = Failure{
          .kind = FailureKind::kEmpty, .message = "the stream has no content", .body = {}, .retry_after = {}};
    }
    if (!fault_) {
      work_.result.end = End::kAnswered;
      // Whatever follows the end of the stream belongs to nobody; its connection serves on if that is little.
      co_await drain();
      close();
      co_return;
    }
    work_.result.end = expired_ ? End::kExpired : End::kFailed;
    if (began_) {
      work_.result.end = End::kCut;
      work_.result.expired = expired_;
      const std::string event = closing_event();
      (void)co_await work_.reply.write(event);
    }
    work_.result.failure = std::move(*fault_);
    close();
  }

  [[nodiscard]] std::string closing_event() const {
    if (expired_)
      return error_event("The request's deadline passed before the end of the answer.", "deadline_exceeded");
    return error_event(
        fmt::format("The answer of {} ended too early: {}", work_.target.name, fault_->message),
        fault_->kind == FailureKind::kTimeout ? "upstream_timeout" : "upstream_failed");
  }

  // Reads the end of the HTTP body behind the end of the stream, if it is there or about to come.
  http::Task<> drain() {
    const http::Cancellation::Listener listener(work_.call.cancellation, [this] { work_.cancel(); });
    constexpr Duration kPatience = std::chrono::milliseconds(100);
    http::ClientResult<std::string_view> rest = co_await work_.connection->read_body(now() + kPatience);
    if (rest && rest->empty()) release(work_);
  }

  void close() {
    work_.result.usage = work_.reader->usage();
    if (began_) work_.call.waybill.stage(Stage::kRelay, first_token_at_, now());
    work_.connection.reset();
  }

  Work& work_;
  const TimePoint headers_at_;
  TimePoint first_token_at_{}, content_at_{};
  std::string ready_;  // for the client; held back until there is content
  std::optional<Failure> fault_;
  bool began_ = false, content_ = false, done_ = false, expired_ = false;
  bool deaf_ = false;  // nobody takes it any more, and yet it is to be read to its end
};

http::Task<> run(Work& work, WireRequest& request, std::size_t max_answer_bytes) {
  http::ClientResult<void> heads = co_await exchange_heads(work, request, false);
  if (!heads && heads.error().stale) heads = co_await exchange_heads(work, request, true);
  if (!heads) {
    work.fail(heads.error());
    co_return;
  }
  request = {};  // it is sent, and a stream may last
  work.rates.answered(told_rates(work.connection->head()), now());
  if (work.connection->head().status >= 300 || work.connection->head().status < 200) {
    co_await read_refusal(work);
    co_return;
  }
  work.reader = work.target.provider->dialect().reader(work.call);
  if (work.call.request.stream()) {
    StreamRelay relay(work);
    co_await relay.run();
  } else {
    work.target.load.answered(now() - work.began);
    co_await read_answer(work, max_answer_bytes);
  }
}

}  // namespace

std::string error_event(std::string_view message, std::string_view code) {
  std::string event = R"(data: {"error":{"message":)";
  JsonWriter(event).string(message);
  event += fmt::format(R"(,"type":"upstream_error","param":null,"code":"{}"}}}})", code);
  event += "\n\n";
  return event;
}

http::Task<AttemptResult> attempt(const Call& call, Target& target, Reply& reply, const AnswerFacts& facts,
                                  http::Resolver& resolver, RateReservation& rates) {
  AttemptResult result;
  const config::UpstreamTimeouts& timeouts = target.provider->config().timeouts;
  const TimePoint began = now();
  Work work = {.call = call,
               .target = target,
               .reply = reply,
               .facts = facts,
               .resolver = resolver,
               .rates = rates,
               .timeouts = timeouts,
               .began = began,
               .until = std::min(call.deadline, began + timeouts.total),
               .result = result};
  WireRequest request;
  const TargetAddress address = target.provider->address(target.model);
  if (Status prepared = target.provider->dialect().prepare(call, address, request); !prepared) {
    const Error& error = prepared.error();
    result.failure = {.kind = FailureKind::kRefused,
                      .message = error.message,
                      .body = error_body(400, error.message, error.field, to_string(error.code)),
                      .retry_after = {}};
    co_return result;
  }
  co_await run(work, request, call.max_answer_bytes);
  // What a call has used that was cut short is not known: then it counts as reserved.
  const std::uint64_t used = std::uint64_t{result.usage.prompt} + result.usage.completion;
  if (used != 0 || result.status >= 400) rates.settle(used, now());
  if (call.cancellation.requested()) result.end = End::kAbandoned;
  co_return result;
}

}  // namespace waybill::upstream
