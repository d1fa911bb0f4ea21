// What is done to rows between the linear layers, as templates over a vector type: LayerNorm, attention,
// pooling. Included only by the files that are compiled for one instruction set.
#pragma once

#include <cstddef>

#include "embed/kernels/kernels.h"
#include "embed/kernels/math.h"

namespace waybill::embed::kernels {
namespace {

template <class V>
void add_rows(const float* a, const float* b, std::size_t width, float* sum) {
  for (std::size_t i = 0; i < width; i += V::kFloats)
    V::store(sum + i, V::add(V::load(a + i), V::load(b + i)));
}

// Calls body(i, n) for each vector of a row, n its floats: whole vectors, then what is left.
template <class V, class Body>
[[gnu::always_inline]] inline void each_vector(std::size_t width, Body body) {
  std::size_t i = 0;
  for (; i + V::kFloats <= width; i += V::kFloats) body(i, V::kFloats);
  if (i < width) body(i, width - i);
}

// Four running values side by side, so that one does not wait for another; joined in a fixed order.
template <class V>
using Four = typename V::Float[4];

// Calls body(part, i, n) for each vector of a row as each_vector does, the four parts in turn.
template <class V, class Part, class Body>
[[gnu::always_inline]] inline void each_vector(std::size_t width, Part (&parts)[4], Body body) {
  std::size_t i = 0;
  for (; i + 4 * V::kFloats <= width; i += 4 * V::kFloats) {
#pragma GCC unroll 4
    for (std::size_t k = 0; k < 4; ++k) body(parts[k], i + k * V::kFloats, V::kFloats);
  }
  each_vector<V>(width - i, [&](std::size_t rest, std::size_t n) { body(parts[0], i + rest, n); });
}

template <class V>
[[gnu::always_inline]] inline float sum(const typename V::Float (&four)[4]) {
  return V::sum(V::add(V::add(four[0], four[1]), V::add(four[2], four[3])));
}

template <class V>
[[gnu::always_inline]] inline float largest(const typename V::Float (&four)[4]) {
  return V::largest(V::max(V::max(four[0], four[1]), V::max(four[2], four[3])));
}

template <class V>
[[gnu::always_inline]] inline typename V::Float or_zero(std::size_t n, typename V::Float v) {
  return n == V::kFloats ? v : V::first(n, v, V::zero());
}

template <class V>
void layer_norm(float* x, std::size_t stride, std::size_t rows, std::size_t width, const float* gamma,
                const float* beta, float eps) {
  const float share = 1.0F / static_cast<float>(width);
  for (std::size_t r = 0; r < rows; ++r) {
    float* const row = x + r * stride;
    Four<V> total = {V::zero(), V::zero(), V::zero(), V::zero()};
    each_vector<V>(width, total, [&](typename V::Float& part, std::size_t i, std::size_t n) {
      part = V::add(part, or_zero<V>(n, V::load(row + i)));
    });
    const auto mean = V::broadcast(sum<V>(total) * share);
    Four<V> squares = {V::zero(), V::zero(), V::zero(), V::zero()};
    each_vector<V>(width, squares, [&](typename V::Float& part, std::size_t i, std::size_t n) {
      const auto d = or_zero<V>(n, V::sub(V::load(row + i), mean));
      part = V::fma(d, d, part);
    });
    const auto scale = V::broadcast(1.0F / square_root(sum<V>(squares) * share + eps));
    each_vector<V>(width, [&](std::size_t i, std::size_t) {
      const auto d = V::mul(V::sub(V::load(row + i), mean), scale);
      V::store(row + i, V::fma(d, V::load(gamma + i), V::load(beta + i)));
    });
  }
}

template <class V>
void pool(const float* x, std::size_t stride, std::size_t rows, std::size_t width, bool normalize,
          float* out) {
  const auto share = V::broadcast(1.0F / static_cast<float>(rows));
  auto squares = V::zero();
  each_vector<V>(width, [&](std::size_t i, std::size_t n) {
    auto sum = V::load(x + i);
    for (std::size_t r = 1; r < rows; ++r) sum = V::add(sum, V::load(x + r * stride + i));
    sum = or_zero<V>(n, V::mul(sum, share));
    squares = V::fma(sum, sum, squares);
    V::store(out + i, sum);
  });
  if (!normalize) return;
  const float norm = square_root(V::sum(squares));
  const auto scale =
      V::broadcast(1.0F / (norm > 1e-12F ? norm : 1e-12F));  // as torch.nn.functional.normalize
  each_vector<V>(width,
                 [&](std::size_t i, std::size_t) { V::store(out + i, V::mul(V::load(out + i), scale)); });
}

}  // namespace
}  // namespace waybill::embed::kernels
