// Inputs as integers, and the dot products on them. Included only by the files that are compiled for one
// instruction set.
//
// The integers of a row and the sums are the same for every instruction set; so are the float operations,
// element for element, and therefore the results.
#pragma once

#include <cstddef>
#include <cstdint>

#include <immintrin.h>

#include "embed/kernels/kernels.h"
#include "embed/kernels/rows.h"

namespace waybill::embed::kernels {
namespace {

template <class V>
inline typename V::Float load_integer_sum(const float* sums) {
  return V::to_float(V::load_lanes(reinterpret_cast<const std::byte*>(sums)));
}

// Four u8 inputs by four s8 weights a lane.
template <class V>
struct DotBytes {
  using Sum = typename V::Int;
  static constexpr Element kElement = Element::kS8;
  static constexpr bool kScaled = true;
  static Sum zero() { return V::zero_int(); }
  static Sum dot(Sum sum, typename V::Int inputs, typename V::Int weights) {
    return V::dot_bytes(sum, inputs, weights);
  }
  static typename V::Float load_sum(const float* sums) { return load_integer_sum<V>(sums); }
};

// Two s16 inputs by two s16 weights a lane. int8 without VNNI takes this too, its bytes widened when they are
// packed and prepared.
template <class V>
struct DotWords {
  using Sum = typename V::Int;
  static constexpr Element kElement = Element::kS16;
  static constexpr bool kScaled = true;
  static Sum zero() { return V::zero_int(); }
  static Sum dot(Sum sum, typename V::Int inputs, typename V::Int weights) {
    return V::dot_words(sum, inputs, weights);
  }
  static typename V::Float load_sum(const float* sums) { return load_integer_sum<V>(sums); }
};

template <Element kElement, class V>
[[gnu::always_inline]] inline void store_integers(std::byte* row, std::size_t i, typename V::Int integers) {
  if constexpr (kElement == Element::kS8) V::store_bytes(row + i, integers);
  if constexpr (kElement == Element::kS16) V::store_words(row + 2 * i, integers);
}

// int8: x = scale * q + least, q in 0..255, least and scale from the channels that are no outliers. Zero is
// in the range, so that an outlier channel, read as zero, is one of them; its weight in the product is zero.
template <class V, Element kElement>
void prepare_int8(const PackedLinear& linear, const float* inputs, std::size_t stride, std::size_t rows,
                  std::byte* prepared) {
  for (std::size_t r = 0; r < rows; ++r) {
    const float* const in = inputs + r * stride;
    std::byte* const out = prepared + r * linear.row_bytes;
    struct {
      typename V::Float below = V::zero(), above = V::zero();  // -least and most
    } parts[4];
    each_vector<V>(linear.inputs, parts, [&](auto& part, std::size_t i, std::size_t n) {
      const auto x = or_zero<V>(n, V::keep(V::load(in + i), linear.kept + i));
      part.below = V::max(part.below, V::sub(V::zero(), x));
      part.above = V::max(part.above, x);
    });
    const float low = -largest<V>({parts[0].below, parts[1].below, parts[2].below, parts[3].below});
    const float high = largest<V>({parts[0].above, parts[1].above, parts[2].above, parts[3].above});
    const float range = high - low;
    const float factor = range > 0.0F ? 255.0F / range : 0.0F;
    const auto scale = V::broadcast(factor);
    const auto offset = V::broadcast(-low * factor);
    each_vector<V>(linear.inputs, [&](std::size_t i, std::size_t n) {
      const auto x = or_zero<V>(n, V::keep(V::load(in + i), linear.kept + i));
      store_integers<kElement, V>(out, i, V::to_int(V::fma(x, scale, offset)));
    });
    auto* const tail = reinterpret_cast<float*>(out + std::size_t{linear.lanes} * 4);
    tail[0] = range * (1.0F / 255.0F);
    tail[1] = low;
    for (std::size_t t = 0; t < linear.outlier_count; ++t) tail[2 + t] = in[linear.outliers[t]];
  }
}

// int16: x = scale * q, |q| <= linear.limit.
template <class V>
void prepare_int16(const PackedLinear& linear, const float* inputs, std::size_t stride, std::size_t rows,
                   std::byte* prepared) {
  const auto limit = static_cast<float>(linear.limit);
  for (std::size_t r = 0; r < rows; ++r) {
    const float* const in = inputs + r * stride;
    std::byte* const out = prepared + r * linear.row_bytes;
    Four<V> most = {V::zero(), V::zero(), V::zero(), V::zero()};
    each_vector<V>(linear.inputs, most, [&](auto& high, std::size_t i, std::size_t n) {
      high = V::max(high, V::abs(or_zero<V>(n, V::keep(V::load(in + i), linear.kept + i))));
    });
    const float magnitude = largest<V>(most);
    const auto scale = V::broadcast(magnitude > 0.0F ? limit / magnitude : 0.0F);
    each_vector<V>(linear.inputs, [&](std::size_t i, std::size_t n) {
      const auto x = or_zero<V>(n, V::keep(V::load(in + i), linear.kept + i));
      store_integers<Element::kS16, V>(out, i, V::to_int(V::mul(x, scale)));
    });
    auto* const tail = reinterpret_cast<float*>(out + std::size_t{linear.lanes} * 4);
    tail[0] = magnitude / limit;
    for (std::size_t t = 0; t < linear.outlier_count; ++t) tail[1 + t] = in[linear.outliers[t]];
  }
}

}  // namespace
}  // namespace waybill::embed::kernels
