// How fast the encoder is on this machine, and how much of what its kernels could do that is.
#pragma once

#include <chrono>
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "base/progress.h"
#include "embed/model.h"

namespace waybill::embed {

struct BenchOptions {
  std::vector<unsigned> threads = {1, 2};
  std::size_t max_batch_tokens = 128;
  unsigned rounds = 5;  // the best round counts: neighbours on the machine only ever slow one down
  std::chrono::milliseconds round{200};
};

// One kind of traffic on some threads.
struct BenchThroughput {
  std::string_view workload;  // "16 tokens", "64 tokens", "mixed" (5 to 128 tokens, mean 23)
  unsigned threads = 0;
  double sentences_per_second = 0;
  double tokens_per_second = 0;
  double share_of_peak = 0;  // operations of the linear layers per second, of `threads` times the peak
};

struct BenchLatency {
  std::size_t tokens = 0;
  double p50_ms = 0, p90_ms = 0, least_ms = 0;
};

struct EncoderBench {
  double peak_gops =
      0;  // one linear layer again and again, hot in cache, one thread; a multiply-add is two operations
  double operations_per_token = 0;  // of all linear layers
  std::vector<BenchThroughput> throughput;
  std::vector<BenchLatency> latency;  // of one prompt alone on one thread
};

// Measures on the calling thread and `threads` more; takes about rounds * round for each figure.
[[nodiscard]] EncoderBench bench_encoder(const Model& model, const BenchOptions& options = {},
                                         const Progress& progress = {});

}  // namespace waybill::embed
