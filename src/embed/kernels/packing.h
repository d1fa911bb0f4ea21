// The layout of linear layers in memory: from rows of weights to the panels that the kernels stream.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "embed/kernels/kernels.h"

namespace waybill::embed::kernels {

// One linear layer's numbers, y = W x + b, before they are laid out.
//
// Integers stand for W[o][i] = scales[o] * integers[o][i]; a row of inputs is quantised to x[i] = scale *
// q[i] and the kernels compute y[o] = scale * scales[o] * sum(q[i] * integers[o][i]) + sum over t of term[t]
// * side[t][o] + bias[o], where the terms of a row are its zero point (int8) and its outlier channels.
struct LinearNumbers {
  std::size_t inputs = 0;
  std::size_t outputs = 0;
  std::span<const float> bias;             // [outputs]
  std::span<const float> weights;          // [outputs][inputs]; f32 and bf16
  std::span<const std::int16_t> integers;  // [outputs][inputs]; int16 and int8
  std::span<const float> scales;           // [outputs]; integers only
  std::span<const float> side;             // [terms][outputs]; integers only
};

// Sizes of a packed layer: everything in PackedLinear but the pointers.
[[nodiscard]] PackedLinear describe_linear(const Layout& layout, std::size_t inputs, std::size_t outputs,
                                           std::size_t terms);

// Inputs with the padding.
[[nodiscard]] std::size_t padded_inputs(const Layout& layout, std::size_t inputs) noexcept;

// Writes panel_count * panel_bytes bytes at `panels`, which must be zero before.
void pack_panels(const Layout& layout, const LinearNumbers& numbers, std::byte* panels);

}  // namespace waybill::embed::kernels
