// The ledger under fire: waybills are opened, written, handed to other threads, closed and dropped, while
// others look, and at every moment nothing is missing.
#include <array>
#include <atomic>
#include <mutex>
#include <random>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "telemetry/waybill_book.h"

namespace waybill::telemetry {
namespace {

constexpr int kWorkers = 4;
constexpr int kRequests = 8'000;

class Count final : public WaybillSink {
 public:
  void closed(const Record& record) noexcept override {
    if (record.open) ++wrong;
    ++ended[static_cast<std::size_t>(record.outcome)];
  }
  std::array<std::atomic<std::uint64_t>, kOutcomes> ended{};
  std::atomic<int> wrong{0};
};

// Waybills that wait to be taken over by whoever comes next.
class Exchange {
 public:
  Waybill swap(Waybill waybill, std::size_t place) {
    const std::scoped_lock lock(mutex_);
    std::swap(waybill, places_[place % places_.size()]);
    return waybill;
  }

 private:
  std::mutex mutex_;
  std::array<Waybill, 64> places_;
};

void work(WaybillBook& book, const Clock& clock, Exchange& exchange, unsigned seed) {
  std::mt19937 random(seed);
  for (int i = 0; i < kRequests; ++i) {
    Waybill waybill = book.open("/v1/route", clock.now());
    waybill.request_id(i % 2 == 0 ? "even" : "odd");
    waybill = exchange.swap(std::move(waybill), random());
    if (!waybill.is_open()) continue;
    const TimePoint now = clock.now();
    waybill.stage(Stage::kQueue, now, now);
    waybill.decision({.route = "coding", .tier = "encoder"});
    if (random() % 16 == 0) continue;  // dropped
    waybill.close(static_cast<Outcome>(random() % kOutcomes), 200);
  }
}

TEST(WaybillStress, TheLedgerBalancesAtEveryMoment) {
  const SteadyClock clock;
  Count count;
  WaybillBook book({.keep = 500, .keep_per_failure = 50, .keep_slowest = 20}, clock, {&count});
  std::atomic<bool> done{false};
  std::uint64_t looks = 0;
  {
    Exchange exchange;
    std::jthread reader([&] {
      while (!done) {
        (void)book.list({.outcome = Outcome::kFailed, .route = "coding", .limit = 20});
        const auto found = book.find("even");
        if (found) {
          EXPECT_EQ(found->request_id, "even");
        }
      }
    });
    std::vector<std::jthread> workers;
    for (unsigned i = 0; i < kWorkers; ++i) {
      workers.emplace_back([&, i] { work(book, clock, exchange, i + 1); });
    }
    std::jthread checker([&] {
      while (!done) {
        const Ledger ledger = book.ledger();
        ASSERT_EQ(ledger.imbalance(), 0);
        ++looks;
      }
    });
    for (std::jthread& worker : workers) worker.join();
    done = true;
  }
  const Ledger ledger = book.ledger();
  EXPECT_GT(looks, 0U);
  EXPECT_EQ(ledger.accepted, static_cast<std::uint64_t>(kWorkers) * kRequests);
  EXPECT_EQ(ledger.in_flight, 0U);
  EXPECT_EQ(ledger.imbalance(), 0);
  for (std::size_t i = 0; i < kOutcomes; ++i) {
    EXPECT_EQ(count.ended[i], ledger.ended[i]);
    EXPECT_GT(ledger.ended[i], 0U);
  }
  EXPECT_EQ(count.wrong, 0);
  EXPECT_LE(book.kept(), 500U + 64U + kWorkers * 2U + 4 * 50U + 20U);
}

TEST(WaybillStress, TheLatestOfAllThreadsStayWhoeverIsBusy) {
  const SteadyClock clock;
  WaybillBook book({.keep = 200, .keep_per_failure = 0, .keep_slowest = 0}, clock);
  const auto end = [&](int n, std::string_view name) {
    for (int i = 0; i < n; ++i) {
      Waybill waybill = book.open("/", clock.now());
      waybill.request_id(name);
      waybill.close(Outcome::kCompleted, 200);
    }
  };
  std::thread([&] { end(250, "early"); }).join();
  std::thread([&] { end(1000, "late"); }).join();
  EXPECT_FALSE(book.find("early"));
  EXPECT_GE(book.list({.limit = 1000}).size(), 200U);
}

}  // namespace
}  // namespace waybill::telemetry
