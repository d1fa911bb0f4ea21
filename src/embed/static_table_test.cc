#include "embed/static_table.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <map>
#include <optional>
#include <random>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/file.h"
#include "embed/model.h"
#include "embed/small_model_test.h"
#include "embed/test_model.h"

namespace waybill::embed {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::FloatEq;
using ::testing::FloatNear;
using ::testing::HasSubstr;
using testing::TemporaryFolder;

StaticRows random_rows(std::size_t vocabulary, std::size_t dim, unsigned seed) {
  std::mt19937 random(seed);
  StaticRows rows{.dim = dim, .stride = (dim + 63) / 64 * 64, .scales = {}, .values = {}};
  rows.values.assign(vocabulary * rows.stride, 0);
  for (std::size_t token = 0; token < vocabulary; ++token) {
    rows.scales.push_back(static_cast<float>(random() % 100) / 50);
    for (std::size_t i = 0; i < dim; ++i) {
      rows.values[token * rows.stride + i] = static_cast<std::int8_t>(static_cast<int>(random() % 255) - 127);
    }
  }
  return rows;
}

std::vector<float> plainly(const StaticRows& rows, std::span<const TokenId> ids) {
  std::vector<double> sum(rows.dim);
  double square = 0;
  for (std::size_t i = 0; i < rows.dim; ++i) {
    for (const TokenId id : ids) {
      const auto token = static_cast<std::size_t>(id);
      sum[i] += static_cast<double>(rows.scales[token]) * rows.values[token * rows.stride + i];
    }
    square += sum[i] * sum[i];
  }
  std::vector<float> out;
  for (const double x : sum) out.push_back(square == 0 ? 0 : static_cast<float>(x / std::sqrt(square)));
  return out;
}

TEST(StaticTable, IsTheMeanOfTheTokensOfLengthOne) {
  for (const std::size_t dim : {3U, 64U, 100U, 256U}) {
    const StaticRows rows = random_rows(50, dim, static_cast<unsigned>(dim));
    const StaticTable table = StaticTable::of(rows);
    const std::vector<TokenId> ids = {3, 49, 0, 3, 17, 20, 21};
    for (std::size_t n = 1; n <= ids.size(); ++n) {
      std::vector<float> out(dim, 9);
      table.embed(std::span(ids).first(n), out);
      EXPECT_THAT(out, ::testing::Pointwise(FloatNear(1e-5F), plainly(rows, std::span(ids).first(n))));
    }
  }
}

TEST(StaticTable, NothingToSayIsZero) {
  StaticRows rows = random_rows(4, 8, 1);
  rows.scales = {0, 0, 1, 1};
  const StaticTable table = StaticTable::of(std::move(rows));
  std::vector<float> out(8, 9);
  table.embed({}, out);
  EXPECT_THAT(out, Each(0));
  std::ranges::fill(out, 9.0F);
  table.embed(std::vector<TokenId>{0, 1, 0}, out);
  EXPECT_THAT(out, Each(0));
}

std::vector<float> embed(const Model& model, const StaticTable& table, std::string_view text) {
  std::vector<TokenId> ids;
  model.tokenizer().encode(text, 256, ids);
  std::vector<float> out(table.dim());
  table.embed(ids, out);
  return out;
}

float cosine(const std::vector<float>& a, const std::vector<float>& b) {
  float sum = 0;
  for (std::size_t i = 0; i < a.size(); ++i) sum += a[i] * b[i];
  return sum;
}

class TableOfASmallModel : public ::testing::Test {
 protected:
  static constexpr std::size_t kWords = testing::SmallModel::kWords;

  TableOfASmallModel() {
    if (!StaticTable::load_or_distill(model(), 0, {}, &first_report_))
      throw std::runtime_error("not distilled");
  }

  const Model& model() { return small_.model(); }
  std::string file_bytes() { return *read_file(StaticTable::cache_file(model())); }
  void write_file(std::string_view bytes) {
    ASSERT_TRUE(write_file_atomically(StaticTable::cache_file(model()), bytes));
  }

  testing::SmallModel small_;
  StaticTableReport first_report_;
};

TEST_F(TableOfASmallModel, IsMadeOnceAndThenRead) {
  EXPECT_FALSE(first_report_.from_cache_file);
  EXPECT_EQ(first_report_.cache_note, "");
  StaticTableReport report;
  const auto table = StaticTable::load_or_distill(model(), 0, {}, &report);
  ASSERT_TRUE(table);
  EXPECT_TRUE(report.from_cache_file);
  EXPECT_EQ(table->dim(), 4U);
  EXPECT_EQ(table->vocabulary(), kWords);
}

TEST_F(TableOfASmallModel, SpecialAndUnusedEntriesSayNothing) {
  const auto table = StaticTable::load(model());
  ASSERT_TRUE(table);
  std::vector<float> out(4);
  table->embed(std::vector<TokenId>{2, 3, 4}, out);
  EXPECT_THAT(out, Each(0));
  const std::vector<float> hello = embed(model(), *table, "hello");
  EXPECT_NEAR(cosine(hello, hello), 1, 1e-5);
}

TEST_F(TableOfASmallModel, IsTheSameForAnyNumberOfThreads) {
  const std::string bytes = file_bytes();
  std::filesystem::remove(StaticTable::cache_file(model()));
  EXPECT_EQ(StaticTable::load(model()).error().code, ErrorCode::kNotFound);
  std::size_t calls = 0, last_done = 0;
  ASSERT_TRUE(
      StaticTable::load_or_distill(model(), 1, [&](std::string_view, std::size_t done, std::size_t total) {
        EXPECT_GT(done, last_done);
        EXPECT_LE(done, total);
        last_done = done;
        ++calls;
      }));
  EXPECT_GE(calls, kWords / 64);
  EXPECT_EQ(bytes, file_bytes());
}

TEST_F(TableOfASmallModel, DamageIsRefused) {
  const std::string good = file_bytes();
  const auto refused = [&](std::string bytes, std::string_view why) {
    write_file(bytes);
    const auto table = StaticTable::load(model());
    ASSERT_FALSE(table) << why;
    EXPECT_EQ(table.error().code, ErrorCode::kCorrupt);
    EXPECT_THAT(table.error().message, HasSubstr(why));
  };
  for (const std::size_t size : {0U, 10U, 63U}) refused(good.substr(0, size), "cut short");
  for (const std::size_t size : {std::size_t{64}, good.size() / 2, good.size() - 1})
    refused(good.substr(0, size), "cut short");
  refused(good + "x", "after its end");
  for (const std::size_t at : {std::size_t{64}, good.size() / 2, good.size() - 1}) {
    std::string bytes = good;
    bytes[at] = static_cast<char>(bytes[at] ^ 1);
    refused(bytes, "checksum");
  }
  const auto with = [&](std::size_t at, char c) {
    std::string bytes = good;
    bytes[at] = c;
    return bytes;
  };
  refused(with(0, 'X'), "is not one");
  refused(with(8, 99), "version");
  refused(with(15, 99), "size");
  refused(with(23, 99), "size");
  refused(with(24, static_cast<char>(good[24] ^ 1)), "another model");
  write_file(good);
  EXPECT_TRUE(StaticTable::load(model()));
}

TEST_F(TableOfASmallModel, DamageIsRepairedAndSaid) {
  const std::string good = file_bytes();
  write_file(good.substr(0, good.size() / 2));
  StaticTableReport report;
  ASSERT_TRUE(StaticTable::load_or_distill(model(), 0, {}, &report));
  EXPECT_FALSE(report.from_cache_file);
  EXPECT_THAT(report.cache_note, HasSubstr("cut short"));
  EXPECT_EQ(good, file_bytes());
}

TEST_F(TableOfASmallModel, WorksWhereNothingCanBeWrittenAndSaysSo) {
  const auto before = StaticTable::load(model());
  ASSERT_TRUE(before);
  const std::string good = file_bytes();
  const std::filesystem::path place = model().folder() / ".waybill";
  std::filesystem::remove_all(place);
  ASSERT_TRUE(write_file_atomically(place, "in the way"));
  StaticTableReport report;
  const auto table = StaticTable::load_or_distill(model(), 0, {}, &report);
  ASSERT_TRUE(table);
  EXPECT_THAT(report.cache_note, HasSubstr("not kept"));
  EXPECT_EQ(embed(model(), *table, "hello world"), embed(model(), *before, "hello world"));
  std::filesystem::remove(place);
  write_file(good);
}

// The real model in a folder of its own, so that nothing is written beside the real one.
class TableOfTheRealModel : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    const char* const chosen = std::getenv("WAYBILL_MODEL");
    const std::filesystem::path real =
        chosen != nullptr ? chosen : WAYBILL_SOURCE_DIR "/models/all-MiniLM-L6-v2";
    const TemporaryFolder folder;
    std::error_code error;
    for (const auto& entry : std::filesystem::directory_iterator(real, error)) {
      if (entry.path().filename() != ".waybill") {
        std::filesystem::create_symlink(std::filesystem::absolute(entry.path()),
                                        folder.path() / entry.path().filename());
      }
    }
    Result<Model> model =
        Model::load({.folder = folder.path(), .precision = {}, .isa = {}, .use_cache_file = false});
    if (!model) {
      FAIL() << "this test needs the real model; run tools/fetch-model or set WAYBILL_MODEL: "
             << model.error().message;
    }
    auto table = StaticTable::load_or_distill(*model, 0);
    ASSERT_TRUE(table) << table.error().message;
    model_.emplace(std::move(*model));
    table_.emplace(std::move(*table));
  }
  static void TearDownTestSuite() { table_.reset(), model_.reset(); }
  void SetUp() override { ASSERT_TRUE(table_) << "the real model is missing"; }

  static std::vector<float> vector_of(std::string_view text) { return embed(*model_, *table_, text); }

  static inline std::optional<Model> model_;
  static inline std::optional<StaticTable> table_;
};

TEST_F(TableOfTheRealModel, KnowsWhatIsAlikeAndWhatIsNot) {
  const auto query = vector_of("How do I get my money back?");
  EXPECT_GT(cosine(query, vector_of("I want a refund of what I paid")),
            cosine(query, vector_of("What will the weather be tomorrow?")) + 0.2F);
  EXPECT_THAT(vector_of(""), Each(0)) << "[CLS] and [SEP] say nothing";
}

TEST_F(TableOfTheRealModel, FindsTheNearestRouteFarAboveChance) {
  const std::map<std::string, std::vector<std::string>> routes = {
      {"refund", {"i want my money back", "how do i return this item", "refund my last order please"}},
      {"delivery", {"where is my parcel", "when will my package arrive", "track the shipment of my order"}},
      {"password", {"i forgot my password", "reset my login", "i cannot sign in to my account"}},
      {"weather", {"will it rain tomorrow", "what is the temperature outside", "weather forecast for paris"}},
      {"music", {"play some jazz", "put on the next song", "turn up the volume of the music"}},
      {"code", {"write a python function", "fix this compiler error", "refactor the class in c++"}},
      {"translate",
       {"translate this to french", "how do you say hello in spanish", "what is the german word for bread"}},
      {"cooking",
       {"recipe for pancakes", "how long do i boil an egg", "what can i cook with rice and chicken"}},
      {"flight", {"book a flight to tokyo", "is my plane delayed", "cheapest ticket to new york"}},
      {"health", {"i have a headache", "symptoms of the flu", "how much should i sleep"}},
  };
  const std::vector<std::pair<std::string, std::string>> questions = {
      {"refund", "please return my payment for the order"},
      {"refund", "can i get a refund for the broken item"},
      {"delivery", "the package has not arrived yet"},
      {"delivery", "track my parcel"},
      {"password", "my login does not work"},
      {"password", "change the password of my account"},
      {"weather", "how warm is it going to be"},
      {"weather", "is there rain in london today"},
      {"music", "play the new album by adele"},
      {"music", "skip this song"},
      {"code", "write a function that sorts a list"},
      {"code", "why does my program not compile"},
      {"translate", "what does bonjour mean in english"},
      {"translate", "translate good morning to spanish"},
      {"cooking", "how do i bake a cake"},
      {"cooking", "recipe with chicken and egg"},
      {"flight", "i need a plane ticket to berlin"},
      {"flight", "flight from tokyo to paris"},
      {"health", "my head hurts"},
      {"health", "do i have the flu"},
  };
  int right = 0;
  for (const auto& [expected, text] : questions) {
    const auto query = vector_of(text);
    std::pair<float, std::string> best{-2, ""};
    for (const auto& [route, utterances] : routes) {
      float score = 0;
      for (const std::string& utterance : utterances) score += cosine(query, vector_of(utterance));
      best = std::max(best, {score, route});
    }
    right += best.second == expected ? 1 : 0;
  }
  EXPECT_GE(right, 15) << "of 20; chance is 2";
}

}  // namespace
}  // namespace waybill::embed
