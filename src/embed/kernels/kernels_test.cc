// The kernels by themselves: one integer arithmetic on every instruction set, right for every number of rows.
#include "embed/kernels/kernels.h"

#include <cmath>
#include <cstring>
#include <memory>
#include <random>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "embed/kernels/packing.h"
#include "embed/quantise.h"

namespace waybill::embed::kernels {
namespace {

// A block of zeros on a cache line.
class Bytes {
 public:
  explicit Bytes(std::size_t size) : memory_(size + 64) {
    void* at = memory_.data();
    std::size_t space = memory_.size();
    data_ = static_cast<std::byte*>(std::align(64, size, at, space));
  }
  [[nodiscard]] std::byte* data() const { return data_; }

 private:
  std::vector<std::byte> memory_;
  std::byte* data_;
};

struct Layer {
  std::size_t inputs, outputs;
  std::vector<float> weights, bias;
  std::vector<std::uint32_t> outliers;
};

Layer random_layer(std::size_t inputs, std::size_t outputs, std::vector<std::uint32_t> outliers) {
  std::mt19937 random(9);
  std::normal_distribution<float> normal;
  Layer out{inputs, outputs, std::vector<float>(inputs * outputs), std::vector<float>(outputs),
            std::move(outliers)};
  for (float& w : out.weights) w = normal(random);
  for (float& b : out.bias) b = normal(random);
  return out;
}

// The layer's result for `rows` rows, [rows][outputs].
std::vector<float> run(const LinearKernels& kernels, Precision precision, const Layer& layer,
                       const std::vector<float>& inputs, std::size_t rows, Epilogue epilogue) {
  const bool integer = precision == Precision::kInt8 || precision == Precision::kInt16;
  LinearNumbers numbers{layer.inputs, layer.outputs, layer.bias, layer.weights, {}, {}, {}};
  IntegerLinear integers;
  std::size_t terms = 0;
  if (integer) {
    integers = quantise_linear(precision, layer.weights, layer.inputs, layer.outputs, layer.outliers);
    numbers.integers = integers.integers;
    numbers.scales = integers.scales;
    numbers.side = integers.side;
    terms = integers.side.size() / layer.outputs;
  }
  PackedLinear linear = describe_linear(kernels.layout, layer.inputs, layer.outputs, terms);
  const Bytes panels(linear.panel_count * linear.panel_bytes);
  pack_panels(kernels.layout, numbers, panels.data());
  std::vector<std::uint32_t> kept(padded_inputs(kernels.layout, layer.inputs) + kRowSlack);
  std::fill_n(kept.begin(), layer.inputs, ~0U);
  for (const std::uint32_t channel : layer.outliers) kept[channel] = 0;
  linear.panels = panels.data();
  linear.kept = kept.data();
  linear.limit = integers.limit;
  if (integer) {
    linear.outliers = layer.outliers.data();
    linear.outlier_count = static_cast<std::uint32_t>(layer.outliers.size());
  }
  const std::size_t in_stride = layer.inputs + kRowSlack;
  const std::size_t stride = linear.panel_count * kernels.layout.panel_columns + kRowSlack;
  std::vector<float> in((rows + kBatchRows) * in_stride, std::nanf(""));
  for (std::size_t r = 0; r < rows; ++r)
    std::copy_n(&inputs[r * layer.inputs], layer.inputs, &in[r * in_stride]);
  const Bytes prepared((rows + kBatchRows) * linear.row_bytes);
  std::vector<float> out((rows + kBatchRows) * stride, 1.0F);
  kernels.prepare(linear, in.data(), in_stride, rows, prepared.data());
  kernels.multiply(linear, prepared.data(), rows, out.data(), stride, epilogue);
  std::vector<float> result;
  for (std::size_t r = 0; r < rows; ++r)
    result.insert(result.end(), &out[r * stride], &out[r * stride] + layer.outputs);
  return result;
}

std::vector<float> random_inputs(std::size_t count, unsigned seed) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal;
  std::vector<float> out(count);
  for (float& x : out) x = normal(random);
  return out;
}

template <class Body>
void each_family(Precision precision, Body body) {
  for (const Isa isa : available(precision)) {
    const KernelTable* const table = find_kernels(precision, isa);
    if (table == nullptr) continue;
    SCOPED_TRACE(fmt::format("{} {}", to_string(precision), to_string(isa)));
    body(*table);
  }
}

TEST(Kernels, IntegersGiveTheSameBitsOnEveryInstructionSet) {
  for (const Precision precision : {Precision::kInt8, Precision::kInt16}) {
    for (const std::size_t inputs : {std::size_t{16}, std::size_t{37}, std::size_t{384}, std::size_t{1536}}) {
      const Layer layer = random_layer(
          inputs, 150, precision == Precision::kInt8 ? std::vector{3U, 11U} : std::vector<std::uint32_t>{});
      std::vector<float> in = random_inputs(7 * inputs, 4);
      for (std::size_t r = 0; r < 7; ++r) in[r * inputs + 3] *= 20;  // an outlier
      std::vector<float> first;
      each_family(precision, [&](const KernelTable& table) {
        const std::vector<float> out = run(table.linear, precision, layer, in, 7, Epilogue::kStore);
        if (first.empty()) first = out;
        EXPECT_EQ(out, first);
      });
    }
  }
}

TEST(Kernels, IntegerSumsAreExactAtTheirExtremes) {
  const std::size_t inputs = 1536;
  Layer layer{inputs, 70, std::vector<float>(inputs * 70, 127.0F), std::vector<float>(70), {}};
  for (std::size_t i = 0; i < inputs; ++i) layer.weights[i] = -127.0F;  // the first output; the others +127
  const std::vector<float> in(3 * inputs, 255.0F);
  each_family(Precision::kInt8, [&](const KernelTable& table) {
    const std::vector<float> out = run(table.linear, Precision::kInt8, layer, in, 3, Epilogue::kStore);
    EXPECT_EQ(out[0], -127.0F * 255.0F * 1536.0F);
    EXPECT_EQ(out[1], 127.0F * 255.0F * 1536.0F);
  });
  each_family(Precision::kInt16, [&](const KernelTable& table) {
    const std::vector<float> out = run(table.linear, Precision::kInt16, layer, in, 3, Epilogue::kStore);
    EXPECT_NEAR(out[0], -127.0F * 255.0F * 1536.0F, 100.0F);
    EXPECT_NEAR(out[1], 127.0F * 255.0F * 1536.0F, 100.0F);
  });
}

TEST(Kernels, BytesThatNeedNoRoundingGiveExactProducts) {
  const std::size_t inputs = 100;
  const std::size_t outputs = 70;
  std::mt19937 random(2);
  Layer layer{
      inputs, outputs, std::vector<float>(inputs * outputs), std::vector<float>(outputs, 5.0F), {17U}};
  for (float& w : layer.weights) w = static_cast<float>(static_cast<int>(random() % 255) - 127);
  for (std::size_t o = 0; o < outputs; ++o) layer.weights[o * inputs] = 127.0F;  // so that the scale is 1
  std::vector<float> in(2 * inputs);
  for (float& x : in) x = static_cast<float>(static_cast<int>(random() % 256) - 100);
  for (std::size_t r = 0; r < 2; ++r) {  // a range of 255, and an outlier far beyond it
    in[r * inputs + 3] = -100.0F;
    in[r * inputs + 4] = 155.0F;
    in[r * inputs + 17] = 3000.0F;
  }
  each_family(Precision::kInt8, [&](const KernelTable& table) {
    const std::vector<float> out = run(table.linear, Precision::kInt8, layer, in, 2, Epilogue::kStore);
    for (std::size_t i = 0; i < out.size(); ++i) {
      float expected = 5.0F;
      for (std::size_t k = 0; k < inputs; ++k) {
        expected += layer.weights[i % outputs * inputs + k] * in[i / outputs * inputs + k];
      }
      ASSERT_EQ(out[i], expected) << i;
    }
  });
}

TEST(Kernels, RowsDoNotDependOnHowManyThereAre) {
  for (const Precision precision : kAllPrecisions) {
    const Layer layer = random_layer(
        100, 130, precision == Precision::kInt8 ? std::vector{1U} : std::vector<std::uint32_t>{});
    const std::vector<float> in = random_inputs(40 * 100, 8);
    each_family(precision, [&](const KernelTable& table) {
      const std::vector<float> all = run(table.linear, precision, layer, in, 40, Epilogue::kGelu);
      for (std::size_t rows = 1; rows < 20; ++rows) {
        const std::vector<float> some = run(table.linear, precision, layer, in, rows, Epilogue::kGelu);
        ASSERT_EQ(std::memcmp(some.data(), all.data(), some.size() * sizeof(float)), 0) << rows;
      }
    });
  }
}

TEST(Kernels, RowsOfZerosGiveTheBias) {
  for (const Precision precision : kAllPrecisions) {
    const Layer layer = random_layer(48, 20, {});
    each_family(precision, [&](const KernelTable& table) {
      EXPECT_EQ(run(table.linear, precision, layer, std::vector<float>(48), 1, Epilogue::kStore), layer.bias);
    });
  }
}

TEST(Kernels, EpiloguesAreTheFunctionsTheySay) {
  // Weight 1 from the only channel: what comes out is the function of the input.
  const Layer layer{16, 1, {1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}, {0.0F}, {}};
  each_family(Precision::kF32, [&](const KernelTable& table) {
    for (float x = -12.0F; x < 12.0F; x += 0.01F) {
      std::vector<float> in(16);
      in[0] = x;
      const auto result = [&](Epilogue epilogue) {
        return run(table.linear, Precision::kF32, layer, in, 1, epilogue)[0];
      };
      const double d = double{x};
      ASSERT_NEAR(result(Epilogue::kGelu), 0.5 * d * (1 + std::erf(d / std::sqrt(2.0))), 1e-6) << x;
      ASSERT_NEAR(result(Epilogue::kGeluTanh),
                  0.5 * d * (1 + std::tanh(std::sqrt(2 / M_PI) * (d + 0.044715 * d * d * d))), 1e-6);
      ASSERT_EQ(result(Epilogue::kRelu), std::max(x, 0.0F));
      ASSERT_EQ(result(Epilogue::kAdd), 1.0F + x);
    }
  });
}

}  // namespace
}  // namespace waybill::embed::kernels
