// Models of every shape against a plain reference, and the cache file beside them.
#include "embed/model.h"

#include <array>
#include <fstream>
#include <random>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/file.h"
#include "embed/kernels/kernels.h"
#include "embed/random_model.h"

namespace waybill::embed {
namespace {

using ::testing::HasSubstr;
using testing::RandomModel;
using testing::small_shape;
using testing::TemporaryFolder;

constexpr std::string_view kInt8File = ".waybill/int8-avx2.pack";

Result<Model> load(const TemporaryFolder& folder, Precision precision, Isa isa,
                   LoadReport* report = nullptr) {
  return Model::load({folder.path(), precision, isa, true}, report);
}

std::vector<float> embed(const Model& model, const std::vector<std::vector<TokenId>>& texts) {
  std::vector<TokenId> ids;
  std::vector<std::uint32_t> offsets = {0};
  for (const std::vector<TokenId>& text : texts) {
    ids.insert(ids.end(), text.begin(), text.end());
    offsets.push_back(static_cast<std::uint32_t>(ids.size()));
  }
  std::vector<float> out(texts.size() * model.dim());
  Workspace workspace;
  model.forward({ids, offsets}, out, workspace);
  return out;
}

std::vector<std::vector<TokenId>> texts_of(const ModelConfig& config,
                                           std::initializer_list<std::size_t> lengths) {
  std::mt19937 random(3);
  std::vector<std::vector<TokenId>> out;
  for (const std::size_t length : lengths) {
    std::vector<TokenId>& text = out.emplace_back(length);
    for (TokenId& id : text) id = static_cast<TokenId>(random() % config.vocabulary);
  }
  return out;
}

// The largest difference, of numbers around 1.
double tolerance(Precision precision) {
  switch (precision) {
    case Precision::kF32:
      return 2e-5;
    case Precision::kInt16:
      return 0.01;
    case Precision::kBf16:
      return 0.1;
    case Precision::kInt8:
      return 0.25;
  }
  return 0;
}

void expect_reference(const ModelConfig& config, std::initializer_list<std::size_t> lengths) {
  const TemporaryFolder folder;
  const RandomModel random(folder, config, 11);
  const std::vector<std::vector<TokenId>> texts = texts_of(config, lengths);
  std::vector<std::vector<double>> expected;
  for (const std::vector<TokenId>& text : texts) expected.push_back(random.reference(text));
  for (const Precision precision : kAllPrecisions) {
    for (const Isa isa : available(precision)) {
      if (kernels::find_kernels(precision, isa) == nullptr) continue;
      SCOPED_TRACE(fmt::format("{} {}", to_string(precision), to_string(isa)));
      const Result<Model> model = load(folder, precision, isa);
      ASSERT_TRUE(model.has_value()) << model.error().message;
      const std::vector<float> out = embed(*model, texts);
      for (std::size_t i = 0; i < out.size(); ++i) {
        const std::size_t text = i / config.hidden;
        ASSERT_NEAR(double{out[i]}, expected[text][i % config.hidden], tolerance(precision))
            << "text " << text;
      }
    }
  }
}

TEST(ModelShapes, HeadsAndLayersThatFillNoVector) { expect_reference(small_shape(), {1, 2, 5, 17, 40, 70}); }

TEST(ModelShapes, OneHeadOneLayer) {
  ModelConfig c = small_shape();
  c.hidden = 16;
  c.heads = 1;
  c.layers = 1;
  c.intermediate = 17;
  expect_reference(c, {3, 1, 33});
}

TEST(ModelShapes, AHiddenSizeThatIsNoMultipleOfSixteen) {
  ModelConfig c = small_shape();
  c.hidden = 20;
  c.heads = 5;
  c.intermediate = 31;
  expect_reference(c, {7, 12, 1, 64});
}

TEST(ModelShapes, MoreThanOnePanelAndABlockOfTheFeedForwardLayers) {
  ModelConfig c = small_shape();
  c.hidden = 160;
  c.heads = 8;
  c.intermediate = 330;
  c.layers = 1;
  expect_reference(c, {70, 69, 6, 31});
}

TEST(ModelShapes, FirstTokenPoolingWithoutNormalising) {
  ModelConfig c = small_shape();
  c.pooling = Pooling::kCls;
  c.normalize = false;
  expect_reference(c, {4, 18});
}

TEST(ModelShapes, OtherActivations) {
  ModelConfig c = small_shape();
  for (const Activation activation : {Activation::kGeluTanh, Activation::kRelu}) {
    c.activation = activation;
    expect_reference(c, {4, 18});
  }
}

class ModelCache : public ::testing::Test {
 protected:
  ModelCache() : random_(folder_, small_shape(), 5) {}

  std::vector<float> load_and_embed(LoadReport& report) {
    const Result<Model> model = load(folder_, Precision::kInt8, Isa::kAvx2, &report);
    EXPECT_TRUE(model.has_value());
    return model ? embed(*model, texts_of(small_shape(), {9, 30})) : std::vector<float>{};
  }
  [[nodiscard]] std::string read() const { return *read_file(folder_.path() / kInt8File); }

  TemporaryFolder folder_;
  RandomModel random_;
};

TEST_F(ModelCache, IsWrittenOnceAndGivesTheSameVectors) {
  LoadReport first;
  LoadReport second;
  const std::vector<float> packed = load_and_embed(first);
  const std::vector<float> mapped = load_and_embed(second);
  EXPECT_FALSE(first.from_cache_file);
  EXPECT_TRUE(second.from_cache_file);
  EXPECT_EQ(first.cache_note, "");
  EXPECT_EQ(packed, mapped);
}

TEST_F(ModelCache, IsPackedAgainWhenAnyPartOfItIsDamaged) {
  LoadReport report;
  const std::vector<float> expected = load_and_embed(report);
  const std::string good = read();
  std::mt19937 random(1);
  for (int i = 0; i < 60; ++i) {
    std::string bad = good;
    const std::size_t at = i < 20 ? static_cast<std::size_t>(i) * 2 : 64 + random() % (bad.size() - 64);
    bad[at] = static_cast<char>(bad[at] ^ 0x10);
    folder_.write(kInt8File, bad);
    EXPECT_EQ(load_and_embed(report), expected);
    if (at < 20 || at > 23) {  // four reserved bytes mean nothing
      EXPECT_FALSE(report.from_cache_file) << at;
      EXPECT_THAT(report.cache_note, HasSubstr("int8-avx2.pack"));
    }
  }
}

TEST_F(ModelCache, IsPackedAgainWhenCutShort) {
  LoadReport report;
  const std::vector<float> expected = load_and_embed(report);
  const std::string good = read();
  for (const std::size_t size :
       {std::size_t{0}, std::size_t{10}, std::size_t{64}, std::size_t{700}, good.size() - 1}) {
    folder_.write(kInt8File, good.substr(0, size));
    EXPECT_EQ(load_and_embed(report), expected);
    EXPECT_FALSE(report.from_cache_file) << size;
  }
}

TEST_F(ModelCache, IsPackedAgainForAnotherModel) {
  LoadReport report;
  load_and_embed(report);
  const std::string other = read();
  const TemporaryFolder second;
  const RandomModel random(second, small_shape(), 6);
  second.write(kInt8File, other);
  const Result<Model> model = load(second, Precision::kInt8, Isa::kAvx2, &report);
  ASSERT_TRUE(model.has_value());
  EXPECT_FALSE(report.from_cache_file);
  EXPECT_THAT(report.cache_note, HasSubstr("another model"));
}

TEST_F(ModelCache, IsDoneWithoutWhenItCannotBeWritten) {
  folder_.write(".waybill", "a file where the folder should be");
  LoadReport report;
  EXPECT_FALSE(load_and_embed(report).empty());
  EXPECT_FALSE(report.from_cache_file);
  EXPECT_THAT(report.cache_note, HasSubstr("cannot"));
}

TEST_F(ModelCache, IsLeftAloneWhenNotWanted) {
  ASSERT_TRUE(Model::load({folder_.path(), Precision::kInt8, Isa::kAvx2, false}).has_value());
  EXPECT_FALSE(std::filesystem::exists(folder_.path() / ".waybill"));
}

TEST_F(ModelCache, IsWholeWhenManyProcessesWriteIt) {
  LoadReport report;
  const std::vector<float> expected = load_and_embed(report);
  std::filesystem::remove_all(folder_.path() / ".waybill");
  std::vector<pid_t> children;
  for (int i = 0; i < 4; ++i) {
    const pid_t child = ::fork();
    if (child == 0) {
      bool same = true;
      for (int round = 0; round < 3; ++round) {
        LoadReport own;
        same = same && load_and_embed(own) == expected;
      }
      ::_exit(same ? 0 : 1);
    }
    children.push_back(child);
  }
  for (const pid_t child : children) {
    int status = 0;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
  }
  EXPECT_EQ(load_and_embed(report), expected);
  EXPECT_TRUE(report.from_cache_file);
}

TEST_F(ModelCache, OfAnotherPrecisionStandsBeside) {
  ASSERT_TRUE(load(folder_, Precision::kInt8, Isa::kAvx2).has_value());
  LoadReport report;
  ASSERT_TRUE(load(folder_, Precision::kInt16, Isa::kAvx2, &report).has_value());
  EXPECT_FALSE(report.from_cache_file);
  ASSERT_TRUE(load(folder_, Precision::kInt8, Isa::kAvx2, &report).has_value());
  EXPECT_TRUE(report.from_cache_file);
}

TEST_F(ModelCache, HashTellsPrecisionsApart) {
  const Result<Model> int8 = load(folder_, Precision::kInt8, Isa::kAvx2);
  const Result<Model> int16 = load(folder_, Precision::kInt16, Isa::kAvx2);
  EXPECT_NE(int8->hash(), int16->hash());
  EXPECT_EQ(int8->hash(), load(folder_, Precision::kInt8, Isa::kAvx2)->hash());
}

TEST(ModelLoad, RefusesAVocabularyLargerThanTheModel) {
  const TemporaryFolder folder;
  const RandomModel random(folder, small_shape(), 5);
  folder.write("vocab.txt", *read_file(folder.path() / "vocab.txt") + "more\nwords\n");
  const Result<Model> model = load(folder, Precision::kF32, Isa::kAvx2);
  ASSERT_FALSE(model.has_value());
  EXPECT_EQ(model.error().code, ErrorCode::kCorrupt);
  EXPECT_THAT(model.error().message, HasSubstr("vocab_size 60"));
}

TEST(ModelLoad, RefusesAnInstructionSetThatCannotDoThePrecision) {
  const TemporaryFolder folder;
  const RandomModel random(folder, small_shape(), 5);
  const Result<Model> model = load(folder, Precision::kF32, Isa::kAmx);
  ASSERT_FALSE(model.has_value());
  EXPECT_EQ(model.error().code, ErrorCode::kUnsupported);
  EXPECT_THAT(model.error().message, HasSubstr("avx2"));
}

}  // namespace
}  // namespace waybill::embed
