// Linear layers on matrix tiles: on the CPU's own where it has AMX, and everywhere on tiles in software, held
// against the other kernels of the same precision and against sums in float64.

#include <cmath>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "base/cpu.h"
#include "embed/kernels/emulated_amx.h"
#include "embed/kernels/kernels.h"
#include "embed/kernels/packing.h"
#include "embed/precision.h"
#include "embed/quantise.h"

namespace waybill::embed::kernels {
namespace {

constexpr std::size_t kMostRows = 40;

struct Free {
  void operator()(void* p) const { std::free(p); }
};
template <class T>
using Aligned = std::unique_ptr<T[], Free>;

// `count` elements of which every byte is `fill`.
template <class T>
Aligned<T> aligned(std::size_t count, int fill = 0) {
  const std::size_t bytes = (count * sizeof(T) + 63) / 64 * 64;
  Aligned<T> out(static_cast<T*>(std::aligned_alloc(64, bytes)));
  std::memset(static_cast<void*>(out.get()), fill, bytes);
  return out;
}

struct Shape {
  std::size_t inputs, outputs;
};
constexpr Shape kShapes[] = {{64, 32}, {5, 3}, {64, 64}, {100, 33}, {129, 70}, {384, 96}, {1000, 65}};

// One linear layer with random weights and rows of inputs to go through it.
class Layer {
 public:
  Layer(Precision precision, const Shape& shape) : precision_(precision), shape_(shape) {
    std::mt19937 random(static_cast<unsigned>(31 * shape.inputs + shape.outputs));
    std::normal_distribution<float> normal;
    weights_.resize(shape.inputs * shape.outputs);
    bias_.resize(shape.outputs);
    for (float& w : weights_) w = normal(random);
    for (float& b : bias_) b = normal(random);
    inputs_.resize(kMostRows * shape.inputs);
    // Many of these lie halfway between two numbers in bf16.
    for (float& x : inputs_) x = std::nearbyintf(256 * normal(random)) / 256;
    outliers_ = {2, static_cast<std::uint32_t>(shape.inputs - 1)};
    for (std::size_t r = 0; r < kMostRows; ++r) inputs_[r * shape.inputs + 2] *= 20;
  }

  // [rows][outputs]. What is not to be used is filled with numbers that would show.
  std::vector<float> multiply(const LinearKernels& kernels, std::size_t rows, Epilogue epilogue) const {
    const bool integer = precision_ == Precision::kInt8;
    LinearNumbers numbers{shape_.inputs, shape_.outputs, bias_, weights_, {}, {}, {}};
    IntegerLinear integers;
    if (integer) {
      integers = quantise_linear(precision_, weights_, shape_.inputs, shape_.outputs, outliers_);
      numbers.integers = integers.integers;
      numbers.scales = integers.scales;
      numbers.side = integers.side;
    }
    PackedLinear linear =
        describe_linear(kernels.layout, shape_.inputs, shape_.outputs, integer ? 1 + outliers_.size() : 0);
    const auto panels = aligned<std::byte>(linear.panel_count * linear.panel_bytes);
    pack_panels(kernels.layout, numbers, panels.get());
    linear.panels = panels.get();
    const std::size_t padded = padded_inputs(kernels.layout, shape_.inputs);
    const auto kept = aligned<std::uint32_t>(padded + kRowSlack);
    std::fill_n(kept.get(), shape_.inputs, ~std::uint32_t{0});
    for (const std::uint32_t channel : outliers_) kept[channel] = 0;
    linear.kept = kept.get();
    linear.outliers = outliers_.data();
    linear.outlier_count = static_cast<std::uint32_t>(outliers_.size());

    const std::size_t in_stride = shape_.inputs + 7;
    const auto in = aligned<float>(rows * in_stride + kRowSlack, 0xFF);
    for (std::size_t r = 0; r < rows; ++r) {
      std::copy_n(&inputs_[r * shape_.inputs], shape_.inputs, &in[r * in_stride]);
    }
    const auto prepared = aligned<std::byte>((rows + kBatchRows) * linear.row_bytes, 0xFF);
    kernels.prepare(linear, in.get(), in_stride, rows, prepared.get());
    const std::size_t stride = linear.panel_count * kernels.layout.panel_columns;
    const auto out = aligned<float>((rows + kBatchRows) * stride, 0xFF);
    for (std::size_t r = 0; r < rows; ++r) std::fill_n(&out[r * stride], stride, residual(r));
    kernels.multiply(linear, prepared.get(), rows, out.get(), stride, epilogue);
    std::vector<float> result(rows * shape_.outputs);
    for (std::size_t r = 0; r < rows; ++r) {
      std::copy_n(&out[r * stride], shape_.outputs, &result[r * shape_.outputs]);
    }
    return result;
  }

  struct Exact {
    double value;
    double magnitude;  // the sum of the products' magnitudes
  };
  // [rows][outputs] in float64, of weights and inputs in bf16; kAdd.
  std::vector<Exact> exact() const {
    std::vector<Exact> out;
    for (std::size_t i = 0; i < kMostRows * shape_.outputs; ++i) {
      out.push_back(exact(i / shape_.outputs, i % shape_.outputs));
    }
    return out;
  }

 private:
  Exact exact(std::size_t row, std::size_t output) const {
    Exact out{double{bias_[output]} + residual(row), 0};
    for (std::size_t i = 0; i < shape_.inputs; ++i) {
      const double product =
          nearest_bf16(inputs_[row * shape_.inputs + i]) * nearest_bf16(weights_[output * shape_.inputs + i]);
      out.value += product;
      out.magnitude += std::fabs(product);
    }
    return out;
  }

  static float residual(std::size_t row) { return 0.5F * static_cast<float>(row); }
  static double nearest_bf16(float x) {
    int exponent;
    const double mantissa = std::frexp(double{x}, &exponent);
    return std::ldexp(std::nearbyint(std::ldexp(mantissa, 8)), exponent - 8);
  }

  Precision precision_;
  Shape shape_;
  std::vector<float> weights_, bias_, inputs_;
  std::vector<std::uint32_t> outliers_;
};

struct Family {
  const char* name;
  const LinearKernels& bf16;
  const LinearKernels& int8;
  bool there;
  const char* missing;
};

std::vector<Family> families() {
  const CpuFeatures& cpu = cpu_features();
  const auto amx = [](Precision precision) -> const LinearKernels& {
    return find_kernels(precision, Isa::kAmx)->linear;
  };
  return {
      {"emulated_avx2", kEmulatedAmxBf16Avx2, kEmulatedAmxInt8Avx2, cpu.avx2_fma, "AVX2"},
      {"emulated_avx512", kEmulatedAmxBf16Avx512, kEmulatedAmxInt8Avx512, cpu.avx512, "AVX-512"},
      {"amx", amx(Precision::kBf16), amx(Precision::kInt8), cpu.amx_bf16 && cpu.amx_int8, "AMX"},
  };
}

class TilesTest : public ::testing::TestWithParam<Family> {
 protected:
  void SetUp() override {
    if (!GetParam().there) {
      GTEST_SKIP() << "NOT RUN: this CPU has no " << GetParam().missing
                   << "; the emulated tiles were tested instead.";
    }
  }
};

TEST_P(TilesTest, GiveTheBitsOfOtherInstructionSetsInInt8) {
  for (const Shape& shape : kShapes) {
    const Layer layer(Precision::kInt8, shape);
    for (const Isa isa : available(Precision::kInt8)) {
      if (isa == Isa::kAmx) continue;
      const LinearKernels& other = find_kernels(Precision::kInt8, isa)->linear;
      for (std::size_t rows = 1; rows <= kMostRows; ++rows) {
        ASSERT_EQ(layer.multiply(GetParam().int8, rows, Epilogue::kStore),
                  layer.multiply(other, rows, Epilogue::kStore))
            << shape.inputs << " x " << shape.outputs << ", " << rows << " rows, " << to_string(isa);
      }
    }
  }
}

TEST_P(TilesTest, FinishSumsAsOtherInstructionSetsDo) {
  const Layer layer(Precision::kInt8, {100, 70});
  const LinearKernels& other = find_kernels(Precision::kInt8, Isa::kAvx2)->linear;
  for (const Epilogue epilogue :
       {Epilogue::kStore, Epilogue::kAdd, Epilogue::kGelu, Epilogue::kGeluTanh, Epilogue::kRelu}) {
    for (const std::size_t rows : {1UL, 16UL, 19UL, 32UL, 35UL}) {
      const std::vector<float> out = layer.multiply(GetParam().int8, rows, epilogue);
      const std::vector<float> expected = layer.multiply(other, rows, epilogue);
      for (std::size_t i = 0; i < out.size(); ++i) {
        ASSERT_NEAR(out[i], expected[i], 1e-6F * (1 + std::fabs(expected[i]))) << static_cast<int>(epilogue);
      }
    }
  }
}

TEST_P(TilesTest, GiveSumsInBf16AsCloseAsFloat32Allows) {
  for (const Shape& shape : kShapes) {
    const Layer layer(Precision::kBf16, shape);
    const std::vector<Layer::Exact> exact = layer.exact();
    for (std::size_t rows = 1; rows <= kMostRows; ++rows) {
      const std::vector<float> out = layer.multiply(GetParam().bf16, rows, Epilogue::kAdd);
      for (std::size_t i = 0; i < out.size(); ++i) {
        ASSERT_NEAR(out[i], exact[i].value, (exact[i].magnitude + std::fabs(exact[i].value)) * 0x1p-20)
            << shape.inputs << " x " << shape.outputs << ", " << rows << " rows, element " << i;
      }
    }
  }
}

TEST_P(TilesTest, GiveARowTheSameBitsAmongAnyNumberOfRows) {
  for (const Precision precision : {Precision::kBf16, Precision::kInt8}) {
    const LinearKernels& kernels = precision == Precision::kBf16 ? GetParam().bf16 : GetParam().int8;
    const Layer layer(precision, {129, 70});
    const std::vector<float> all = layer.multiply(kernels, kMostRows, Epilogue::kGelu);
    for (std::size_t rows = 1; rows < kMostRows; ++rows) {
      const std::vector<float> some = layer.multiply(kernels, rows, Epilogue::kGelu);
      ASSERT_EQ(some, std::vector<float>(all.begin(), all.begin() + static_cast<std::ptrdiff_t>(some.size())))
          << rows;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Families, TilesTest, ::testing::ValuesIn(families()),
                         [](const auto& test) { return std::string(test.param.name); });

TEST(Bf16Test, OnAvx512GivesSumsAsCloseAsFloat32Allows) {
  if (!cpu_features().avx512_bf16) GTEST_SKIP() << "NOT RUN: this CPU has no AVX512-BF16";
  const LinearKernels& kernels = find_kernels(Precision::kBf16, Isa::kAvx512Bf16)->linear;
  for (const Shape& shape : kShapes) {
    const Layer layer(Precision::kBf16, shape);
    const std::vector<Layer::Exact> exact = layer.exact();
    for (std::size_t rows = 1; rows <= 13; ++rows) {
      const std::vector<float> out = layer.multiply(kernels, rows, Epilogue::kAdd);
      for (std::size_t i = 0; i < out.size(); ++i) {
        ASSERT_NEAR(out[i], exact[i].value, (exact[i].magnitude + std::fabs(exact[i].value)) * 0x1p-20);
      }
    }
  }
}

}  // namespace
}  // namespace waybill::embed::kernels
