#include "embed/calibrate.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <numeric>
#include <vector>

#include "embed/encoder.h"

namespace waybill::embed {
namespace {

constexpr std::size_t kOutliers = 8;
constexpr std::size_t kSequences = 64;
constexpr std::size_t kBatch = 16;  // sequences

// The largest magnitude of each input channel of each linear layer.
class Magnitudes final : public LinearObserver {
 public:
  explicit Magnitudes(const ModelConfig& config) : largest_(config.layers * kLinearKinds) {
    for (std::size_t i = 0; i < largest_.size(); ++i) {
      const bool wide = static_cast<LinearKind>(i % kLinearKinds) == LinearKind::kFeedForwardOut;
      largest_[i].resize(wide ? config.intermediate : config.hidden);
    }
  }

  void inputs(std::size_t layer, LinearKind kind, const float* rows, std::size_t stride,
              std::size_t count) override {
    std::vector<float>& largest = largest_[layer * kLinearKinds + static_cast<std::size_t>(kind)];
    for (std::size_t r = 0; r < count; ++r) {
      for (std::size_t i = 0; i < largest.size(); ++i)
        largest[i] = std::max(largest[i], std::fabs(rows[r * stride + i]));
    }
  }

  [[nodiscard]] OutlierChannels outliers() const {
    OutlierChannels out;
    for (const std::vector<float>& largest : largest_) {
      std::vector<std::uint32_t> channels(largest.size());
      std::iota(channels.begin(), channels.end(), 0U);
      const std::size_t count = std::min(kOutliers, channels.size());
      const auto end = channels.begin() + static_cast<std::ptrdiff_t>(count);
      std::partial_sort(channels.begin(), end, channels.end(), [&largest](std::uint32_t a, std::uint32_t b) {
        return largest[a] != largest[b] ? largest[a] > largest[b] : a < b;
      });
      channels.resize(count);
      std::sort(channels.begin(), channels.end());
      out.push_back(std::move(channels));
    }
    return out;
  }

 private:
  std::vector<std::vector<float>> largest_;
};

// Sequences of 6 to 21 tokens: common whole words of a BERT vocabulary, which lie in its first half, between
// the first and the last token that every text has.
class RandomSequences {
 public:
  RandomSequences(const ModelConfig& config, TokenId first, TokenId last)
      : config_(config), first_(first), last_(last) {}

  void append(std::vector<TokenId>& ids, std::vector<std::uint32_t>& offsets) {
    const std::size_t most = std::min<std::size_t>(config_.max_tokens, 21);
    const std::size_t length = most < 6 ? most : 6 + next() % (most - 5);
    for (std::size_t i = 0; i < length; ++i) {
      const std::size_t low = config_.vocabulary / 15;
      const std::size_t word = low + next() % std::max<std::size_t>(config_.vocabulary * 2 / 5 - low, 1);
      ids.push_back(i == 0 ? first_ : i + 1 == length ? last_ : static_cast<TokenId>(word));
    }
    offsets.push_back(static_cast<std::uint32_t>(ids.size()));
  }

 private:
  std::uint32_t next() {  // a linear congruential generator (Knuth, MMIX): the same on every machine
    state_ = state_ * 6364136223846793005U + 1442695040888963407U;
    return static_cast<std::uint32_t>(state_ >> 33);
  }

  const ModelConfig& config_;
  TokenId first_, last_;
  std::uint64_t state_ = 1;
};

}  // namespace

Result<OutlierChannels> find_outliers(const ModelFolder& folder, Precision precision, Isa isa, TokenId first,
                                      TokenId last) {
  const ModelConfig& config = folder.config;
  const Result<PackedWeights> weights = PackedWeights::pack(folder, {precision, isa, 0}, {});
  if (!weights) return std::unexpected(weights.error());
  const Result<Tensor> words =
      folder.tensor("embeddings.word_embeddings.weight", std::vector{config.vocabulary, config.hidden});
  if (!words) return std::unexpected(words.error());
  const WordTable table(*words);
  const EncoderParts parts = {&config, kernels::find_kernels(precision, isa), &weights->view(), &table};

  Magnitudes magnitudes(config);
  RandomSequences sequences(config, first, last);
  EncoderBuffers buffers;
  std::vector<float> ignored(kBatch * config.hidden);
  for (std::size_t done = 0; done < kSequences; done += kBatch) {
    std::vector<TokenId> ids;
    std::vector<std::uint32_t> offsets = {0};
    for (std::size_t i = 0; i < kBatch; ++i) sequences.append(ids, offsets);
    encode(parts, {ids, offsets}, ignored, buffers, &magnitudes);
  }
  return magnitudes.outliers();
}

}  // namespace waybill::embed
