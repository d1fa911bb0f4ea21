// What the static table and the batcher's queue cost, against the encoder's forward pass.
// static_table_bench [MODEL_FOLDER]
#include <algorithm>
#include <array>
#include <chrono>
#include <functional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/clock.h"
#include "base/executor.h"
#include "embed/batcher.h"
#include "embed/model.h"
#include "embed/static_table.h"

namespace {

using namespace waybill;
using namespace waybill::embed;

// The best of five rounds, in nanoseconds a call.
double best_ns(int calls, const std::function<void(int)>& work) {
  double best = 1e18;
  for (int round = 0; round < 5; ++round) {
    const auto start = std::chrono::steady_clock::now();
    for (int i = 0; i < calls; ++i) work(i);
    const std::chrono::duration<double, std::nano> took = std::chrono::steady_clock::now() - start;
    best = std::min(best, took.count() / calls);
  }
  return best;
}

class NoFunction final : public BatchFunction {
 public:
  [[nodiscard]] std::size_t dim() const noexcept override { return 384; }
  std::size_t run(unsigned, const PackedBatch& batch, std::span<void* const>, std::span<float>) override {
    return batch.ids.size();
  }
};

// Nanoseconds an item through the batcher when nothing is computed, `submitters` threads at once.
double batcher_ns(unsigned submitters) {
  constexpr int kItems = 200'000;
  NoFunction function;
  SteadyClock clock;
  InlineExecutor executor;
  Batcher batcher(function, {.threads = 1}, clock);
  const std::vector<TokenId> ids(16, 1);
  const auto start = std::chrono::steady_clock::now();
  {
    std::vector<std::jthread> threads;
    for (unsigned t = 0; t < submitters; ++t) {
      threads.emplace_back([&] {
        for (int i = 0; i < kItems;) {
          Batcher::Item item{.ids = ids, .executor = &executor, .done = [](auto&&, const BatchTiming&) {}};
          if (batcher.submit(std::move(item))) ++i;
        }
      });
    }
  }
  while (batcher.stats().answered < static_cast<std::uint64_t>(kItems) * submitters)
    std::this_thread::yield();
  const std::chrono::duration<double, std::nano> took = std::chrono::steady_clock::now() - start;
  return took.count() / (static_cast<double>(kItems) * submitters);
}

}  // namespace

int main(int argc, char** argv) {
  const auto model =
      Model::load({.folder = argc > 1 ? argv[1] : "models/all-MiniLM-L6-v2", .precision = {}, .isa = {}});
  if (!model) return fmt::print(stderr, "{}\n", model.error().message), 1;
  StaticTableReport report;
  const auto table = StaticTable::load_or_distill(*model, 0, {}, &report);
  if (!table) return fmt::print(stderr, "{}\n", table.error().message), 1;
  fmt::print("table {} in {:.3f} s\n", report.from_cache_file ? "mapped" : "distilled", report.seconds);

  // 16-token prompts of words from all over the vocabulary, so that rows do not stay in the first cache.
  std::vector<std::array<TokenId, 16>> prompts(2048);
  unsigned random = 1;
  for (auto& prompt : prompts) {
    for (TokenId& id : prompt) {
      random = random * 1664525 + 1013904223;
      id = static_cast<TokenId>(1996 + (random >> 8) % (table->vocabulary() - 1996));
    }
  }
  std::vector<float> vector(table->dim()), full(model->dim());
  const double table_ns =
      best_ns(200'000, [&](int i) { table->embed(prompts[static_cast<std::size_t>(i) % 2048], vector); });

  Workspace workspace;
  const std::array<std::uint32_t, 2> offsets = {0, 16};
  const double encoder_ns = best_ns(
      200, [&](int i) { model->forward({prompts[static_cast<std::size_t>(i)], offsets}, full, workspace); });

  fmt::print("{:<44} {:>10} {:>16}\n", "a prompt of 16 tokens", "us", "x the encoder");
  const auto row = [&](std::string_view name, double ns) {
    fmt::print("{:<44} {:>10.2f} {:>16.5f}\n", name, ns / 1e3, ns / encoder_ns);
  };
  row("encoder, one thread", encoder_ns);
  row("static table", table_ns);
  row("through the batcher, 1 submitter", batcher_ns(1));
  row("through the batcher, 4 submitters", batcher_ns(4));
  return 0;
}
