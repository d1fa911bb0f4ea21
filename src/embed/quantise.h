// Weights as integers: which numbers stand for the weights of a linear layer, and which inputs are left out.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "embed/precision.h"

namespace waybill::embed {

// A linear layer's weights in integers, one scale for each output (the meaning of the fields:
// kernels/packing.h).
struct IntegerLinear {
  std::vector<std::int16_t> integers;  // [outputs][inputs]; zero for outlier channels
  std::vector<float> scales;           // [outputs]
  std::vector<float>
      side;  // [terms][outputs]: what multiplies the zero point (int8), then the outliers' weights
  std::int32_t limit = 0;  // largest magnitude an input may be quantised to; int16 only
};

// Symmetric integers to the nearest: 8 bits (+-127) or 12 bits (+-2047) by `precision`, which is kInt8 or
// kInt16. weights: [outputs][inputs].
[[nodiscard]] IntegerLinear quantise_linear(Precision precision, std::span<const float> weights,
                                            std::size_t inputs, std::size_t outputs,
                                            std::span<const std::uint32_t> outliers);

}  // namespace waybill::embed
