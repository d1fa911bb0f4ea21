#include "route/exact_cache.h"

#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "route/prompt_key.h"

namespace waybill::route {
namespace {

Hash128 key_of(std::uint64_t i) { return hash128("prompt " + std::to_string(i)); }

// A decision that follows from the key, so that a reader can tell a torn or foreign one.
CachedDecision decision_of(std::uint64_t i) {
  return {.route = static_cast<std::uint32_t>(i),
          .score = static_cast<float>(i % 1000) / 1000,
          .to_default = i % 3 == 0,
          .vetoed = i % 5 == 0};
}

TEST(ExactCache, RemembersWhatWasInserted) {
  ExactCache cache(1 << 20);
  EXPECT_FALSE(cache.find(key_of(1)));
  cache.insert(key_of(1), decision_of(1));
  EXPECT_EQ(cache.find(key_of(1)), decision_of(1));
  EXPECT_FALSE(cache.find(key_of(2)));
  cache.insert(key_of(1), decision_of(3));
  EXPECT_EQ(cache.find(key_of(1)), decision_of(3)) << "the later decision replaces the earlier";
  const ExactCacheStats stats = cache.stats();
  EXPECT_EQ(stats.hits, 2U);
  EXPECT_EQ(stats.misses, 2U);
  EXPECT_EQ(stats.entries, 1U);
  EXPECT_EQ(stats.insertions, 1U);
  EXPECT_DOUBLE_EQ(stats.hit_rate(), 0.5);
}

TEST(ExactCache, StaysWithinItsBytesHoweverMuchIsInserted) {
  constexpr std::size_t kBytes = 64U << 10;
  ExactCache cache(kBytes);
  EXPECT_LE(cache.stats().bytes, kBytes);
  EXPECT_GT(cache.stats().bytes, kBytes - 512);
  for (std::uint64_t i = 0; i < 10 * cache.capacity(); ++i) cache.insert(key_of(i), decision_of(i));
  const ExactCacheStats stats = cache.stats();
  EXPECT_LE(stats.bytes, kBytes);
  EXPECT_LE(stats.entries, cache.capacity());
  EXPECT_GT(stats.entries, cache.capacity() * 95 / 100);
  EXPECT_EQ(stats.insertions - stats.evictions, stats.entries);
}

TEST(ExactCache, WhatIsAskedOftenSurvivesAFloodOfPromptsSeenOnce) {
  ExactCache cache(256U << 10);
  constexpr std::uint64_t kPopular = 200;
  for (std::uint64_t i = 0; i < kPopular; ++i) cache.insert(key_of(i), decision_of(i));
  for (std::uint64_t i = 0; i < 20 * cache.capacity(); ++i) {
    cache.insert(key_of(1'000'000 + i), decision_of(i));
    if (i % 4 == 0) (void)cache.find(key_of(i / 4 % kPopular));
  }
  std::uint64_t survived = 0;
  for (std::uint64_t i = 0; i < kPopular; ++i) survived += cache.find(key_of(i)).has_value();
  EXPECT_GT(survived, kPopular * 9 / 10);
}

TEST(ExactCache, TooFewBytesMakeACacheThatRemembersNothing) {
  ExactCache cache(100);
  cache.insert(key_of(1), decision_of(1));
  EXPECT_FALSE(cache.find(key_of(1)));
  EXPECT_EQ(cache.capacity(), 0U);
  EXPECT_EQ(cache.stats().misses, 1U);
}

TEST(ExactCache, IsEmptyAfterClear) {
  ExactCache cache(1 << 20);
  for (std::uint64_t i = 0; i < 100; ++i) cache.insert(key_of(i), decision_of(i));
  cache.clear();
  EXPECT_EQ(cache.stats().entries, 0U);
  EXPECT_FALSE(cache.find(key_of(1)));
}

TEST(ExactCache, ReadersNeverSeeHalfAnEntryWhileOthersWrite) {
  ExactCache cache(4096);  // few buckets: every thread meets every other
  std::atomic<bool> wrong{false};
  const auto work = [&](std::uint64_t seed) {
    std::uint64_t x = seed;
    for (int n = 0; n < 20'000; ++n) {
      x = x * 6364136223846793005ULL + 1442695040888963407ULL;
      const std::uint64_t i = (x >> 33) % 200;
      if (n % 2 == 0) cache.insert(key_of(i), decision_of(i));
      if (const auto found = cache.find(key_of(i)); found && *found != decision_of(i)) wrong = true;
    }
  };
  std::vector<std::jthread> threads;
  for (std::uint64_t t = 0; t < 4; ++t) threads.emplace_back(work, t + 1);
  threads.clear();
  EXPECT_FALSE(wrong);
  const ExactCacheStats stats = cache.stats();
  EXPECT_EQ(stats.hits + stats.misses, 80'000U);
  EXPECT_EQ(stats.insertions - stats.evictions, stats.entries);
}

std::string normalized(std::string_view prompt, bool folds_case) {
  std::string out;
  PromptNormalizer(folds_case).normalize(prompt, out);
  return out;
}

TEST(PromptNormalizer, MakesRunsOfBlanksOneSpaceAndTrims) {
  EXPECT_EQ(normalized("  a\t\r\n b  ", true), "a b");
  EXPECT_EQ(normalized("", true), "");
  EXPECT_EQ(normalized(" \n\t ", true), "");
}

TEST(PromptNormalizer, KeepsControlCharactersWhichTheTokenizerDrops) {
  EXPECT_EQ(normalized("a\vb \f c", true), "a\vb \f c");
  EXPECT_EQ(normalized(std::string_view("a\0b", 3), true), std::string_view("a\0b", 3));
}

TEST(PromptNormalizer, FoldsAsciiCaseUnlessASpecialTokenMightBeMeant) {
  EXPECT_EQ(normalized("Hello \xC3\x84", true), "hello \xC3\x84");
  EXPECT_EQ(normalized("Hello [SEP]", true), "Hello [SEP]");
  EXPECT_EQ(normalized("Hello", false), "Hello");
}

}  // namespace
}  // namespace waybill::route
