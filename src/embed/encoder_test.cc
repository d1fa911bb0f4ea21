// The encoder against the reference vectors of all-MiniLM-L6-v2, for every precision and instruction set that
// this CPU has.
#include "embed/encoder.h"

#include <cmath>
#include <cstdlib>
#include <fstream>
#include <random>
#include <string>
#include <vector>

#include <boost/json.hpp>
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "embed/calibrate.h"
#include "embed/kernels/emulated_amx.h"
#include "embed/model_folder.h"
#include "embed/packed_weights.h"
#include "embed/precision.h"

namespace waybill::embed {
namespace {

struct Reference {
  std::vector<TokenId> ids;
  std::vector<float> embedding;
};

std::vector<Reference> read_references() {
  std::vector<Reference> out;
  std::ifstream file(WAYBILL_SOURCE_DIR "/tests/data/minilm-l6-v2.jsonl");
  for (std::string line; std::getline(file, line);) {
    const boost::json::value value = boost::json::parse(line);
    Reference reference;
    for (const auto& id : value.at("ids").as_array()) reference.ids.push_back(id.to_number<TokenId>());
    for (const auto& x : value.at("embedding").as_array())
      reference.embedding.push_back(x.to_number<float>());
    out.push_back(std::move(reference));
  }
  return out;
}

const std::vector<Reference>& references() {
  static const std::vector<Reference> all = read_references();
  return all;
}

std::filesystem::path model_path() {
  const char* const path = std::getenv("WAYBILL_MODEL");
  return path != nullptr ? path : WAYBILL_SOURCE_DIR "/models/all-MiniLM-L6-v2";
}

const ModelFolder& folder() {
  static const ModelFolder model = [] {
    Result<ModelFolder> opened = ModelFolder::open(model_path());
    if (!opened) {
      fmt::print(stderr, "These tests need the real model; run tools/fetch-model or set WAYBILL_MODEL. {}\n",
                 opened.error().message);
      std::abort();
    }
    return std::move(*opened);
  }();
  return model;
}

const OutlierChannels& outliers(Precision precision) {
  static const OutlierChannels none;
  static const OutlierChannels found = *find_outliers(folder(), Precision::kF32, Isa::kAvx2, 101, 102);
  return precision == Precision::kInt8 ? found : none;
}

struct Family {
  Precision precision;
  Isa isa;
  std::string name;
  const kernels::LinearKernels* linear = nullptr;  // in place of the CPU's own
  std::size_t texts_step = 1;                      // of how many texts one is tested: more where it is slow
};

// The encoder of one precision and instruction set on the real model.
class Encoder {
 public:
  explicit Encoder(const Family& family)
      : words_(*folder().tensor("embeddings.word_embeddings.weight",
                                std::vector{folder().config.vocabulary, folder().config.hidden})),
        weights_(
            *PackedWeights::pack(folder(), {family.precision, family.isa, 1}, outliers(family.precision))),
        kernels_(*kernels::find_kernels(family.precision, family.isa)) {
    if (family.linear != nullptr) kernels_.linear = *family.linear;
    parts_ = {&folder().config, &kernels_, &weights_.view(), &words_};
  }

  std::vector<float> encode(const std::vector<const Reference*>& texts) {
    std::vector<TokenId> ids;
    std::vector<std::uint32_t> offsets = {0};
    for (const Reference* text : texts) {
      ids.insert(ids.end(), text->ids.begin(), text->ids.end());
      offsets.push_back(static_cast<std::uint32_t>(ids.size()));
    }
    std::vector<float> out(texts.size() * folder().config.hidden);
    waybill::embed::encode(parts_, {ids, offsets}, out, buffers_);
    return out;
  }

 private:
  WordTable words_;
  PackedWeights weights_;
  kernels::KernelTable kernels_;
  EncoderParts parts_;
  EncoderBuffers buffers_;
};

// Matrix tiles in software, for CPUs that have none.
const Family kEmulatedAmxInt8 = {Precision::kInt8, Isa::kAmx, "int8_emulated_amx",
                                 &kernels::kEmulatedAmxInt8Avx512, 8};

std::vector<Family> families() {
  std::vector<Family> out;
  for (const Precision precision : kAllPrecisions) {
    for (const Isa isa : available(precision)) {
      std::string name = fmt::format("{}_{}", to_string(precision), to_string(isa));
      std::replace(name.begin(), name.end(), '-', '_');
      out.push_back({precision, isa, std::move(name)});
    }
  }
  if (cpu_features().avx512) {
    out.push_back({Precision::kBf16, Isa::kAmx, "bf16_emulated_amx", &kernels::kEmulatedAmxBf16Avx512, 8});
    out.push_back(kEmulatedAmxInt8);
  }
  return out;
}

double cosine(std::span<const float> a, std::span<const float> b) {
  double ab = 0;
  double aa = 0;
  double bb = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    ab += double{a[i]} * b[i];
    aa += double{a[i]} * a[i];
    bb += double{b[i]} * b[i];
  }
  return ab / std::sqrt(aa * bb);
}

class EncoderTest : public ::testing::TestWithParam<Family> {};

double least_cosine(Precision precision) {
  switch (precision) {
    case Precision::kF32:
      return 0.999999;
    case Precision::kBf16:
      return 0.9999;
    case Precision::kInt16:
      return 0.9999;
    case Precision::kInt8:
      return 0.997;
  }
  return 1;
}

TEST_P(EncoderTest, GivesTheReferenceVectors) {
  Encoder encoder(GetParam());
  ASSERT_GT(references().size(), 400U);
  double least = 1;
  double sum = 0;
  std::size_t count = 0;
  for (std::size_t i = 0; i < references().size(); i += GetParam().texts_step, ++count) {
    const Reference& reference = references()[i];
    const std::vector<float> out = encoder.encode({&reference});
    const double similarity = cosine(out, reference.embedding);
    least = std::min(least, similarity);
    sum += similarity;
    double norm = 0;
    for (const float x : out) norm += double{x} * x;
    EXPECT_NEAR(std::sqrt(norm), 1.0, 1e-5);
    if (GetParam().precision != Precision::kF32) continue;
    for (std::size_t k = 0; k < out.size(); ++k) ASSERT_NEAR(out[k], reference.embedding[k], 2e-5);
  }
  RecordProperty("least_cosine", fmt::format("{:.7f}", least));
  fmt::print("cosine: mean {:.6f}, least {:.6f}\n", sum / static_cast<double>(count), least);
  EXPECT_GE(least, least_cosine(GetParam().precision));
}

TEST_P(EncoderTest, GivesATextTheSameBitsInEveryBatch) {
  Encoder encoder(GetParam());
  const std::size_t hidden = folder().config.hidden;
  std::mt19937 random(7);
  for (std::size_t round = 0; round < 4; round += GetParam().texts_step) {
    std::vector<const Reference*> texts(std::uniform_int_distribution<std::size_t>(1, 24)(random));
    for (const Reference*& text : texts) {
      text = &references()[std::uniform_int_distribution<std::size_t>(0, references().size() - 1)(random)];
    }
    const std::vector<float> together = encoder.encode(texts);
    for (std::size_t i = 0; i < texts.size(); ++i) {
      const std::vector<float> alone = encoder.encode({texts[i]});
      ASSERT_EQ(std::vector<float>(together.begin() + static_cast<std::ptrdiff_t>(i * hidden),
                                   together.begin() + static_cast<std::ptrdiff_t>((i + 1) * hidden)),
                alone);
    }
  }
}

TEST(EmulatedAmxTest, GivesTheBitsOfVnniInInt8) {
  if (!cpu_features().avx512_vnni) GTEST_SKIP() << "NOT RUN: this CPU has no AVX-512 VNNI";
  Encoder emulated(kEmulatedAmxInt8);
  Encoder vnni({Precision::kInt8, Isa::kAvx512Vnni, ""});
  std::vector<const Reference*> texts;
  for (std::size_t i = 1; i < references().size(); i += kEmulatedAmxInt8.texts_step)
    texts.push_back(&references()[i]);
  EXPECT_EQ(emulated.encode(texts), vnni.encode(texts));
}

INSTANTIATE_TEST_SUITE_P(Families, EncoderTest, ::testing::ValuesIn(families()),
                         [](const auto& test) { return test.param.name; });

}  // namespace
}  // namespace waybill::embed
