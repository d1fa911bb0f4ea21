// What telemetry costs a request, and what its metrics cost beside those of prometheus-cpp when that is
// installed. Prints nanoseconds and ratios; not a test. usage: telemetry_bench [ROUNDS]
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <string_view>
#include <thread>
#include <vector>

#include <time.h>

#ifdef WAYBILL_BENCH_PROMETHEUS_CPP
#include <prometheus/counter.h>
#include <prometheus/family.h>
#include <prometheus/histogram.h>
#include <prometheus/registry.h>
#endif

#include "telemetry/metrics_sink.h"
#include "telemetry/program_metrics.h"
#include "telemetry/waybill_book.h"

namespace {

using namespace waybill;
using namespace waybill::telemetry;

constexpr int kRepeat = 200'000;

double cpu_ns() {
  timespec time{};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) * 1e9 + static_cast<double>(time.tv_nsec);
}

// ns of CPU time for one call of `work` when each of `threads` threads makes calls at once; the best of
// `rounds`. CPU time, because a busy machine takes the CPU away but does not make the work longer.
double measure(int rounds, unsigned threads, const std::function<void(unsigned, int)>& work) {
  double best = 1e18;
  for (int round = 0; round < rounds; ++round) {
    std::vector<double> took(threads);
    {
      std::vector<std::jthread> running;
      for (unsigned t = 0; t < threads; ++t) {
        running.emplace_back([&, t] {
          const double start = cpu_ns();
          work(t, kRepeat);
          took[t] = cpu_ns() - start;
        });
      }
    }
    best = std::min(best, *std::ranges::max_element(took) / kRepeat);
  }
  return best;
}

void print(const char* what, double one, double two) { std::printf("%-58s %9.1f %9.1f\n", what, one, two); }

double report(int rounds, const char* what, const std::function<void(unsigned, int)>& work) {
  const double one = measure(rounds, 1, work);
  print(what, one, measure(rounds, 2, work));
  return one;
}

void ratio(const char* what, double theirs, double ours) {
  std::printf("  %-56s %8.1f x\n", what, theirs / ours);
}

constexpr TraceId kTrace = {1, 2, 3};

void bench_metrics(int rounds) {
  Registry registry;
  ProgramMetrics metrics(registry);
  const double increment = report(rounds, "counter: increment", [&](unsigned, int n) {
    for (int i = 0; i < n; ++i) metrics.degraded_decisions.add();
  });
  const double labelled = report(rounds, "counter: find by four labels, increment", [&](unsigned, int n) {
    for (int i = 0; i < n; ++i) metrics.requests.with({"/v1/route", "coding", "encoder", "completed"}).add();
  });
  Histogram& histogram = metrics.stage_seconds.with({"encode"});
  const double observe = report(rounds, "histogram: observe, 21 buckets", [&](unsigned, int n) {
    for (int i = 0; i < n; ++i) histogram.observe(0.0001 * (i & 255));
  });
  report(rounds, "histogram: observe with an exemplar", [&](unsigned, int n) {
    for (int i = 0; i < n; ++i) histogram.observe(0.0001 * (i & 255), kTrace, 1'000'000'000LL + i);
  });
#ifdef WAYBILL_BENCH_PROMETHEUS_CPP
  prometheus::Registry theirs;
  auto& counters = prometheus::BuildCounter().Name("c").Register(theirs);
  auto& counter = counters.Add({});
  ratio("prometheus-cpp / ours",
        report(rounds, "prometheus-cpp counter: increment",
               [&](unsigned, int n) {
                 for (int i = 0; i < n; ++i) counter.Increment();
               }),
        increment);
  ratio("prometheus-cpp / ours",
        report(rounds, "prometheus-cpp counter: find by four labels, increment",
               [&](unsigned, int n) {
                 for (int i = 0; i < n; ++i) {
                   counters
                       .Add({{"endpoint", "/v1/route"},
                             {"route", "coding"},
                             {"tier", "encoder"},
                             {"outcome", "completed"}})
                       .Increment();
                 }
               }),
        labelled);
  const std::vector<double> bounds(histogram.bounds().begin(), histogram.bounds().end());
  auto& observed = prometheus::BuildHistogram().Name("h").Register(theirs).Add({}, bounds);
  ratio("prometheus-cpp / ours",
        report(rounds, "prometheus-cpp histogram: observe, 21 buckets",
               [&](unsigned, int n) {
                 for (int i = 0; i < n; ++i) observed.Observe(0.0001 * (i & 255));
               }),
        observe);
#else
  (void)increment, (void)labelled, (void)observe;
  std::puts("  (install prometheus-cpp-dev and configure again for the comparison)");
#endif
}

void bench_waybills(int rounds) {
  const SteadyClock clock;
  const auto open_and_close = [&clock](WaybillBook& book, int n) {
    for (int i = 0; i < n; ++i) book.open("/v1/route", clock.now()).close(Outcome::kCompleted, 200);
  };
  WaybillBook book({}, clock);
  report(rounds, "waybill: open and close", [&](unsigned, int n) { open_and_close(book, n); });
  WaybillBook small({.keep = 100}, clock);
  report(rounds, "waybill: open and close, 100 kept", [&](unsigned, int n) { open_and_close(small, n); });
  const auto whole = [&clock](WaybillBook& into, int n) {
    for (int i = 0; i < n; ++i) {
      const TimePoint now = clock.now();
      Waybill waybill = into.open("/v1/route", now);
      waybill.request_id("01234567-89ab-cdef");
      waybill.caller("batch");
      for (std::size_t s = 0; s < kStages; ++s) waybill.stage(static_cast<Stage>(s), now, now);
      waybill.decision(
          {.route = "coding", .model = "qwen", .tier = "encoder", .reason = "score", .score = 0.9F});
      waybill.close(Outcome::kCompleted, 200);
    }
  };
  report(rounds, "waybill: with seven stages, ids and a decision", [&](unsigned, int n) { whole(book, n); });
  Registry registry;
  ProgramMetrics metrics(registry);
  MetricsSink sink(metrics);
  WaybillBook told({}, clock, {&sink});
  report(rounds, "waybill: the same, and all metrics of a request", [&](unsigned, int n) { whole(told, n); });
  std::vector<Waybill> open;
  for (int i = 0; i < 300; ++i) open.push_back(book.open("/v1/route", clock.now()));
  const auto look = [&](const char* what, const auto& work) {
    double best = 1e18;
    for (int round = 0; round < 10 * rounds; ++round) {
      const double start = cpu_ns();
      work();
      best = std::min(best, cpu_ns() - start);
    }
    std::printf("%-58s %9.0f\n", what, best);
  };
  look("ledger, with 20,000 waybills kept", [&] { (void)book.ledger(); });
  look("find by id", [&] { (void)book.find("017f22e2-79b0-7cc3-98c4-dc0c0c07398f"); });
  look("list the latest 100", [&] { (void)book.list({}); });
  std::printf("%-58s %9.1f\n", "MB of all records", static_cast<double>(book.memory_bytes()) / 1e6);
}

}  // namespace

int main(int argc, char** argv) {
  const int rounds = argc > 1 ? std::atoi(argv[1]) : 5;
  std::printf("%-58s %9s %9s\n", "ns of CPU time, best of rounds", "1 thread", "2 threads");
  bench_metrics(rounds);
  bench_waybills(rounds);
}
