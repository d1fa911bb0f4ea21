// Linear layers as templates over a vector type and a dot product. Included only by the files that are
// compiled for one instruction set.
#pragma once

#include <cstddef>
#include <cstdint>

#include <immintrin.h>

#include "embed/kernels/kernels.h"
#include "embed/kernels/math.h"

namespace waybill::embed::kernels {
namespace {

// One lane of float32.
template <class V>
struct DotF32 {
  using Sum = typename V::Float;
  static constexpr Element kElement = Element::kF32;
  static constexpr bool kScaled = false;
  static Sum zero() { return V::zero(); }
  static Sum dot(Sum sum, typename V::Int inputs, typename V::Int weights) {
    return V::fma(V::as_float(inputs), V::as_float(weights), sum);
  }
  static typename V::Float load_sum(const float* sums) { return V::load(sums); }
};

// The panel that is multiplied and where the next one is fetched from while that goes on.
struct PanelWalk {
  const std::byte* lanes;
  const char* prefetch;
  std::size_t lines_per_step;  // cache lines to prefetch every kStep lanes
};
constexpr std::size_t kStep = 8;
constexpr std::size_t kCacheLine = 64;

// sums[row][column] = rows x panel, as Dot::load_sum() reads them; the heart of it all. Every sum is in a
// register, a lane of weights is loaded once for kRows rows, a lane of inputs is broadcast by the load ports.
template <class V, class Dot, std::size_t kRows>
[[gnu::always_inline]] inline void multiply_tile(PanelWalk walk, std::size_t lanes, const std::byte* rows,
                                                 std::size_t row_bytes, float* sums) {
  constexpr std::size_t kColumns = V::kPanelVectors;
  constexpr std::size_t kLaneBytes = 4;
  constexpr std::size_t kVectorBytes = V::kFloats * kLaneBytes;
  typename Dot::Sum sum[kRows][kColumns];
#pragma GCC unroll 16
  for (std::size_t r = 0; r < kRows; ++r) {
#pragma GCC unroll 16
    for (std::size_t c = 0; c < kColumns; ++c) sum[r][c] = Dot::zero();
  }
  const auto step = [&](std::size_t lane) __attribute__((always_inline)) {
    typename V::Int weights[kColumns];
#pragma GCC unroll 16
    for (std::size_t c = 0; c < kColumns; ++c) {
      weights[c] = V::load_lanes(walk.lanes + (lane * kColumns + c) * kVectorBytes);
    }
#pragma GCC unroll 16
    for (std::size_t r = 0; r < kRows; ++r) {
      const auto input = V::broadcast_lane(rows + r * row_bytes + lane * kLaneBytes);
#pragma GCC unroll 16
      for (std::size_t c = 0; c < kColumns; ++c) sum[r][c] = Dot::dot(sum[r][c], input, weights[c]);
    }
  };
  std::size_t lane = 0;
  for (; lane + kStep <= lanes; lane += kStep) {
    for (std::size_t i = 0; i < walk.lines_per_step; ++i, walk.prefetch += kCacheLine) {
      _mm_prefetch(walk.prefetch, _MM_HINT_T1);
    }
#pragma GCC unroll 8
    for (std::size_t i = 0; i < kStep; ++i) step(lane + i);
  }
  for (; lane < lanes; ++lane) step(lane);
#pragma GCC unroll 16
  for (std::size_t r = 0; r < kRows; ++r) {
#pragma GCC unroll 16
    for (std::size_t c = 0; c < kColumns; ++c) {
      __builtin_memcpy(sums + (r * kColumns + c) * V::kFloats, &sum[r][c], kVectorBytes);
    }
  }
}

template <class V, class Dot, Epilogue kEpilogue>
inline typename V::Float finish(typename V::Float value, const float* out) {
  if constexpr (kEpilogue == Epilogue::kAdd) return V::add(value, V::load(out));
  if constexpr (kEpilogue == Epilogue::kGelu && Dot::kElement == Element::kF32) return gelu<V>(value);
  if constexpr (kEpilogue == Epilogue::kGelu) return gelu_fast<V>(value);
  if constexpr (kEpilogue == Epilogue::kGeluTanh) return gelu_tanh<V>(value);
  if constexpr (kEpilogue == Epilogue::kRelu) return V::max(value, V::zero());
  return value;
}

// From a tile's sums to a tile of the result: scales, side terms, bias, epilogue. `tail` is what follows the
// lanes in a panel and in a row.
template <class V, class Dot, Epilogue kEpilogue>
void finish_tile(const float* panel_tail, std::size_t terms, const float* sums, std::size_t rows,
                 const std::byte* row_tail, std::size_t row_bytes, float* out, std::size_t stride) {
  constexpr std::size_t kWidth = V::kPanelVectors * V::kFloats;
  for (std::size_t r = 0; r < rows; ++r) {
    const auto* const tail = reinterpret_cast<const float*>(row_tail + r * row_bytes);
    typename V::Float value[V::kPanelVectors];
#pragma GCC unroll 16
    for (std::size_t c = 0; c < V::kPanelVectors; ++c) value[c] = V::load(panel_tail + c * V::kFloats);
    if constexpr (Dot::kScaled) {
      const float* const side = panel_tail + 2 * kWidth;
      for (std::size_t t = 0; t < terms; ++t) {
        const auto input = V::broadcast(tail[1 + t]);
#pragma GCC unroll 16
        for (std::size_t c = 0; c < V::kPanelVectors; ++c) {
          value[c] = V::fma(input, V::load(side + t * kWidth + c * V::kFloats), value[c]);
        }
      }
    }
#pragma GCC unroll 16
    for (std::size_t c = 0; c < V::kPanelVectors; ++c) {
      const auto sum = Dot::load_sum(sums + r * kWidth + c * V::kFloats);
      if constexpr (Dot::kScaled) {
        const auto scale = V::mul(V::broadcast(tail[0]), V::load(panel_tail + kWidth + c * V::kFloats));
        value[c] = V::fma(sum, scale, value[c]);
      } else {
        value[c] = V::add(sum, value[c]);
      }
      float* const to = out + r * stride + c * V::kFloats;
      V::store(to, finish<V, Dot, kEpilogue>(value[c], to));
    }
  }
}

template <class V, class Dot, Epilogue kEpilogue>
void multiply_all(const PackedLinear& linear, const std::byte* prepared, std::size_t rows, float* out,
                  std::size_t stride) {
  constexpr std::size_t kWidth = V::kPanelVectors * V::kFloats;
  const std::size_t tiles = (rows + V::kTileRows - 1) / V::kTileRows;
  const std::size_t lane_bytes = std::size_t{linear.lanes} * kWidth * 4;
  const std::size_t lines_per_step =
      (linear.panel_bytes * kStep / linear.lanes + tiles * kCacheLine - 1) / (tiles * kCacheLine);
  alignas(64) float sums[V::kTileRows * kWidth];
  for (std::size_t p = 0; p < linear.panel_count; ++p) {
    const std::byte* const panel = linear.panels + p * linear.panel_bytes;
    PanelWalk walk{panel, reinterpret_cast<const char*>(panel + linear.panel_bytes), lines_per_step};
    for (std::size_t r = 0; r < rows; r += V::kTileRows) {
      const std::size_t n = rows - r < V::kTileRows ? rows - r : V::kTileRows;
      const std::byte* const tile = prepared + r * linear.row_bytes;
      static_assert(V::kTileRows == 6);
      switch (n) {
        case 1:
          multiply_tile<V, Dot, 1>(walk, linear.lanes, tile, linear.row_bytes, sums);
          break;
        case 2:
          multiply_tile<V, Dot, 2>(walk, linear.lanes, tile, linear.row_bytes, sums);
          break;
        case 3:
          multiply_tile<V, Dot, 3>(walk, linear.lanes, tile, linear.row_bytes, sums);
          break;
        case 4:
          multiply_tile<V, Dot, 4>(walk, linear.lanes, tile, linear.row_bytes, sums);
          break;
        case 5:
          multiply_tile<V, Dot, 5>(walk, linear.lanes, tile, linear.row_bytes, sums);
          break;
        default:
          multiply_tile<V, Dot, 6>(walk, linear.lanes, tile, linear.row_bytes, sums);
          break;
      }
      walk.prefetch += linear.lanes / kStep * lines_per_step * kCacheLine;
      finish_tile<V, Dot, kEpilogue>(reinterpret_cast<const float*>(panel + lane_bytes), linear.terms, sums,
                                     n, tile + std::size_t{linear.lanes} * 4, linear.row_bytes,
                                     out + r * stride + p * kWidth, stride);
    }
  }
}

template <class V, class Dot>
void multiply(const PackedLinear& linear, const std::byte* prepared, std::size_t rows, float* out,
              std::size_t stride, Epilogue epilogue) {
  switch (epilogue) {
    case Epilogue::kStore:
      return multiply_all<V, Dot, Epilogue::kStore>(linear, prepared, rows, out, stride);
    case Epilogue::kAdd:
      return multiply_all<V, Dot, Epilogue::kAdd>(linear, prepared, rows, out, stride);
    case Epilogue::kGelu:
      return multiply_all<V, Dot, Epilogue::kGelu>(linear, prepared, rows, out, stride);
    case Epilogue::kGeluTanh:
      return multiply_all<V, Dot, Epilogue::kGeluTanh>(linear, prepared, rows, out, stride);
    case Epilogue::kRelu:
      return multiply_all<V, Dot, Epilogue::kRelu>(linear, prepared, rows, out, stride);
  }
}

// float32 inputs are taken as they are.
inline void prepare_f32(const PackedLinear& linear, const float* inputs, std::size_t stride, std::size_t rows,
                        std::byte* prepared) {
  for (std::size_t r = 0; r < rows; ++r) {
    __builtin_memcpy(prepared + r * linear.row_bytes, inputs + r * stride,
                     std::size_t{linear.inputs} * sizeof(float));
  }
}

template <class V, class Dot>
constexpr Layout layout_of(std::uint32_t input_multiple) {
  return {Dot::kElement, static_cast<std::uint32_t>(V::kPanelVectors * V::kFloats), input_multiple};
}

}  // namespace
}  // namespace waybill::embed::kernels
