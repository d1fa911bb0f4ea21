#include "embed/bench.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <thread>

#include "embed/encoder.h"
#include "embed/kernels/kernels.h"

namespace waybill::embed {
namespace {

using BenchClock = std::chrono::steady_clock;

double seconds_since(BenchClock::time_point begin) {
  return std::chrono::duration<double>(BenchClock::now() - begin).count();
}

struct Batch {
  std::vector<TokenId> ids;
  std::vector<std::uint32_t> offsets = {0};
};

// Sequences of random words, packed in their order into batches of at most `max_tokens`.
class Workload {
 public:
  Workload(const Model& model, std::size_t max_tokens)
      : model_(model), max_tokens_(max_tokens), batches_(1) {}

  void append(std::size_t length) {
    const std::size_t tokens = std::min(length, model_.config().max_tokens);
    if (!batches_.back().ids.empty() && batches_.back().ids.size() + tokens > max_tokens_)
      batches_.emplace_back();
    Batch& batch = batches_.back();
    for (std::size_t i = 0; i < tokens; ++i) {
      batch.ids.push_back(static_cast<TokenId>(next() % model_.config().vocabulary));
    }
    batch.offsets.push_back(static_cast<std::uint32_t>(batch.ids.size()));
  }

  // Most prompts are short, a few are long: 5 to 128 tokens, 23 on average.
  void append_mixed() {
    const double uniform = (static_cast<double>(next()) + 1.0) / 4294967297.0;
    append(std::clamp<std::size_t>(5 + static_cast<std::size_t>(-18.5 * std::log(uniform)), 5, 128));
  }

  [[nodiscard]] const std::vector<Batch>& batches() const { return batches_; }

 private:
  std::uint32_t next() {  // Knuth's MMIX generator: the same on every machine
    state_ = state_ * 6364136223846793005U + 1442695040888963407U;
    return static_cast<std::uint32_t>(state_ >> 32);
  }

  const Model& model_;
  std::size_t max_tokens_;
  std::vector<Batch> batches_;
  std::uint64_t state_ = 1;
};

struct Count {
  std::size_t sentences = 0, tokens = 0;
};

// Runs the batches round and round until the time is over; per second.
BenchThroughput run_round(const Model& model, const std::vector<Batch>& batches, unsigned threads,
                          double seconds) {
  std::vector<Count> counts(threads);
  std::vector<double> elapsed(threads);
  std::atomic<unsigned> ready = 0;
  const auto work = [&](unsigned index) {
    Workspace workspace;
    std::vector<float> out;
    const auto run = [&](const Batch& batch) {
      out.resize((batch.offsets.size() - 1) * model.dim());
      model.forward({batch.ids, batch.offsets}, out, workspace);
    };
    run(batches.front());
    ++ready;
    while (ready < threads) std::this_thread::yield();
    const BenchClock::time_point begin = BenchClock::now();
    for (std::size_t i = index; elapsed[index] < seconds; ++i) {
      const Batch& batch = batches[i % batches.size()];
      run(batch);
      counts[index].sentences += batch.offsets.size() - 1;
      counts[index].tokens += batch.ids.size();
      elapsed[index] = seconds_since(begin);
    }
  };
  std::vector<std::jthread> others;
  for (unsigned t = 1; t < threads; ++t) others.emplace_back(work, t);
  work(0);
  others.clear();
  BenchThroughput out;
  for (unsigned t = 0; t < threads; ++t) {
    out.sentences_per_second += static_cast<double>(counts[t].sentences) / elapsed[t];
    out.tokens_per_second += static_cast<double>(counts[t].tokens) / elapsed[t];
  }
  return out;
}

double measure_peak(const Model& model, const BenchOptions& options) {
  constexpr std::size_t kRows = 96;
  const EncoderParts& parts = model.parts();
  const kernels::LinearKernels& kernel = parts.kernels->linear;
  const kernels::PackedLinear& linear =
      parts.weights->layers.front().linear[static_cast<std::size_t>(LinearKind::kQkv)];
  const std::size_t stride =
      std::size_t{linear.panel_count} * kernel.layout.panel_columns + kernels::kRowSlack;
  std::vector<float> in((kRows + kernels::kBatchRows) * stride, 0.5F);
  std::vector<float> out(in.size());
  std::vector<std::byte> memory((kRows + kernels::kBatchRows) * linear.row_bytes + 64);
  void* at = memory.data();
  std::size_t space = memory.size();
  auto* const prepared = static_cast<std::byte*>(std::align(64, memory.size() - 64, at, space));
  kernel.prepare(linear, in.data(), stride, kRows, prepared);
  const double operations = 2.0 * kRows * linear.inputs * 3.0 * static_cast<double>(model.config().hidden);
  double best = 0;
  for (unsigned round = 0; round < options.rounds; ++round) {
    const BenchClock::time_point begin = BenchClock::now();
    std::size_t runs = 0;
    double elapsed = 0;
    while (elapsed < std::chrono::duration<double>(options.round).count() / 4) {
      kernel.multiply(linear, prepared, kRows, out.data(), stride, kernels::Epilogue::kStore);
      ++runs;
      elapsed = seconds_since(begin);
    }
    best = std::max(best, static_cast<double>(runs) * operations / elapsed);
  }
  return best * 1e-9;
}

BenchLatency measure_latency(const Model& model, std::size_t tokens, const BenchOptions& options) {
  Workload workload(model, 1);
  for (int i = 0; i < 64; ++i) workload.append(tokens);
  const std::vector<Batch>& batches = workload.batches();
  Workspace workspace;
  std::vector<float> out(model.dim());
  BenchLatency best{tokens, HUGE_VAL, HUGE_VAL, HUGE_VAL};
  for (unsigned round = 0; round < options.rounds; ++round) {
    std::vector<double> times;
    const BenchClock::time_point round_begin = BenchClock::now();
    while (times.size() < 16 ||
           seconds_since(round_begin) < std::chrono::duration<double>(options.round).count()) {
      const Batch& batch = batches[times.size() % batches.size()];
      const BenchClock::time_point begin = BenchClock::now();
      model.forward({batch.ids, batch.offsets}, out, workspace);
      times.push_back(seconds_since(begin) * 1e3);
    }
    std::sort(times.begin(), times.end());
    best.p50_ms = std::min(best.p50_ms, times[times.size() / 2]);
    best.p90_ms = std::min(best.p90_ms, times[times.size() * 9 / 10]);
    best.least_ms = std::min(best.least_ms, times.front());
  }
  return best;
}

}  // namespace

EncoderBench bench_encoder(const Model& model, const BenchOptions& options, const Progress& progress) {
  const ModelConfig& c = model.config();
  EncoderBench out;
  out.operations_per_token =
      2.0 * static_cast<double>(c.layers * c.hidden) * static_cast<double>(4 * c.hidden + 2 * c.intermediate);
  std::array<std::pair<std::string_view, Workload>, 3> workloads = {
      std::pair{std::string_view("16 tokens"), Workload(model, options.max_batch_tokens)},
      std::pair{std::string_view("64 tokens"), Workload(model, options.max_batch_tokens)},
      std::pair{std::string_view("mixed"), Workload(model, options.max_batch_tokens)}};
  for (int i = 0; i < 256; ++i) {
    workloads[0].second.append(16);
    workloads[1].second.append(64);
    workloads[2].second.append_mixed();
  }
  constexpr std::array<std::size_t, 3> kLatencyTokens = {8, 16, 64};
  const std::size_t steps = 1 + workloads.size() * options.threads.size() + kLatencyTokens.size();
  std::size_t done = 0;
  const auto step = [&] { report(progress, "measuring", done++, steps); };
  step();
  out.peak_gops = measure_peak(model, options);
  for (const std::size_t tokens : kLatencyTokens) {
    step();
    out.latency.push_back(measure_latency(model, tokens, options));
  }
  for (const unsigned threads : options.threads) {
    for (const auto& [name, workload] : workloads) {
      step();
      BenchThroughput best;
      for (unsigned round = 0; round < options.rounds; ++round) {
        const double seconds = std::chrono::duration<double>(options.round).count();
        const BenchThroughput result = run_round(model, workload.batches(), threads, seconds);
        if (result.tokens_per_second > best.tokens_per_second) best = result;
      }
      best.workload = name;
      best.threads = threads;
      best.share_of_peak =
          best.tokens_per_second * out.operations_per_token * 1e-9 / (out.peak_gops * threads);
      out.throughput.push_back(best);
    }
  }
  report(progress, "measuring", steps, steps);
  return out;
}

}  // namespace waybill::embed
