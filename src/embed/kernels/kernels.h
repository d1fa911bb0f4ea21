// The encoder's arithmetic, once per instruction set: tables of function pointers, picked when a model is
// loaded.
//
// A linear layer is packed once (packing.h) for the family that will multiply it. Its bytes mean something to
// packing.cc and to that family alone; the encoder passes them on.
//
// No function allocates, throws or keeps state. The float operations done for a row, and their order, depend
// on nothing but that row (attention: on its sequence), so that results do not change with the batch.
#pragma once

#include <cstddef>
#include <cstdint>

#include "embed/precision.h"

namespace waybill::embed::kernels {

// How the four bytes of a lane are used: one f32, two bf16 or s16, four s8. Neighbours in a lane are
// neighbours in the input dimension.
enum class Element : std::uint8_t { kF32, kBf16, kS16, kS8 };

[[nodiscard]] constexpr std::size_t inputs_per_lane(Element element) noexcept {
  return element == Element::kF32 ? 1 : element == Element::kS8 ? 4 : 2;
}

// The layout of packed weights: panels of `panel_columns` outputs, each [lane][column] lanes of four bytes,
// inputs padded with zeros to a multiple of `input_multiple`.
struct Layout {
  Element element = Element::kF32;
  std::uint32_t panel_columns = 0;
  std::uint32_t input_multiple = 0;
};

// One packed linear layer, y = W x + b. Views into the packed weights.
//
// A panel is lanes * panel_columns lanes of four bytes, then rows of panel_columns floats: bias, and for
// integers the scale of each output and `terms` rows of side weights (packing.h). Panels lie one after the
// other, the panels of the layer that is computed next right behind them: kernels prefetch past the end.
struct PackedLinear {
  const std::byte* panels = nullptr;  // 64-byte aligned
  const std::uint32_t* kept =
      nullptr;  // [padded inputs]: all ones, or zero for an outlier channel; integers only
  const std::uint32_t* outliers = nullptr;  // channels multiplied in f32
  std::uint32_t outlier_count = 0;
  std::uint32_t inputs = 0;
  std::uint32_t lanes = 0;  // padded inputs / inputs_per_lane
  std::uint32_t panel_count = 0;
  std::uint32_t terms = 0;  // side weights: zero point and outliers
  std::size_t panel_bytes = 0;
  std::size_t row_bytes = 0;  // of one prepared row of inputs
  std::int32_t limit = 0;     // largest magnitude of a quantised input; int16 only
};

// What is done with a product before it is stored.
enum class Epilogue : std::uint8_t {
  kStore,
  kAdd,   // added to what is there: the residual connection
  kGelu,  // the erf form
  kGeluTanh,
  kRelu,
};

// Rows handed to and from kernels have room for kRowSlack floats past their last, and kBatchRows is what a
// batch of rows may be padded to: kernels may read and write there.
inline constexpr std::size_t kRowSlack = 64;
inline constexpr std::size_t kBatchRows = 16;

struct LinearKernels {
  Layout layout;

  // Brings rows of f32 inputs into the form multiply() takes (quantised, with their scales), row_bytes each.
  void (*prepare)(const PackedLinear& linear, const float* inputs, std::size_t stride, std::size_t rows,
                  std::byte* prepared);

  // out[r * stride + column] for every row and every column of every panel (padding included).
  void (*multiply)(const PackedLinear& linear, const std::byte* prepared, std::size_t rows, float* out,
                   std::size_t stride, Epilogue epilogue);
};

// One sequence's self-attention: softmax(Q K^T / sqrt(head_dim)) V for each head.
struct AttentionCall {
  const float* qkv =
      nullptr;  // [tokens][qkv_stride]: query, key and value of all heads, `hidden` floats each
  std::size_t qkv_stride = 0;
  float* out = nullptr;  // [tokens][out_stride]
  std::size_t out_stride = 0;
  std::size_t tokens = 0;
  std::size_t heads = 0;
  std::size_t head_dim = 0;
  float* scratch = nullptr;  // attention_scratch() floats, 64-byte aligned
};

// Floats of scratch for a sequence of `tokens`: transposed keys and a few rows of scores.
[[nodiscard]] constexpr std::size_t attention_scratch(std::size_t tokens, std::size_t head_dim) noexcept {
  return ((tokens + 63) / 64 * 64) * (head_dim + 16);
}

struct RowKernels {
  // x = (x - mean) / sqrt(variance + eps) * gamma + beta, each row of `width` floats; gamma and beta have
  // slack too.
  void (*layer_norm)(float* x, std::size_t stride, std::size_t rows, std::size_t width, const float* gamma,
                     const float* beta, float eps);
  // sum = a + b, `width` floats.
  void (*add)(const float* a, const float* b, std::size_t width, float* sum);
  void (*attention)(const AttentionCall& call);
  // The mean of the rows, divided by its Euclidean norm when asked. `out` has slack.
  void (*pool)(const float* x, std::size_t stride, std::size_t rows, std::size_t width, bool normalize,
               float* out);
};

struct KernelTable {
  LinearKernels linear;
  RowKernels rows;
};

// Null when this build has no kernels for the pair. Does not ask the CPU: see available().
[[nodiscard]] const KernelTable* find_kernels(Precision precision, Isa isa) noexcept;

}  // namespace waybill::embed::kernels
