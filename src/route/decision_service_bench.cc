// What the decision service costs beside the bare batcher and beside decide_batch(), on the same prompts in
// one run.
//   decision_service_bench FOLDER TRAIN.tsv PROMPTS.tsv
// 4 threads stand for event loops, each with 32 calls in flight; every prompt goes to the encoder (no cache,
// no static tier) but in the last line. Prints figures; not a test.
#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <cstdlib>
#include <deque>
#include <map>
#include <mutex>
#include <new>
#include <string>
#include <thread>
#include <vector>

#include <fmt/format.h>

#include "embed/decision_models.h"
#include "embed/text.h"
#include "route/dataset.h"
#include "route/decide_batch.h"
#include "route/decision_service.h"

namespace {
std::atomic<std::size_t> allocations{0};
}  // namespace

// NOLINTBEGIN: the signatures are the standard's
void* operator new(std::size_t size) {
  allocations.fetch_add(1, std::memory_order_relaxed);
  if (void* memory = std::malloc(size == 0 ? 1 : size)) return memory;
  throw std::bad_alloc();
}
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }
// NOLINTEND

namespace waybill::route {
namespace {

constexpr std::size_t kLoops = 4, kInFlight = 32;
constexpr int kRounds = 5;

// A ring of work that one thread runs, as an event loop does.
class Loop final : public Executor {
 public:
  void post(std::move_only_function<void()> work) override {
    {
      const std::lock_guard lock(mutex_);
      incoming_.push_back(std::move(work));
    }
    wake_.notify_one();
  }
  void wait_and_run() {
    {
      std::unique_lock lock(mutex_);
      wake_.wait(lock, [this] { return !incoming_.empty(); });
      running_.swap(incoming_);
    }
    for (auto& work : running_) work();
    running_.clear();
  }

 private:
  std::mutex mutex_;
  std::condition_variable wake_;
  std::vector<std::move_only_function<void()>> incoming_, running_;
};

// start(i, loop, done) begins prompt i; true when it was answered at once, else done() runs on the loop.
template <class Start>
double seconds_of(std::size_t prompts, const Start& start, double* caller_seconds = nullptr) {
  const SteadyClock clock;
  std::atomic<Duration::rep> calling{0};
  const TimePoint begun = clock.now();
  std::vector<std::jthread> threads;
  for (std::size_t t = 0; t < kLoops; ++t) {
    threads.emplace_back([&, t] {
      Loop loop;
      std::size_t in_flight = 0;
      Duration mine{};
      for (std::size_t i = t; i < prompts; i += kLoops) {
        while (in_flight == kInFlight) loop.wait_and_run();
        const TimePoint before = clock.now();
        ++in_flight;
        if (start(i, loop, in_flight)) --in_flight;
        mine += clock.now() - before;
      }
      // What the loop runs counts in_flight down.
      while (in_flight != 0) loop.wait_and_run();  // NOLINT(bugprone-infinite-loop)
      calling += mine.count();
    });
  }
  threads.clear();
  if (caller_seconds != nullptr)
    *caller_seconds = seconds(Duration(calling.load())) / static_cast<double>(prompts);
  return seconds(clock.now() - begun);
}

template <class T>
T must(Result<T> result) {
  if (result) return std::move(*result);
  fmt::print(stderr, "{}\n", result.error().message);
  std::exit(1);
}

config::Config config_of(const Dataset& train) {
  config::Config config;
  config.cache_folder = std::filesystem::temp_directory_path() / "waybill-service-bench";
  std::map<std::string, config::Route> routes;
  for (const Example& example : train.examples) {
    config::Route& route = routes[example.label];
    route.name = route.model = example.label;
    if (route.utterances.size() < 20) route.utterances.push_back({.text = example.text, .position = {}});
  }
  for (auto& [name, route] : routes) config.routes.push_back(std::move(route));
  config.tiers.cache.enabled = config.tiers.static_tier.enabled = false;
  return config;
}

int run(const std::filesystem::path& folder, const Dataset& train, const Dataset& labelled) {
  embed::ModelOptions model_options;
  model_options.folder = folder;
  const embed::DecisionModels models = must(embed::load_decision_models(model_options));
  const embed::Model& model = *models.first;
  RouterOptions router_options;
  router_options.exact_model = models.exact.get();
  config::Config config = config_of(train);
  const auto router = must(Router::load(config, model, router_options));
  config.tiers.cache.enabled = true;
  const auto caching = must(Router::load(config, model, router_options));
  std::vector<std::string> prompts;
  std::size_t tokens = 0;
  for (const Example& example : labelled.examples) prompts.push_back(example.text);
  std::vector<std::vector<embed::TokenId>> ids(prompts.size());
  std::vector<std::uint32_t> offsets{0};
  for (std::size_t i = 0; i < prompts.size(); ++i) {
    embed::tokenize(model.tokenizer(), model.config(), prompts[i], router->text_options(), ids[i], offsets);
    tokens += ids[i].size();
  }
  fmt::print("{} prompts of {:.1f} tokens, {} routes, {} on {}{}, {} cores; best of {} rounds\n",
             prompts.size(), static_cast<double>(tokens) / static_cast<double>(prompts.size()),
             config.routes.size(), to_string(model.precision()), to_string(model.isa()),
             models.exact ? " with a recheck" : "", std::thread::hardware_concurrency(), kRounds);

  const SteadyClock clock;
  WorkerPool texts({.name = "text"});
  DecisionServiceOptions options;
  options.batcher.max_queue_tokens = 1U << 20;
  DecisionService service(*router, model, texts, clock, options);
  DecisionService cached(*caching, model, texts, clock, options);
  const auto decide = [&prompts](DecisionService& with, std::size_t i, Loop& loop, std::size_t& in_flight) {
    const auto at_once =
        with.decide({.prompt = prompts[i], .executor = &loop}, [&in_flight](Result<DecisionAnswer> answer) {
          if (!answer) std::abort();
          --in_flight;
        });
    return at_once.has_value();
  };
  struct Line {
    const char* name;
    double seconds = 1e9, caller = 0, allocations = 0;
  };
  std::array<Line, 4> lines = {
      {{"decide_batch()"}, {"batcher alone"}, {"service"}, {"service, all in the cache"}}};
  DecideScratch scratch;
  for (int round = 0; round <= kRounds; ++round) {  // the first warms up
    for (std::size_t kind = 0; kind < lines.size(); ++kind) {
      double caller = 0, took = 0;
      const std::size_t before = allocations;
      if (kind == 0) {
        const TimePoint begun = clock.now();
        (void)decide_batch(*router, model, prompts, 0, scratch);
        took = seconds(clock.now() - begun);
      } else if (kind == 1) {
        took = seconds_of(
            prompts.size(),
            [&](std::size_t i, Loop& loop, std::size_t& in_flight) {
              const Status status = service.batcher().submit(
                  {.ids = ids[i], .executor = &loop, .done = [&in_flight](auto&&, const embed::BatchTiming&) {
                     --in_flight;
                   }});
              if (!status) std::abort();
              return false;
            },
            &caller);
      } else {
        DecisionService& with = kind == 2 ? service : cached;
        took = seconds_of(
            prompts.size(),
            [&](std::size_t i, Loop& loop, std::size_t& in_flight) {
              return decide(with, i, loop, in_flight);
            },
            &caller);
      }
      if (round == 0) continue;
      Line& line = lines[kind];
      if (took < line.seconds) line.seconds = took, line.caller = caller;
      line.allocations = static_cast<double>(allocations - before) / static_cast<double>(prompts.size());
    }
  }
  fmt::print("{:28} {:>10} {:>16} {:>14} {:>12}\n", "", "decisions/s", "of decide_batch", "caller's part",
             "allocations");
  for (const Line& line : lines) {
    fmt::print("{:28} {:10.0f} {:16.3f} {:11.1f} us {:12.3f}\n", line.name,
               static_cast<double>(prompts.size()) / line.seconds, lines[0].seconds / line.seconds,
               line.caller * 1e6, line.allocations);
  }
  const DecisionStats stats = service.stats();
  fmt::print("rechecked {} of {}\n", stats.decisions.rechecked,
             stats.decisions.encoder + stats.decisions.fallback);
  return 0;
}

}  // namespace
}  // namespace waybill::route

int main(int argc, char** argv) {
  using namespace waybill::route;
  if (argc != 4) {
    fmt::print(stderr, "usage: decision_service_bench FOLDER TRAIN.tsv PROMPTS.tsv\n");
    return 2;
  }
  const auto train = load_dataset(argv[2]);
  const auto prompts = load_dataset(argv[3]);
  if (!train || !prompts) return fmt::print(stderr, "{}\n", (train ? prompts : train).error().message), 1;
  return run(argv[1], *train, *prompts);
}
