#include "embed/encoder.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <new>
#include <utility>

#include "base/check.h"

namespace waybill::embed {
namespace {

// Tokens that go through both feed-forward layers before the next ones: what lies between stays in the L2
// cache.
constexpr std::size_t kFeedForwardBlock = 128;
// Rows that are normalised and prepared for the next layer before the next ones: they stay in the L1 cache.
constexpr std::size_t kRowBlock = 8;
constexpr std::size_t kAlignment = 64;

constexpr std::size_t round_up(std::size_t n, std::size_t multiple) {
  return (n + multiple - 1) / multiple * multiple;
}

// One forward pass: what its steps share.
class Pass {
 public:
  Pass(const EncoderParts& parts, const PackedBatch& batch, EncoderBuffers& buffers, LinearObserver* observer)
      : config_(*parts.config),
        linear_(parts.kernels->linear),
        rows_(parts.kernels->rows),
        weights_(*parts.weights),
        words_(*parts.words),
        batch_(batch),
        buffers_(buffers),
        observer_(observer),
        tokens_(batch.ids.size()) {}

  void run(std::span<float> out) {
    embed();
    normalise_and_prepare(weights_.embedding_norm, 0, 0, tokens_);
    for (std::size_t i = 0; i < weights_.layers.size(); ++i) {
      attend(i);
      feed_forward(i);
    }
    pool(out);
  }

 private:
  const kernels::PackedLinear& linear(std::size_t layer, LinearKind kind) const {
    return weights_.layers[layer].linear[static_cast<std::size_t>(kind)];
  }

  float* hidden(std::size_t token) const { return buffers_.hidden + token * buffers_.hidden_stride; }

  // Words, positions and type 0, added.
  void embed() {
    for (std::size_t s = 0; s < batch_.sequences(); ++s) {
      for (std::uint32_t t = batch_.offsets[s]; t < batch_.offsets[s + 1]; ++t) {
        const auto id = static_cast<std::size_t>(batch_.ids[t]);
        WAYBILL_CHECK(id < config_.vocabulary);
        buffers_.words.copy_row(words_, id, std::span(buffers_.row, config_.hidden));
        const float* const position = weights_.positions + (t - batch_.offsets[s]) * weights_.hidden_stride;
        rows_.add(buffers_.row, position, config_.hidden, hidden(t));
      }
    }
  }

  void observe(std::size_t layer, LinearKind kind, const float* rows, std::size_t stride, std::size_t count) {
    if (observer_ != nullptr && layer < weights_.layers.size())
      observer_->inputs(layer, kind, rows, stride, count);
  }

  void prepare(std::size_t layer, LinearKind kind, const float* rows, std::size_t stride, std::size_t count,
               std::byte* to) {
    observe(layer, kind, rows, stride, count);
    linear_.prepare(linear(layer, kind), rows, stride, count, to);
  }

  // LayerNorm of the residual stream, and its rows prepared for the layer's attention.
  void normalise_and_prepare(const NormView& norm, std::size_t next_layer, std::size_t begin,
                             std::size_t end) {
    for (std::size_t t = begin; t < end; t += kRowBlock) {
      const std::size_t n = std::min(kRowBlock, end - t);
      rows_.layer_norm(hidden(t), buffers_.hidden_stride, n, config_.hidden, norm.gamma, norm.beta,
                       config_.layer_norm_eps);
      if (next_layer == weights_.layers.size()) continue;
      const std::size_t row_bytes = linear(next_layer, LinearKind::kQkv).row_bytes;
      prepare(next_layer, LinearKind::kQkv, hidden(t), buffers_.hidden_stride, n,
              buffers_.prepared + t * row_bytes);
    }
  }

  // hidden += attention, not yet normalised. Finds its inputs in `prepared`.
  void attend(std::size_t layer) {
    linear_.multiply(linear(layer, LinearKind::kQkv), buffers_.prepared, tokens_, buffers_.wide,
                     buffers_.qkv_stride, kernels::Epilogue::kStore);
    for (std::size_t s = 0; s < batch_.sequences(); ++s) {
      const std::size_t begin = batch_.offsets[s];
      kernels::AttentionCall call;
      call.qkv = buffers_.wide + begin * buffers_.qkv_stride;
      call.qkv_stride = buffers_.qkv_stride;
      call.out = buffers_.context + begin * buffers_.hidden_stride;
      call.out_stride = buffers_.hidden_stride;
      call.tokens = batch_.offsets[s + 1] - begin;
      call.heads = config_.heads;
      call.head_dim = config_.head_dim();
      call.scratch = buffers_.attention;
      rows_.attention(call);
    }
    prepare(layer, LinearKind::kAttentionOut, buffers_.context, buffers_.hidden_stride, tokens_,
            buffers_.prepared);
    linear_.multiply(linear(layer, LinearKind::kAttentionOut), buffers_.prepared, tokens_, buffers_.hidden,
                     buffers_.hidden_stride, kernels::Epilogue::kAdd);
  }

  void feed_forward(std::size_t layer) {
    const LayerView& view = weights_.layers[layer];
    const kernels::PackedLinear& in = linear(layer, LinearKind::kFeedForwardIn);
    const kernels::PackedLinear& out = linear(layer, LinearKind::kFeedForwardOut);
    for (std::size_t begin = 0; begin < tokens_; begin += kFeedForwardBlock) {
      const std::size_t end = std::min(begin + kFeedForwardBlock, tokens_);
      for (std::size_t t = begin; t < end; t += kRowBlock) {
        const std::size_t n = std::min(kRowBlock, end - t);
        rows_.layer_norm(hidden(t), buffers_.hidden_stride, n, config_.hidden, view.attention_norm.gamma,
                         view.attention_norm.beta, config_.layer_norm_eps);
        prepare(layer, LinearKind::kFeedForwardIn, hidden(t), buffers_.hidden_stride, n,
                buffers_.prepared_wide + (t - begin) * in.row_bytes);
      }
      linear_.multiply(in, buffers_.prepared_wide, end - begin, buffers_.wide, buffers_.intermediate_stride,
                       activation());
      prepare(layer, LinearKind::kFeedForwardOut, buffers_.wide, buffers_.intermediate_stride, end - begin,
              buffers_.prepared_wide);
      linear_.multiply(out, buffers_.prepared_wide, end - begin, hidden(begin), buffers_.hidden_stride,
                       kernels::Epilogue::kAdd);
      normalise_and_prepare(view.output_norm, layer + 1, begin, end);
    }
  }

  kernels::Epilogue activation() const {
    switch (config_.activation) {
      case Activation::kGelu:
        return kernels::Epilogue::kGelu;
      case Activation::kGeluTanh:
        return kernels::Epilogue::kGeluTanh;
      case Activation::kRelu:
        return kernels::Epilogue::kRelu;
    }
    WAYBILL_CHECK(false);
  }

  void pool(std::span<float> out) {
    for (std::size_t s = 0; s < batch_.sequences(); ++s) {
      const std::size_t begin = batch_.offsets[s];
      const std::size_t rows = config_.pooling == Pooling::kCls ? 1 : batch_.offsets[s + 1] - begin;
      rows_.pool(hidden(begin), buffers_.hidden_stride, rows, config_.hidden, config_.normalize,
                 buffers_.row);
      std::copy_n(buffers_.row, config_.hidden,
                  out.begin() + static_cast<std::ptrdiff_t>(s * config_.hidden));
    }
  }

  const ModelConfig& config_;
  const kernels::LinearKernels& linear_;
  const kernels::RowKernels& rows_;
  const WeightsView& weights_;
  const WordTable& words_;
  const PackedBatch& batch_;
  EncoderBuffers& buffers_;
  LinearObserver* observer_;
  std::size_t tokens_;
};

}  // namespace

void EncoderBuffers::Free::operator()(std::byte* bytes) const noexcept { std::free(bytes); }

void EncoderBuffers::reserve(const EncoderParts& parts, std::size_t tokens, std::size_t longest) {
  const ModelConfig& c = *parts.config;
  const std::size_t columns = parts.kernels->linear.layout.panel_columns;
  const auto stride = [columns](std::size_t width) {
    return round_up(width + kernels::kRowSlack / 4, columns);
  };
  hidden_stride = stride(c.hidden);
  qkv_stride = stride(3 * c.hidden);
  intermediate_stride = stride(c.intermediate);
  const std::size_t block = std::min(tokens, kFeedForwardBlock);
  std::size_t row_bytes[kLinearKinds] = {};
  for (const LayerView& layer : parts.weights->layers) {
    for (std::size_t k = 0; k < kLinearKinds; ++k)
      row_bytes[k] = std::max(row_bytes[k], layer.linear[k].row_bytes);
  }
  const auto floats = [](std::size_t rows, std::size_t width) {
    return round_up(((rows + kernels::kBatchRows) * width + kernels::kRowSlack) * sizeof(float), kAlignment);
  };
  const auto bytes = [](std::size_t rows, std::size_t width) {
    return round_up((rows + kernels::kBatchRows) * width, kAlignment);
  };
  const std::size_t sizes[] = {
      floats(tokens, hidden_stride),
      std::max(floats(tokens, qkv_stride), floats(block, intermediate_stride)),
      floats(tokens, hidden_stride),
      bytes(tokens, std::max(row_bytes[0], row_bytes[1])),
      bytes(block, std::max(row_bytes[2], row_bytes[3])),
      floats(1, kernels::attention_scratch(longest, c.head_dim()) / kernels::kBatchRows + 1),
      floats(0, hidden_stride),
  };
  std::size_t total = 0;
  for (const std::size_t size : sizes) total += size;
  if (total > size_) {
    memory_.reset(static_cast<std::byte*>(std::aligned_alloc(kAlignment, total)));
    if (!memory_) throw std::bad_alloc();
    std::memset(memory_.get(), 0, total);  // kernels read the slack
    size_ = total;
  }
  std::byte* at = memory_.get();
  std::size_t next = 0;
  const auto take = [&] { return std::exchange(at, at + sizes[next++]); };
  hidden = reinterpret_cast<float*>(take());
  wide = reinterpret_cast<float*>(take());
  context = reinterpret_cast<float*>(take());
  prepared = take();
  prepared_wide = take();
  attention = reinterpret_cast<float*>(take());
  row = reinterpret_cast<float*>(take());
}

void encode(const EncoderParts& parts, const PackedBatch& batch, std::span<float> out,
            EncoderBuffers& buffers, LinearObserver* observer) {
  WAYBILL_CHECK(out.size() == batch.sequences() * parts.config->hidden);
  if (batch.sequences() == 0) return;
  WAYBILL_CHECK(batch.offsets.front() == 0 && batch.offsets.back() == batch.ids.size());
  std::size_t longest = 0;
  for (std::size_t s = 0; s < batch.sequences(); ++s) {
    const std::size_t tokens = batch.offsets[s + 1] - batch.offsets[s];
    WAYBILL_CHECK(batch.offsets[s] < batch.offsets[s + 1] && tokens <= parts.config->max_tokens);
    longest = std::max(longest, tokens);
  }
  buffers.reserve(parts, batch.ids.size(), longest);
  Pass(parts, batch, buffers, observer).run(out);
}

}  // namespace waybill::embed
