#include "scenarios.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>
#include <functional>
#include <random>
#include <utility>

#include <fmt/core.h>
#include <unistd.h>

#include "base/json_writer.h"
#include "process.h"
#include "prompts.h"

namespace burst {
namespace {

constexpr const char* kPath = "/route";
constexpr int kPoolClients = 16;  // that ask every prompt of the pool once before a run

std::string body_for(std::string_view prompt) {
  std::string body;
  waybill::JsonWriter(body).begin_object().key("prompt").string(prompt).end_object();
  return body;
}

class Bench {
 public:
  Bench(const Options& options, std::uint64_t seed)
      : o_(options), prompts_(seed, options.pool), engine_(seed), client_(o_.target, o_.timeout_s) {}

  Metrics run(const std::string& scenario);
  Metrics burst();
  Metrics steady() {
    return summarise(client_.run(poisson(o_.rate, o_.seconds, o_.hang_up_share)), o_.seconds);
  }
  Metrics closed();
  Metrics ramp();

 private:
  double unit() { return static_cast<double>(engine_() >> 11) * 0x1.0p-53; }

  Call route_call(double due_s, int phase = 0) {
    const Prompt p = prompts_.next();
    return {due_s, kPath, body_for(p.text), std::string(p.topic), phase};
  }

  std::vector<Call> poisson(double rate, double seconds, double hang_up_share = 0) {
    std::vector<Call> calls;
    for (double t = -std::log(1 - unit()) / rate; t < seconds; t += -std::log(1 - unit()) / rate) {
      calls.push_back(route_call(t));
      if (hang_up_share > 0 && unit() < hang_up_share) {
        calls.back().hang_up_after_s = unit() < 0.5 ? 0 : unit() * o_.hang_up_within_s;
      }
    }
    return calls;
  }

  bool holds(double rate, Metrics& last);
  void warm_up();
  void settle();
  double recovery(double limit_s);

  const Options& o_;
  PromptSource prompts_;
  std::mt19937_64 engine_;
  Client client_;
};

using Scenario = Metrics (Bench::*)();
constexpr std::array<std::pair<std::string_view, Scenario>, 4> kScenarios = {{{"burst300", &Bench::burst},
                                                                              {"qps240", &Bench::steady},
                                                                              {"closed100", &Bench::closed},
                                                                              {"ramp", &Bench::ramp}}};

Metrics Bench::run(const std::string& scenario) {
  settle();
  warm_up();
  const CpuUse before = cpu_use(o_.server_pid);
  Metrics m;
  for (const auto& [name, load] : kScenarios) {
    if (name == scenario) m = (this->*load)();
  }
  add_cpu(before, cpu_use(o_.server_pid), m);
  const Memory memory = server_memory(o_.server_pid);
  m.set("server_rss_mb", memory.now_mb);
  m.set("server_peak_rss_mb", memory.peak_mb);
  m.set("recovery_s", recovery(o_.recovery_s));
  return m;
}

// 300 requests evenly over 10 s, and 300 more at the same instant 5 s in.
Metrics Bench::burst() {
  std::vector<Call> calls;
  for (int i = 0; i < 300; ++i) {
    if (i == 150) {
      for (int j = 0; j < 300; ++j) calls.push_back(route_call(5.0, 1));
    }
    calls.push_back(route_call(i / 30.0));
  }
  const std::vector<Outcome> all = client_.run(std::move(calls));
  Metrics m = summarise(all, 10);
  std::array<std::vector<Outcome>, 2> phases;
  for (const Outcome& o : all) phases.at(static_cast<std::size_t>(o.phase)).push_back(o);
  for (const auto& [phase, name] : {std::pair{0, "spread_"}, std::pair{1, "spike_"}}) {
    const Metrics part = summarise(phases.at(static_cast<std::size_t>(phase)), 1);
    for (const char* key : {"answered_2xx", "dropped", "p50_ms", "p95_ms", "max_ms"}) {
      m.set(std::string(name) + key, part.get(key));
    }
  }
  return m;
}

// The incident's own test script: every client asks the same, and waits for the answer.
Metrics Bench::closed() {
  const Call ask{-1, kPath, body_for("Explain quantum computing"), "", 0};
  int left = o_.clients * (o_.rounds - 1);
  auto again = [&](const Call&, const Outcome&, Call& next) {
    if (left-- <= 0) return false;
    next = ask;
    return true;
  };
  return summarise(client_.run(std::vector<Call>(static_cast<std::size_t>(o_.clients), ask), again), 0);
}

// Held: every request of the step got a 2xx and P95 stayed within the limit. One more try where it did not,
// since the machine may have hiccuped.
bool Bench::holds(double rate, Metrics& last) {
  for (int attempt = 0; attempt < 2; ++attempt) {
    last = summarise(client_.run(poisson(rate, o_.ramp_step_s)), o_.ramp_step_s);
    const bool held = last.get("answered_2xx") == last.get("sent") && last.get("p95_ms") <= o_.p95_limit_ms;
    fmt::print(stderr, "    {:.0f}/s: p95 {:.0f} ms, {:.0f} of {:.0f} answered, {:.0f} degraded{}{}\n", rate,
               last.get("p95_ms"), last.get("answered_2xx"), last.get("sent"), last.get("degraded"),
               held ? "" : ", not held", last.get("driver_lag_p99_ms") > 10 ? " (the driver was late)" : "");
    settle();
    if (held) return true;
  }
  return false;
}

// Steps up to the first rate that is not held, then two halvings of the gap. All but held_per_s is of the
// step at the highest rate held.
Metrics Bench::ramp() {
  Metrics best;
  Metrics last;
  double held = 0;
  double failed = o_.ramp_max * o_.ramp_growth;
  for (double rate = o_.ramp_start; rate <= o_.ramp_max; rate *= o_.ramp_growth) {
    if (!holds(rate, last)) {
      failed = rate;
      break;
    }
    held = rate;
    best = last;
  }
  for (int i = 0; i < 2 && failed <= o_.ramp_max; ++i) {
    const double middle = (held + failed) / 2;
    if (holds(middle, last)) {
      held = middle;
      best = last;
    } else {
      failed = middle;
    }
  }
  best.set("held_per_s", held);
  return best;
}

void Bench::warm_up() {
  for (int i = 0; i < o_.warmup; ++i) (void)client_.run({route_call(-1)});
  const std::vector<Prompt>& pool = prompts_.pool();
  std::size_t asked = 0;
  auto next_of_pool = [&](const Call&, const Outcome&, Call& next) {
    if (asked == pool.size()) return false;
    next = {-1, kPath, body_for(pool[asked++].text), ""};
    return true;
  };
  std::vector<Call> first(static_cast<std::size_t>(pool.empty() ? 0 : kPoolClients));
  for (Call& call : first) next_of_pool({}, {}, call);
  (void)client_.run(std::move(first), next_of_pool);
}

// How long until /health answers within 250 ms, at most limit_s.
double Bench::recovery(double limit_s) {
  const double begin_s = monotonic_s();
  double waited_s = 0;
  for (; waited_s < limit_s; waited_s = monotonic_s() - begin_s) {
    Client probe(o_.target, 0.25);
    const Outcome o = probe.run({Call{-1, "/health", "", ""}}).front();
    if (o.fate == Fate::answered && o.status == 200) return waited_s;
    usleep(100'000);
  }
  return waited_s;
}

void Bench::settle() {
  if (recovery(o_.settle_s) < o_.settle_s) return;
  fmt::print(stderr, "burst: no answer from /health within {:.0f} s\n", o_.settle_s);
  std::exit(1);
}

}  // namespace

bool is_scenario(const std::string& name) {
  return std::ranges::any_of(kScenarios, [&](const auto& each) { return each.first == name; });
}

Metrics run_scenario(const std::string& scenario, const Options& options, std::uint64_t seed) {
  return Bench(options, seed).run(scenario);
}

}  // namespace burst
