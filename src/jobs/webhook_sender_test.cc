#include "jobs/webhook_sender.h"

#include <algorithm>
#include <chrono>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include <arpa/inet.h>
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/temporary_folder_test.h"
#include "jobs/webhook_signature.h"

namespace waybill::jobs {
namespace {

using namespace std::chrono_literals;
using store::SettleDelivery;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;
using testing::StartsWith;

constexpr const char* kSecret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";

// Gives out what is due, and remembers what came of it.
class FakeStore final : public store::Store {
 public:
  struct Job {
    store::Job job;
    std::optional<store::JobResult> result;
  };

  // A delivery of a job that has ended, after so many attempts.
  Uuid add(const std::string& url, std::uint32_t attempts = 0, std::function<void(Job&)> change = {}) {
    const std::lock_guard lock(mutex_);
    Job made;
    made.job.id = uuid_v7();
    made.job.queue = "q";
    made.job.state = store::State::kCompleted;
    made.result =
        store::JobResult{.status = 200, .content_type = "application/json", .body = "{}", .facts = ""};
    if (change) change(made);
    due_.push_back({jobs_.size() + 1, attempts, 0, url, made.job});
    const Uuid id = made.job.id;
    jobs_.emplace(id, std::move(made));
    return id;
  }
  void refuse_settling(int times) {
    const std::lock_guard lock(mutex_);
    refusals_ = times;
  }
  std::vector<SettleDelivery> settled() const {
    const std::lock_guard lock(mutex_);
    return settled_;
  }

  Result<store::Committed> apply(std::span<const store::Command> commands, store::Time /*now*/) override {
    const std::lock_guard lock(mutex_);
    store::Committed committed;
    for (const store::Command& command : commands) {
      if (const auto* claim = std::get_if<store::ClaimDeliveries>(&command)) {
        std::vector<store::ClaimDeliveries::Due> given;
        while (!due_.empty() && given.size() < claim->max) {
          given.push_back(std::move(due_.front()));
          due_.pop_front();
        }
        committed.replies.push_back(store::make_reply<store::ClaimDeliveries>(std::move(given)));
        continue;
      }
      if (refusals_ > 0) {
        --refusals_;
        return fail(ErrorCode::kStoreUnavailable, "as told");
      }
      settled_.push_back(std::get<SettleDelivery>(command));
      committed.replies.push_back(store::make_reply<SettleDelivery>(true));
    }
    return committed;
  }
  Status flush() override { return {}; }
  Result<std::optional<store::Job>> find(const Uuid& id) override {
    const std::lock_guard lock(mutex_);
    const auto found = jobs_.find(id);
    return found == jobs_.end() ? std::nullopt : std::optional(found->second.job);
  }
  Result<std::optional<store::JobResult>> result(const Uuid& id) override {
    const std::lock_guard lock(mutex_);
    return jobs_.at(id).result;
  }
  Result<std::optional<std::string>> body(const Uuid& /*id*/) override { return std::nullopt; }
  Result<store::Events> events(const Uuid& /*id*/, std::uint64_t /*from*/, std::size_t /*max*/) override {
    return store::Events{};
  }
  Result<std::vector<store::Job>> list(const store::JobFilter& /*filter*/) override {
    return std::vector<store::Job>{};
  }
  Result<std::vector<store::Ending>> endings(std::uint64_t /*after*/, std::size_t /*limit*/) override {
    return std::vector<store::Ending>{};
  }
  Result<std::vector<store::Depth>> depths() override { return std::vector<store::Depth>{}; }
  Result<std::vector<store::QueueState>> queues() override { return std::vector<store::QueueState>{}; }
  Result<std::vector<store::DeliveryRecord>> deliveries(std::optional<Uuid> /*job*/, bool /*dead_only*/,
                                                        std::size_t /*limit*/) override {
    return std::vector<store::DeliveryRecord>{};
  }
  Result<std::vector<std::pair<std::string, std::string>>> remembered(std::string_view /*prefix*/) override {
    return std::vector<std::pair<std::string, std::string>>{};
  }
  Result<store::StoreStats> stats() override {
    return store::StoreStats{.deliveries = 7, .dead_deliveries = 3};
  }

 private:
  mutable std::mutex mutex_;
  std::deque<store::ClaimDeliveries::Due> due_;
  std::map<Uuid, Job> jobs_;
  std::vector<SettleDelivery> settled_;
  int refusals_ = 0;
};

// An HTTP server that answers each request with the next of its answers, and 200 after those.
class Receiver {
 public:
  struct Answer {
    std::string status = "200 OK", more = {};
    bool closes_instead = false;  // the connection, when the request has come
  };

  explicit Receiver(std::deque<Answer> answers = {}) : answers_(std::move(answers)) {
    listener_ = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_in at{};
    at.sin_family = AF_INET;
    at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof at;
    EXPECT_EQ(::bind(listener_, reinterpret_cast<sockaddr*>(&at), size), 0);
    EXPECT_EQ(::listen(listener_, 16), 0);
    EXPECT_EQ(::getsockname(listener_, reinterpret_cast<sockaddr*>(&at), &size), 0);
    port_ = ntohs(at.sin_port);
    thread_ = std::thread([this] {
      for (int client; (client = ::accept(listener_, nullptr, nullptr)) >= 0;) {
        const std::lock_guard lock(mutex_);
        clients_.push_back(client);
        threads_.emplace_back([this, client] { serve(client); });
      }
    });
  }
  ~Receiver() {
    ::shutdown(listener_, SHUT_RDWR);
    thread_.join();
    ::close(listener_);
    for (const int client : clients_) ::shutdown(client, SHUT_RDWR);
    for (std::thread& thread : threads_) thread.join();
    for (const int client : clients_) ::close(client);
  }
  Receiver(const Receiver&) = delete;
  Receiver& operator=(const Receiver&) = delete;

  std::string url() const { return fmt::format("http://127.0.0.1:{}/hook", port_); }
  std::vector<std::string> requests() const {
    const std::lock_guard lock(mutex_);
    return requests_;
  }

 private:
  void serve(int client) {
    std::string in;
    char buffer[4096];
    for (;;) {
      const std::size_t head = in.find("\r\n\r\n");
      const std::size_t length = in.find("Content-Length: ");
      const std::size_t body = length < head ? std::stoul(in.substr(length + 16)) : 0;
      if (head == std::string::npos || in.size() < head + 4 + body) {
        const ssize_t n = ::recv(client, buffer, sizeof buffer, 0);
        if (n <= 0) return;
        in.append(buffer, static_cast<std::size_t>(n));
        continue;
      }
      Answer answer;
      {
        const std::lock_guard lock(mutex_);
        requests_.push_back(in.substr(0, head + 4 + body));
        if (!answers_.empty()) {
          answer = std::move(answers_.front());
          answers_.pop_front();
        }
      }
      if (answer.closes_instead) {
        ::shutdown(client, SHUT_RDWR);
        return;
      }
      in.erase(0, head + 4 + body);
      const std::string out =
          fmt::format("HTTP/1.1 {}\r\n{}content-length: 0\r\n\r\n", answer.status, answer.more);
      (void)::send(client, out.data(), out.size(), MSG_NOSIGNAL);
    }
  }

  int listener_ = -1;
  std::uint16_t port_ = 0;
  std::thread thread_;
  mutable std::mutex mutex_;  // guards the rest
  std::deque<Answer> answers_;
  std::vector<std::string> requests_;
  std::vector<int> clients_;
  std::vector<std::thread> threads_;
};

using Answers = std::deque<Receiver::Answer>;

class WebhookSenderTest : public testing::Test {
 protected:
  WebhookSenderTest() {
    auto telemetry = telemetry::Telemetry::start({.log = {.level = telemetry::Level::kOff}}, clock_);
    EXPECT_TRUE(telemetry);
    telemetry_ = std::move(*telemetry);
    loop_.start();
    service_ = std::make_unique<Service>(store_, config::Store{}, config::Jobs{}, *telemetry_);
    folder_.write("secret", kSecret);
    settings_.secrets.emplace_back().file = folder_.path() / "secret";
    settings_.allow_http = settings_.allow_private = true;
    settings_.schedule = {10s, 20s};
  }
  ~WebhookSenderTest() override {
    sender_.reset();
    service_->stop();
    loop_.stop();
  }

  void start() {
    sender_ = std::make_unique<WebhookSender>(
        *service_, loop_, *telemetry_, [this](const store::Job& job, const store::JobResult* result) {
          const std::lock_guard lock(mutex_);
          results_.push_back(result == nullptr ? "none" : result->body.substr(0, 10));
          return WebhookContents{.job = fmt::format(R"({{"id":"{}"}})", to_string(job.id)),
                                 .traceparent = {},
                                 .tracestate = {},
                                 .correlation_id = "c"};
        });
    const Status configured = sender_->configure(settings_);
    ASSERT_TRUE(configured) << configured.error().message;
    sender_->start();
  }
  // What came of them, once they are so many.
  std::vector<SettleDelivery> settled(std::size_t count) {
    for (int i = 0; i < 6000 && store_.settled().size() < count; ++i) std::this_thread::sleep_for(5ms);
    EXPECT_THAT(store_.settled(), SizeIs(count));
    return store_.settled();
  }

  TemporaryFolder folder_;
  SteadyClock clock_;
  std::unique_ptr<telemetry::Telemetry> telemetry_;
  http::EventLoop loop_{0, http::EventLoopHooks{}};
  FakeStore store_;
  config::JobWebhooks settings_;
  std::unique_ptr<Service> service_;
  std::unique_ptr<WebhookSender> sender_;
  std::mutex mutex_;
  std::vector<std::string> results_;  // what was to be sent along
};

TEST_F(WebhookSenderTest, WhatIsDueIsSentSignedAndWrittenDown) {
  Receiver receiver;
  const Uuid id = store_.add(receiver.url());
  start();
  const std::vector<SettleDelivery> came = settled(1);
  EXPECT_EQ(came[0].delivery, 1U);
  EXPECT_EQ(came[0].to, SettleDelivery::To::kDelivered);
  EXPECT_EQ(came[0].status, 200U);
  ASSERT_THAT(receiver.requests(), SizeIs(1));
  const std::string request = receiver.requests()[0];
  EXPECT_THAT(request, StartsWith("POST /hook HTTP/1.1\r\n"));
  const std::size_t head = request.find("\r\n\r\n");
  const std::string body = request.substr(head + 4);
  EXPECT_THAT(body, HasSubstr(to_string(id)));
  std::vector<http::Header> headers;
  const std::string_view text = std::string_view(request).substr(0, head);
  for (std::size_t at = text.find("\r\n"); at < text.size();) {
    const std::size_t end = std::min(text.find("\r\n", at + 2), text.size());
    const std::string_view line = text.substr(at + 2, end - at - 2);
    headers.push_back({line.substr(0, line.find(':')), line.substr(line.find(':') + 2)});
    at = end;
  }
  const std::vector<WebhookSecret> secrets = {WebhookSecret::parse(kSecret).value()};
  const Status verified = verify_webhook(secrets, headers, body, store_now() / 1'000'000);
  EXPECT_TRUE(verified) << verified.error().message;
}

TEST_F(WebhookSenderTest, WhatFailsComesAgainAfterTheWaitOfItsAttemptAndThenNoMore) {
  Receiver receiver(
      {{.status = "500 No"}, {.status = "302 There", .more = "location: /\r\n"}, {.status = "500 No"}});
  for (std::uint32_t attempts = 0; attempts < 3; ++attempts) store_.add(receiver.url(), attempts);
  settings_.concurrency = 1;
  const store::Time before = store_now();
  start();
  const std::vector<SettleDelivery> came = settled(3);
  EXPECT_EQ(came[0].to, SettleDelivery::To::kAgain);
  EXPECT_EQ(came[0].status, 500U);
  EXPECT_GE(came[0].again_at, before + 10'000'000);
  EXPECT_EQ(came[1].to, SettleDelivery::To::kAgain);
  EXPECT_GE(came[1].again_at, before + 20'000'000);
  EXPECT_THAT(came[1].error, HasSubstr("redirect"));
  EXPECT_EQ(came[2].to, SettleDelivery::To::kDead);
  EXPECT_TRUE(came[2].disable_url.empty());
}

TEST_F(WebhookSenderTest, AReceiverThatIsGoneIsDisabled) {
  Receiver receiver(Answers{{.status = "410 Gone"}});
  store_.add(receiver.url());
  start();
  const std::vector<SettleDelivery> came = settled(1);
  EXPECT_EQ(came[0].to, SettleDelivery::To::kDead);
  EXPECT_EQ(came[0].disable_url, receiver.url());
}

TEST_F(WebhookSenderTest, WhatCannotBeWrittenDownIsWrittenLaterAndNotSentAgain) {
  Receiver receiver;
  store_.add(receiver.url());
  store_.refuse_settling(1);
  start();
  EXPECT_EQ(settled(1)[0].to, SettleDelivery::To::kDelivered);
  EXPECT_THAT(receiver.requests(), SizeIs(1));
}

TEST_F(WebhookSenderTest, AJobThatWasTriedAgainIsNotTold) {
  Receiver receiver;
  store_.add(receiver.url(), 0, [](FakeStore::Job& job) { job.job.state = store::State::kQueued; });
  start();
  const std::vector<SettleDelivery> came = settled(1);
  EXPECT_EQ(came[0].to, SettleDelivery::To::kDead);
  EXPECT_THAT(came[0].error, HasSubstr("tried again"));
  EXPECT_THAT(receiver.requests(), IsEmpty());
}

TEST_F(WebhookSenderTest, AKeptConnectionThatTheReceiverClosesIsNotAFailure) {
  Receiver receiver(Answers{{}, {.closes_instead = true}});
  store_.add(receiver.url());
  start();
  settled(1);
  store_.add(receiver.url());
  EXPECT_EQ(settled(2)[1].to, SettleDelivery::To::kDelivered);
  EXPECT_THAT(receiver.requests(), SizeIs(3));
}

TEST_F(WebhookSenderTest, AResultThatIsTooLargeIsNotSentAlong) {
  Receiver receiver;
  const auto with = [](std::size_t bytes) {
    return [bytes](FakeStore::Job& job) { job.result->body = std::string(bytes, 'x'); };
  };
  settings_.concurrency = 1;
  store_.add(receiver.url(), 0, with(WebhookSender::kMostResultBytes));
  store_.add(receiver.url(), 0, with(WebhookSender::kMostResultBytes + 1));
  store_.add(receiver.url(), 0, [](FakeStore::Job& job) { job.result.reset(); });
  start();
  settled(3);
  const std::lock_guard lock(mutex_);
  EXPECT_THAT(results_, ElementsAre("xxxxxxxxxx", "none", "none"));
}

TEST_F(WebhookSenderTest, WhoAsksForPatienceHasItAndOthersAreServed) {
  Receiver busy(Answers{{.status = "503 Later", .more = "retry-after: 3600\r\n"}}), other;
  settings_.concurrency = 1;
  // They take turns: the second of `busy` would come before the second of `other`.
  for (int i = 0; i < 2; ++i) {
    store_.add(busy.url());
    store_.add(other.url());
  }
  const store::Time before = store_now();
  start();
  const std::vector<SettleDelivery> came = settled(3);
  EXPECT_THAT(busy.requests(), SizeIs(1));
  EXPECT_THAT(other.requests(), SizeIs(2));
  for (const SettleDelivery& each : came) {
    if (each.status == 503) {
      EXPECT_GE(each.again_at, before + 3'600'000'000);
    }
  }
}

TEST_F(WebhookSenderTest, SettingsThatForbidItNowHold) {
  Receiver receiver;
  store_.add(receiver.url());
  settings_.allow_private = false;
  start();
  const std::vector<SettleDelivery> came = settled(1);
  EXPECT_EQ(came[0].to, SettleDelivery::To::kAgain);
  EXPECT_EQ(came[0].status, 0U);
  EXPECT_THAT(came[0].error, HasSubstr("not an address that webhooks may go to"));
  EXPECT_THAT(receiver.requests(), IsEmpty());
}

}  // namespace
}  // namespace waybill::jobs
