#include "api/job_exchange.h"

#include <string>
#include <vector>

#include <boost/asio/co_spawn.hpp>
#include <gtest/gtest.h>

#include "api/job_attributes.h"

namespace waybill::api {
namespace {

class FakePerformance final : public jobs::Performance {
 public:
  FakePerformance() {
    job_.id = uuid_v7();
    job_.endpoint = "/v1/chat/completions";
    job_.receives = 1;
  }
  [[nodiscard]] const store::Job& job() const noexcept override { return job_; }
  [[nodiscard]] std::string_view body() const noexcept override { return R"({"model":"m"})"; }
  [[nodiscard]] TimePoint deadline() const noexcept override { return TimePoint::max(); }
  [[nodiscard]] http::EventLoop& loop() noexcept override { return loop_; }
  [[nodiscard]] http::Cancellation& cancellation() noexcept override { return cancellation_; }
  http::Task<Status> call_begins() override { co_return Status{}; }
  void events(std::string_view events) override { told.emplace_back(events); }

  bool write(http::Exchange& exchange, std::string_view piece) {
    bool taken = false;
    boost::asio::co_spawn(loop_.context(), exchange.write_body(piece),
                          [&taken](const std::exception_ptr& /*error*/, bool result) { taken = result; });
    loop_.context().restart();
    loop_.context().poll();
    return taken;
  }

  store::Job job_;
  std::vector<std::string> told;

 private:
  http::EventLoop loop_{0, {}};
  http::Cancellation cancellation_;
};

TEST(JobExchange, IsTheRequestThatTheJobWasMadeOf) {
  FakePerformance performance;
  JobAttributes attributes;
  attributes.traceparent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
  attributes.session = "s";
  performance.job_.attributes = write_attributes(attributes);
  const JobExchange exchange(performance, config::JobLane::kBatch, 100);
  EXPECT_EQ(exchange.request.method, http::Method::kPost);
  EXPECT_EQ(exchange.request.path, "/v1/chat/completions");
  EXPECT_EQ(exchange.request.body, R"({"model":"m"})");
  EXPECT_EQ(exchange.request.header("traceparent"), attributes.traceparent);
  EXPECT_EQ(exchange.request.header("x-waybill-session"), "s");
  EXPECT_EQ(exchange.request.header("x-waybill-lane"), "batch");
  EXPECT_EQ(exchange.request.header("x-waybill-cache"), "");
  const std::string id = to_string(performance.job_.id);
  EXPECT_EQ(exchange.idempotency_key(), id) << "its id, where it came without a key";
  EXPECT_EQ(exchange.request.header("x-correlation-id"), id);
}

TEST(JobExchange, TellsEventsAsTheyCome) {
  FakePerformance performance;
  JobExchange exchange(performance, config::JobLane::kInteractive, 100);
  EXPECT_FALSE(exchange.body_begun());
  EXPECT_TRUE(performance.write(exchange, "data: 1\n\n"));
  EXPECT_TRUE(performance.write(exchange, "data: 2\n\n"));
  EXPECT_TRUE(exchange.body_begun());
  EXPECT_EQ(exchange.streamed(), "data: 1\n\ndata: 2\n\n");
  EXPECT_EQ(performance.told, (std::vector<std::string>{"data: 1\n\n", "data: 2\n\n"}));
}

TEST(JobExchange, AnotherAttemptSaysThatItBeginsAnew) {
  FakePerformance performance;
  performance.job_.receives = 2;
  JobExchange exchange(performance, config::JobLane::kBatch, 100);
  EXPECT_TRUE(performance.write(exchange, "data: 1\n\n"));
  EXPECT_TRUE(performance.write(exchange, "data: 2\n\n"));
  EXPECT_EQ(performance.told, (std::vector<std::string>{"event: restart\ndata: {\"receive\":2}\n\n",
                                                        "data: 1\n\n", "data: 2\n\n"}));
  EXPECT_EQ(exchange.streamed(), "data: 1\n\ndata: 2\n\n") << "the answer is that of this attempt";
}

TEST(JobExchange, AStreamHasABound) {
  FakePerformance performance;
  JobExchange exchange(performance, config::JobLane::kBatch, 10);
  EXPECT_TRUE(performance.write(exchange, "0123456789"));
  EXPECT_FALSE(exchange.too_large());
  EXPECT_FALSE(performance.write(exchange, "x"));
  EXPECT_TRUE(exchange.too_large());
}

TEST(JobExchange, ACancelledJobHangsUp) {
  FakePerformance performance;
  JobExchange exchange(performance, config::JobLane::kBatch, 100);
  int hang_ups = 0;
  exchange.watch_for_hang_up([&hang_ups] { ++hang_ups; });
  EXPECT_FALSE(exchange.cancelled());
  performance.cancellation().request();
  EXPECT_EQ(hang_ups, 1);
  EXPECT_TRUE(exchange.cancelled());
  EXPECT_FALSE(performance.write(exchange, "x"));
  exchange.watch_for_hang_up([&hang_ups] { ++hang_ups; });
  EXPECT_EQ(hang_ups, 2) << "who begins to watch too late is told at once";
}

}  // namespace
}  // namespace waybill::api
