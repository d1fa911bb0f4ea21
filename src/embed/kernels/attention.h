// Self-attention of one sequence in float32, as a template over a vector type. Included only by the files
// that are compiled for one instruction set.
#pragma once

#include <cstddef>

#include "embed/kernels/kernels.h"
#include "embed/kernels/math.h"

namespace waybill::embed::kernels {
namespace {

// out[row][column] = sum over k of a[row][k] * b[k][column], kRows x kVectors vectors at a time.
template <class V, std::size_t kRows, std::size_t kVectors>
[[gnu::always_inline]] inline void product_tile(const float* a, std::size_t a_stride, const float* b,
                                                std::size_t b_stride, std::size_t depth, float* out,
                                                std::size_t out_stride) {
  typename V::Float sum[kRows][kVectors];
#pragma GCC unroll 16
  for (std::size_t r = 0; r < kRows; ++r) {
#pragma GCC unroll 16
    for (std::size_t c = 0; c < kVectors; ++c) sum[r][c] = V::zero();
  }
  for (std::size_t k = 0; k < depth; ++k) {
    typename V::Float row[kVectors];
#pragma GCC unroll 16
    for (std::size_t c = 0; c < kVectors; ++c) row[c] = V::load(b + k * b_stride + c * V::kFloats);
#pragma GCC unroll 16
    for (std::size_t r = 0; r < kRows; ++r) {
      const auto input = V::broadcast(a[r * a_stride + k]);
#pragma GCC unroll 16
      for (std::size_t c = 0; c < kVectors; ++c) sum[r][c] = V::fma(input, row[c], sum[r][c]);
    }
  }
#pragma GCC unroll 16
  for (std::size_t r = 0; r < kRows; ++r) {
#pragma GCC unroll 16
    for (std::size_t c = 0; c < kVectors; ++c) V::store(out + r * out_stride + c * V::kFloats, sum[r][c]);
  }
}

// The same over any number of vectors.
template <class V, std::size_t kRows>
void product_rows(const float* a, std::size_t a_stride, const float* b, std::size_t b_stride,
                  std::size_t depth, std::size_t vectors, float* out, std::size_t out_stride) {
  constexpr std::size_t kMost = V::kPanelVectors;
  std::size_t c = 0;
  for (; c + kMost <= vectors; c += kMost) {
    product_tile<V, kRows, kMost>(a, a_stride, b + c * V::kFloats, b_stride, depth, out + c * V::kFloats,
                                  out_stride);
  }
  for (; c + 2 <= vectors; c += 2) {
    product_tile<V, kRows, 2>(a, a_stride, b + c * V::kFloats, b_stride, depth, out + c * V::kFloats,
                              out_stride);
  }
  if (c < vectors)
    product_tile<V, kRows, 1>(a, a_stride, b + c * V::kFloats, b_stride, depth, out + c * V::kFloats,
                              out_stride);
}

template <class V>
void product(std::size_t rows, const float* a, std::size_t a_stride, const float* b, std::size_t b_stride,
             std::size_t depth, std::size_t vectors, float* out, std::size_t out_stride) {
  static_assert(V::kTileRows == 6);
  switch (rows) {
    case 1:
      return product_rows<V, 1>(a, a_stride, b, b_stride, depth, vectors, out, out_stride);
    case 2:
      return product_rows<V, 2>(a, a_stride, b, b_stride, depth, vectors, out, out_stride);
    case 3:
      return product_rows<V, 3>(a, a_stride, b, b_stride, depth, vectors, out, out_stride);
    case 4:
      return product_rows<V, 4>(a, a_stride, b, b_stride, depth, vectors, out, out_stride);
    case 5:
      return product_rows<V, 5>(a, a_stride, b, b_stride, depth, vectors, out, out_stride);
    default:
      return product_rows<V, 6>(a, a_stride, b, b_stride, depth, vectors, out, out_stride);
  }
}

// e to this is still a normal number: denormal ones cost a hundred cycles each.
constexpr float kLeastExponent = -87.0F;

// scores = exp(scale * (scores - largest)), not yet divided by their sum, which is returned.
template <class V>
float exponentiate(float* scores, std::size_t tokens, float scale) {
  const auto lowest = V::broadcast(-1e30F);
  const std::size_t last = (tokens - 1) / V::kFloats * V::kFloats;
  V::store(scores + last, V::first(tokens - last, V::load(scores + last), lowest));
  auto largest = lowest;
  for (std::size_t i = 0; i < tokens; i += V::kFloats) largest = V::max(largest, V::load(scores + i));
  const auto factor = V::broadcast(scale);
  const auto offset = V::broadcast(-scale * V::largest(largest));
  auto sum = V::zero();
  for (std::size_t i = 0; i < tokens; i += V::kFloats) {
    const auto e =
        exponential<V>(V::max(V::fma(V::load(scores + i), factor, offset), V::broadcast(kLeastExponent)));
    const auto kept = i == last ? V::first(tokens - last, e, V::zero()) : e;
    V::store(scores + i, kept);
    sum = V::add(sum, kept);
  }
  return V::sum(sum);
}

template <class V>
void attention(const AttentionCall& call) {
  const std::size_t hidden = call.heads * call.head_dim;
  const std::size_t padded = (call.tokens + 63) / 64 * 64;
  const std::size_t key_vectors = (call.tokens + V::kFloats - 1) / V::kFloats;
  const std::size_t value_vectors = (call.head_dim + V::kFloats - 1) / V::kFloats;
  const float scale = 1.0F / square_root(static_cast<float>(call.head_dim));
  float* const keys = call.scratch;                     // [head_dim][padded]
  float* const scores = keys + call.head_dim * padded;  // [kTileRows][padded]
  for (std::size_t h = 0; h < call.heads; ++h) {
    const float* const query = call.qkv + h * call.head_dim;
    const float* const key = query + hidden;
    const float* const value = key + hidden;
    for (std::size_t t = 0; t < call.tokens; t += V::kFloats) {
      for (std::size_t d = 0; d < call.head_dim; d += V::kFloats) {
        V::transpose(key + t * call.qkv_stride + d, call.qkv_stride, keys + d * padded + t, padded);
      }
    }
    for (std::size_t t = 0; t < call.tokens; t += V::kTileRows) {
      const std::size_t rows = call.tokens - t < V::kTileRows ? call.tokens - t : V::kTileRows;
      product<V>(rows, query + t * call.qkv_stride, call.qkv_stride, keys, padded, call.head_dim, key_vectors,
                 scores, padded);
      float factor[V::kTileRows];
      for (std::size_t r = 0; r < rows; ++r)
        factor[r] = 1.0F / exponentiate<V>(scores + r * padded, call.tokens, scale);
      // Where head_dim is no multiple of a vector, this writes past the head: the next head then overwrites
      // it.
      float* const out = call.out + t * call.out_stride + h * call.head_dim;
      product<V>(rows, scores, padded, value, call.qkv_stride, call.tokens, value_vectors, out,
                 call.out_stride);
      for (std::size_t r = 0; r < rows; ++r) {
        const auto share = V::broadcast(factor[r]);
        for (std::size_t c = 0; c < value_vectors; ++c) {
          float* const to = out + r * call.out_stride + c * V::kFloats;
          V::store(to, V::mul(V::load(to), share));
        }
      }
    }
  }
}

}  // namespace
}  // namespace waybill::embed::kernels
