#include "route/utterance_cache.h"

#include <fstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

namespace waybill::route {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

class UtteranceCacheTest : public testing::Test {
 protected:
  UtteranceCacheTest() {
    folder_ = std::filesystem::temp_directory_path() /
              ("waybill-utterances-" + std::to_string(::getpid()) + "-" +
               testing::UnitTest::GetInstance()->current_test_info()->name());
    std::filesystem::remove_all(folder_);
  }
  ~UtteranceCacheTest() override { std::filesystem::remove_all(folder_); }

  [[nodiscard]] std::filesystem::path file() const { return folder_ / "embeddings.bin"; }

  // A file with the embeddings {i, -i} of "text i" for i < count, model 7.
  void write(int count) const {
    UtteranceCache cache(file());
    for (int i = 0; i < count; ++i) {
      const std::array<float, 2> embedding = {static_cast<float>(i), static_cast<float>(-i)};
      cache.insert(UtteranceCache::key("text " + std::to_string(i), 7), embedding);
    }
    ASSERT_TRUE(cache.save());
  }

  std::filesystem::path folder_;
};

// Without the flush to disk that write_file_atomically() waits for.
void overwrite(const std::filesystem::path& path, std::string_view bytes) {
  std::ofstream(path, std::ios::binary | std::ios::trunc)
      .write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
}

Hash128 key(int i) { return UtteranceCache::key("text " + std::to_string(i), 7); }

TEST_F(UtteranceCacheTest, FindsAfterARestartWhatWasSaved) {
  write(3);
  UtteranceCache cache(file());
  EXPECT_THAT(cache.note(), IsEmpty());
  EXPECT_EQ(cache.size(), 3U);
  EXPECT_THAT(cache.find(key(2), 2), ElementsAre(2.0F, -2.0F));
  EXPECT_THAT(cache.find(key(3), 2), IsEmpty());
}

TEST_F(UtteranceCacheTest, AnotherModelOrDimensionIsAnotherEmbedding) {
  write(1);
  UtteranceCache cache(file());
  EXPECT_THAT(cache.find(UtteranceCache::key("text 0", 8), 2), IsEmpty());
  EXPECT_THAT(cache.find(key(0), 3), IsEmpty());
}

TEST_F(UtteranceCacheTest, IsOfUseBeforeItIsSaved) {
  UtteranceCache cache(file());
  cache.insert(key(1), std::array<float, 1>{4});
  EXPECT_THAT(cache.find(key(1), 1), ElementsAre(4.0F));
  EXPECT_FALSE(std::filesystem::exists(file()));
}

TEST_F(UtteranceCacheTest, SavingWithNothingNewLeavesTheFileAlone) {
  write(1);
  std::filesystem::last_write_time(file(), std::filesystem::file_time_type{});
  UtteranceCache cache(file());
  (void)cache.find(key(0), 2);
  EXPECT_TRUE(cache.save());
  EXPECT_EQ(std::filesystem::last_write_time(file()), std::filesystem::file_time_type{});
}

TEST_F(UtteranceCacheTest, AnyDamageEmptiesTheCacheWithANoteAndTheNextSaveRepairsIt) {
  write(4);
  const std::string good = *read_file(file());
  for (std::size_t at = 0; at < good.size(); ++at) {
    std::string bad = good;
    bad[at] = static_cast<char>(bad[at] ^ 0x10);
    overwrite(file(), bad);
    UtteranceCache cache(file());
    EXPECT_EQ(cache.size(), 0U) << "byte " << at;
    EXPECT_THAT(cache.note(), HasSubstr("damaged")) << "byte " << at;
  }
  for (std::size_t size = 0; size < good.size(); ++size) {
    overwrite(file(), std::string_view(good).substr(0, size));
    EXPECT_EQ(UtteranceCache(file()).size(), 0U) << size << " bytes";
  }
  write(4);
  EXPECT_EQ(UtteranceCache(file()).size(), 4U);
}

TEST_F(UtteranceCacheTest, WorksWhereItCannotBeWrittenAndSaysSo) {
  std::ofstream(folder_.string()) << "a file where the folder should be";
  UtteranceCache cache(file());
  cache.insert(key(1), std::array<float, 1>{4});
  const Status saved = cache.save();
  ASSERT_FALSE(saved);
  EXPECT_THAT(saved.error().message, HasSubstr("embeddings.bin"));
  EXPECT_THAT(cache.find(key(1), 1), ElementsAre(4.0F));
}

TEST_F(UtteranceCacheTest, KeepsUnusedEntriesOnlyUpToTheBoundAndUsedOnesAlways) {
  write(100);
  constexpr std::size_t kEntry = 40;
  UtteranceCache cache(file());
  for (int i = 90; i < 100; ++i) (void)cache.find(key(i), 2);
  cache.insert(key(1000), std::array<float, 2>{1, 1});
  ASSERT_TRUE(cache.save(32 + 20 * kEntry));
  UtteranceCache again(file());
  EXPECT_EQ(again.size(), 20U);
  for (int i = 90; i < 100; ++i) EXPECT_FALSE(again.find(key(i), 2).empty()) << i;
  EXPECT_FALSE(again.find(key(1000), 2).empty());
  EXPECT_FALSE(again.find(key(0), 2).empty()) << "of the unused, the first of the earlier file stay";
  again.insert(key(1001), std::array<float, 2>{1, 1});
  ASSERT_TRUE(again.save(0));
  EXPECT_EQ(UtteranceCache(file()).size(), 13U) << "12 found, 1 new";
}

TEST_F(UtteranceCacheTest, FittedBytesComeBackUnderTheirKeyOnly) {
  const FittedCache cache(folder_);
  EXPECT_FALSE(cache.find({1, 2}));
  ASSERT_TRUE(cache.insert({1, 2}, "fitted"));
  EXPECT_EQ(cache.find({1, 2}), "fitted");
  EXPECT_FALSE(cache.find({1, 3}));
}

TEST_F(UtteranceCacheTest, DamagedFittedBytesAreMissing) {
  const FittedCache cache(folder_);
  ASSERT_TRUE(cache.insert({1, 2}, "fitted"));
  const std::filesystem::path path = std::filesystem::directory_iterator(folder_)->path();
  const std::string good = *read_file(path);
  for (std::size_t at = 0; at < good.size(); ++at) {
    std::string bad = good;
    bad[at] = static_cast<char>(bad[at] ^ 1);
    overwrite(path, bad);
    EXPECT_FALSE(cache.find({1, 2})) << "byte " << at;
    overwrite(path, std::string_view(good).substr(0, at));
    EXPECT_FALSE(cache.find({1, 2})) << at << " bytes";
  }
}

TEST_F(UtteranceCacheTest, OnlyTheMostRecentFewFittedFilesStay) {
  const FittedCache cache(folder_);
  for (std::uint64_t i = 0; i < 20; ++i) ASSERT_TRUE(cache.insert({i, 0}, "x"));
  const auto files =
      std::distance(std::filesystem::directory_iterator(folder_), std::filesystem::directory_iterator());
  EXPECT_EQ(static_cast<std::size_t>(files), FittedCache::kMaxFiles);
}

}  // namespace
}  // namespace waybill::route
