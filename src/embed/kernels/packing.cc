#include "embed/kernels/packing.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "base/check.h"

namespace waybill::embed::kernels {
namespace {

constexpr std::size_t kLaneBytes = 4;
constexpr std::size_t kAlignment = 64;

constexpr std::size_t round_up(std::size_t n, std::size_t multiple) {
  return (n + multiple - 1) / multiple * multiple;
}

constexpr bool is_integer(Element element) { return element == Element::kS8 || element == Element::kS16; }

// To the nearest bf16, ties to even.
std::uint16_t to_bf16(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  return static_cast<std::uint16_t>((bits + 0x7FFFU + ((bits >> 16) & 1U)) >> 16);
}

// Scatters the weights of one output: input i goes to lane i / group, place i % group.
template <class Out, class In, class Convert>
void scatter(std::span<const In> weights, std::size_t group, std::byte* column, std::size_t lane_stride,
             Convert convert) {
  for (std::size_t i = 0; i < weights.size(); ++i) {
    const Out value = convert(weights[i]);
    std::memcpy(column + i / group * lane_stride + i % group * sizeof(Out), &value, sizeof value);
  }
}

void scatter_output(const Layout& layout, const LinearNumbers& numbers, std::size_t output,
                    std::byte* column) {
  const std::size_t stride = layout.panel_columns * kLaneBytes;
  const std::size_t begin = output * numbers.inputs;
  switch (layout.element) {
    case Element::kF32:
      return scatter<float>(numbers.weights.subspan(begin, numbers.inputs), 1, column, stride,
                            [](float w) { return w; });
    case Element::kBf16:
      return scatter<std::uint16_t>(numbers.weights.subspan(begin, numbers.inputs), 2, column, stride,
                                    to_bf16);
    case Element::kS16:
      return scatter<std::int16_t>(numbers.integers.subspan(begin, numbers.inputs), 2, column, stride,
                                   [](std::int16_t w) { return w; });
    case Element::kS8:
      return scatter<std::int8_t>(numbers.integers.subspan(begin, numbers.inputs), 4, column, stride,
                                  [](std::int16_t w) { return static_cast<std::int8_t>(w); });
  }
}

}  // namespace

std::size_t padded_inputs(const Layout& layout, std::size_t inputs) noexcept {
  return round_up(inputs, std::max<std::size_t>(layout.input_multiple, inputs_per_lane(layout.element)));
}

PackedLinear describe_linear(const Layout& layout, std::size_t inputs, std::size_t outputs,
                             std::size_t terms) {
  const bool integer = is_integer(layout.element);
  WAYBILL_CHECK(integer || terms == 0);
  const std::size_t lanes = padded_inputs(layout, inputs) / inputs_per_lane(layout.element);
  const std::size_t float_rows = integer ? 2 + terms : 1;
  PackedLinear out;
  out.inputs = static_cast<std::uint32_t>(inputs);
  out.lanes = static_cast<std::uint32_t>(lanes);
  out.panel_count = static_cast<std::uint32_t>((outputs + layout.panel_columns - 1) / layout.panel_columns);
  out.terms = static_cast<std::uint32_t>(terms);
  out.panel_bytes = round_up((lanes + float_rows) * layout.panel_columns * kLaneBytes, kAlignment);
  out.row_bytes = round_up(lanes * kLaneBytes + (integer ? (1 + terms) * sizeof(float) : 0), kAlignment);
  return out;
}

void pack_panels(const Layout& layout, const LinearNumbers& numbers, std::byte* panels) {
  const std::size_t terms = numbers.outputs == 0 ? 0 : numbers.side.size() / numbers.outputs;
  const PackedLinear shape = describe_linear(layout, numbers.inputs, numbers.outputs, terms);
  const std::size_t columns = layout.panel_columns;
  for (std::size_t o = 0; o < numbers.outputs; ++o) {
    std::byte* const panel = panels + o / columns * shape.panel_bytes;
    const std::size_t column = o % columns;
    scatter_output(layout, numbers, o, panel + column * kLaneBytes);
    auto* const tail = reinterpret_cast<float*>(panel + shape.lanes * columns * kLaneBytes);
    tail[column] = numbers.bias[o];
    if (!is_integer(layout.element)) continue;
    tail[columns + column] = numbers.scales[o];
    for (std::size_t t = 0; t < terms; ++t)
      tail[(2 + t) * columns + column] = numbers.side[t * numbers.outputs + o];
  }
}

}  // namespace waybill::embed::kernels
