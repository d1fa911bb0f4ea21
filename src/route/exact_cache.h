// Decisions by prompt: the cheapest tier.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>

#include "base/hash.h"

namespace waybill::route {

// What is remembered of a decision. The rest of it follows from the route and the rules.
struct CachedDecision {
  std::uint32_t route = 0;  // Decision::index
  float score = 0;
  bool to_default = false;  // it went to the default route
  bool vetoed = false;      // rules forbade a better route

  friend bool operator==(const CachedDecision&, const CachedDecision&) = default;
};

struct ExactCacheStats {
  std::uint64_t hits = 0, misses = 0, insertions = 0, evictions = 0;
  std::size_t entries = 0;
  std::size_t capacity = 0;  // entries
  std::size_t bytes = 0;     // all memory of the cache, used or not

  [[nodiscard]] double hit_rate() const noexcept {
    return hits + misses == 0 ? 0 : static_cast<double>(hits) / static_cast<double>(hits + misses);
  }
};

// A set-associative table of fixed size: a key may stand in the seven places of its bucket of 256 bytes, and
// each bucket evicts by CLOCK (second chance: what was asked again since the hand came by stays, so that a
// flood of prompts seen once does not push out those seen often). Only the 128-bit hash of a prompt is kept;
// two of n prompts share one with probability n^2 / 2^129.
//
// Thread-safe. Reading takes no lock (a sequence lock per bucket; a reader that meets a writer counts a
// miss), writing locks one bucket and gives up if another thread writes it at that moment.
class ExactCache {
 public:
  // Uses at most max_bytes, all of it reserved here (the pages come in as they are used). Remembers nothing
  // when max_bytes is too small for one bucket.
  explicit ExactCache(std::size_t max_bytes);
  ~ExactCache();
  ExactCache(const ExactCache&) = delete;
  ExactCache& operator=(const ExactCache&) = delete;

  [[nodiscard]] std::optional<CachedDecision> find(const Hash128& key) noexcept;
  void insert(const Hash128& key, const CachedDecision& decision) noexcept;
  void clear() noexcept;

  // Counts of all threads; exact when nobody is writing.
  [[nodiscard]] ExactCacheStats stats() const noexcept;
  [[nodiscard]] std::size_t capacity() const noexcept;  // entries

 private:
  struct Bucket;
  struct Counters;
  [[nodiscard]] Bucket& bucket_of(const Hash128& key) const noexcept;
  [[nodiscard]] Counters& counters() const noexcept;

  std::size_t bucket_count_ = 0;
  Bucket* buckets_ = nullptr;  // anonymous mapping: zero pages until touched
  std::unique_ptr<Counters[]> counters_;
};

}  // namespace waybill::route
