// The transformer's forward pass over packed sequences.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "embed/kernels/kernels.h"
#include "embed/packed_weights.h"
#include "embed/tokenizer.h"
#include "embed/word_table.h"

namespace waybill::embed {

// Sequences laid back to back, never padded: sequence i is ids[offsets[i] .. offsets[i + 1]).
struct PackedBatch {
  std::span<const TokenId> ids;
  std::span<const std::uint32_t>
      offsets;  // sequences + 1 entries; offsets[0] == 0, offsets.back() == ids.size()

  [[nodiscard]] std::size_t sequences() const noexcept { return offsets.empty() ? 0 : offsets.size() - 1; }
};

// What the forward pass reads. Everything outlives it.
struct EncoderParts {
  const ModelConfig* config = nullptr;
  const kernels::KernelTable* kernels = nullptr;
  const WeightsView* weights = nullptr;
  const WordTable* words = nullptr;  // [vocabulary, hidden]
};

// Sees the inputs of each linear layer as they pass, for calibration.
class LinearObserver {
 public:
  virtual ~LinearObserver() = default;
  virtual void inputs(std::size_t layer, LinearKind kind, const float* rows, std::size_t stride,
                      std::size_t count) = 0;
};

// The buffers between the layers. Grow to the largest batch and are then reused.
class EncoderBuffers {
 public:
  // Makes room for batches of `tokens` whose longest sequence is `longest`.
  void reserve(const EncoderParts& parts, std::size_t tokens, std::size_t longest);

  float* hidden = nullptr;  // [tokens][hidden_stride]: the residual stream
  float* wide =
      nullptr;  // [tokens][qkv_stride], and between the feed-forward layers [block][intermediate_stride]
  float* context = nullptr;       // [tokens][hidden_stride]: what attention found
  std::byte* prepared = nullptr;  // rows as the kernels of a linear layer take them
  std::byte* prepared_wide = nullptr;
  float* attention = nullptr;  // scratch
  float* row = nullptr;        // one row of slack's own
  WordCache words;
  std::size_t hidden_stride = 0, qkv_stride = 0, intermediate_stride = 0;

 private:
  struct Free {
    void operator()(std::byte* bytes) const noexcept;
  };
  std::unique_ptr<std::byte[], Free> memory_;
  std::size_t size_ = 0;
};

// out[i * hidden .. (i + 1) * hidden) = the embedding of sequence i. Allocates only when the buffers grow.
void encode(const EncoderParts& parts, const PackedBatch& batch, std::span<float> out,
            EncoderBuffers& buffers, LinearObserver* observer = nullptr);

}  // namespace waybill::embed
