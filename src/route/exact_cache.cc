#include "route/exact_cache.h"

#include <array>
#include <bit>

#include <sys/mman.h>

namespace waybill::route {
namespace {

constexpr std::size_t kWays = 7;

// Striped so that deciding threads do not share a cache line for counting.
constexpr std::size_t kCounterStripes = 16;

unsigned thread_stripe() noexcept {
  static std::atomic<unsigned> next{0};
  thread_local const unsigned mine = next.fetch_add(1, std::memory_order_relaxed) % kCounterStripes;
  return mine;
}

struct Slot {
  // key low, key high, route and score, flags
  std::array<std::atomic<std::uint64_t>, 4> words;
};

std::uint64_t pack(std::uint32_t low, std::uint32_t high) noexcept {
  return low | (std::uint64_t{high} << 32);
}

}  // namespace

// Four cache lines. All members are atomics read and written relaxed; `sequence` (odd while written) orders
// them. All zeros is an empty bucket.
struct alignas(64) ExactCache::Bucket {
  std::atomic<std::uint32_t> sequence;
  std::atomic<std::uint8_t> used;        // one bit a way
  std::atomic<std::uint8_t> referenced;  // asked since the hand last came by
  std::atomic<std::uint8_t> hand;
  std::array<std::atomic<std::uint16_t>, kWays>
      tags;  // of the key's low bits: most ways are ruled out by them
  std::array<Slot, kWays> slots;

  // Bit w is set when way w may hold the key.
  [[nodiscard]] unsigned candidates(std::uint16_t tag) const noexcept {
    unsigned mask = 0;
    for (std::size_t way = 0; way < kWays; ++way) {
      mask |= static_cast<unsigned>(tags[way].load(std::memory_order_relaxed) == tag) << way;
    }
    return mask & used.load(std::memory_order_relaxed);
  }

  // The way that holds the key, kWays if none does. Under the lock, or verified by the sequence afterwards.
  [[nodiscard]] std::size_t way_of(const Hash128& key) const noexcept {
    for (unsigned mask = candidates(static_cast<std::uint16_t>(key.low)); mask != 0; mask &= mask - 1) {
      const auto way = static_cast<std::size_t>(std::countr_zero(mask));
      if (slots[way].words[0].load(std::memory_order_relaxed) == key.low &&
          slots[way].words[1].load(std::memory_order_relaxed) == key.high) {
        return way;
      }
    }
    return kWays;
  }

  // A free way, or the one that the clock hand gives up. Under the lock.
  [[nodiscard]] std::size_t victim() noexcept {
    const unsigned free = ~unsigned{used.load(std::memory_order_relaxed)} & ((1U << kWays) - 1);
    if (free != 0) return static_cast<std::size_t>(std::countr_zero(free));
    std::size_t way = hand.load(std::memory_order_relaxed);
    unsigned marks = referenced.load(std::memory_order_relaxed);
    while ((marks >> way & 1) != 0) {
      marks &= ~(1U << way);
      way = (way + 1) % kWays;
    }
    referenced.store(static_cast<std::uint8_t>(marks), std::memory_order_relaxed);
    hand.store(static_cast<std::uint8_t>((way + 1) % kWays), std::memory_order_relaxed);
    return way;
  }
};

struct alignas(64) ExactCache::Counters {
  std::atomic<std::uint64_t> hits, misses, insertions, evictions;
};

ExactCache::ExactCache(std::size_t max_bytes) : counters_(std::make_unique<Counters[]>(kCounterStripes)) {
  static_assert(sizeof(Bucket) == 256);
  const std::size_t fixed = sizeof(ExactCache) + kCounterStripes * sizeof(Counters);
  if (max_bytes < fixed + sizeof(Bucket)) return;
  const std::size_t count = (max_bytes - fixed) / sizeof(Bucket);
  void* const memory = ::mmap(nullptr, count * sizeof(Bucket), PROT_READ | PROT_WRITE,
                              MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) return;  // no memory for remembering: every prompt is new
  bucket_count_ = count;
  buckets_ = static_cast<Bucket*>(memory);
}

ExactCache::~ExactCache() {
  if (buckets_ != nullptr) ::munmap(static_cast<void*>(buckets_), bucket_count_ * sizeof(Bucket));
}

ExactCache::Bucket& ExactCache::bucket_of(const Hash128& key) const noexcept {
  // The high half spreads over [0, bucket_count) by its product; the low half gives the tag.
  __extension__ using Wide = unsigned __int128;
  return buckets_[static_cast<std::size_t>(Wide{key.high} * bucket_count_ >> 64)];
}

ExactCache::Counters& ExactCache::counters() const noexcept { return counters_[thread_stripe()]; }

std::optional<CachedDecision> ExactCache::find(const Hash128& key) noexcept {
  Counters& count = counters();
  if (bucket_count_ != 0) {
    Bucket& bucket = bucket_of(key);
    const std::uint32_t before = bucket.sequence.load(std::memory_order_acquire);
    const std::size_t way = (before & 1) != 0 ? kWays : bucket.way_of(key);
    if (way != kWays) {
      const std::uint64_t value = bucket.slots[way].words[2].load(std::memory_order_relaxed);
      const std::uint64_t flags = bucket.slots[way].words[3].load(std::memory_order_relaxed);
      std::atomic_thread_fence(std::memory_order_acquire);
      if (bucket.sequence.load(std::memory_order_relaxed) == before) {
        const auto bit = static_cast<std::uint8_t>(1U << way);
        if ((bucket.referenced.load(std::memory_order_relaxed) & bit) == 0) {
          bucket.referenced.fetch_or(bit, std::memory_order_relaxed);
        }
        count.hits.fetch_add(1, std::memory_order_relaxed);
        return CachedDecision{.route = static_cast<std::uint32_t>(value),
                              .score = std::bit_cast<float>(static_cast<std::uint32_t>(value >> 32)),
                              .to_default = (flags & 1) != 0,
                              .vetoed = (flags & 2) != 0};
      }
    }
  }
  count.misses.fetch_add(1, std::memory_order_relaxed);
  return std::nullopt;
}

void ExactCache::insert(const Hash128& key, const CachedDecision& decision) noexcept {
  if (bucket_count_ == 0) return;
  Bucket& bucket = bucket_of(key);
  std::uint32_t sequence = bucket.sequence.load(std::memory_order_relaxed);
  if ((sequence & 1) != 0 ||
      !bucket.sequence.compare_exchange_strong(sequence, sequence + 1, std::memory_order_acquire,
                                               std::memory_order_relaxed)) {
    return;
  }
  std::atomic_thread_fence(std::memory_order_release);
  Counters& count = counters();
  std::size_t way = bucket.way_of(key);
  if (way == kWays) {
    way = bucket.victim();
    const auto bit = static_cast<std::uint8_t>(1U << way);
    const std::uint8_t used = bucket.used.load(std::memory_order_relaxed);
    if ((used & bit) != 0) count.evictions.fetch_add(1, std::memory_order_relaxed);
    count.insertions.fetch_add(1, std::memory_order_relaxed);
    bucket.used.store(used | bit, std::memory_order_relaxed);
    bucket.tags[way].store(static_cast<std::uint16_t>(key.low), std::memory_order_relaxed);
    bucket.slots[way].words[0].store(key.low, std::memory_order_relaxed);
    bucket.slots[way].words[1].store(key.high, std::memory_order_relaxed);
  }
  bucket.slots[way].words[2].store(pack(decision.route, std::bit_cast<std::uint32_t>(decision.score)),
                                   std::memory_order_relaxed);
  bucket.slots[way].words[3].store((decision.to_default ? 1U : 0U) | (decision.vetoed ? 2U : 0U),
                                   std::memory_order_relaxed);
  bucket.sequence.store(sequence + 2, std::memory_order_release);
}

void ExactCache::clear() noexcept {
  for (std::size_t i = 0; i < bucket_count_; ++i) {
    std::uint32_t sequence = buckets_[i].sequence.load(std::memory_order_relaxed);
    while ((sequence & 1) != 0 ||
           !buckets_[i].sequence.compare_exchange_weak(sequence, sequence + 1, std::memory_order_acquire,
                                                       std::memory_order_relaxed)) {
      sequence = buckets_[i].sequence.load(std::memory_order_relaxed);
    }
    std::atomic_thread_fence(std::memory_order_release);
    buckets_[i].used.store(0, std::memory_order_relaxed);
    buckets_[i].referenced.store(0, std::memory_order_relaxed);
    buckets_[i].sequence.store(sequence + 2, std::memory_order_release);
  }
}

ExactCacheStats ExactCache::stats() const noexcept {
  ExactCacheStats stats;
  for (std::size_t i = 0; i < kCounterStripes; ++i) {
    stats.hits += counters_[i].hits.load(std::memory_order_relaxed);
    stats.misses += counters_[i].misses.load(std::memory_order_relaxed);
    stats.insertions += counters_[i].insertions.load(std::memory_order_relaxed);
    stats.evictions += counters_[i].evictions.load(std::memory_order_relaxed);
  }
  for (std::size_t i = 0; i < bucket_count_; ++i) {
    stats.entries +=
        static_cast<std::size_t>(std::popcount(unsigned{buckets_[i].used.load(std::memory_order_relaxed)}));
  }
  stats.capacity = capacity();
  stats.bytes = sizeof(ExactCache) + kCounterStripes * sizeof(Counters) + bucket_count_ * sizeof(Bucket);
  return stats;
}

std::size_t ExactCache::capacity() const noexcept { return bucket_count_ * kWays; }

}  // namespace waybill::route
