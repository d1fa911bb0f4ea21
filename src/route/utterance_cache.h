// Embeddings of utterances and fitted heads on disk, so that a restart computes neither.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/file.h"
#include "base/hash.h"
#include "base/result.h"

namespace waybill::route {

// One file of embeddings, each under the 128-bit hash of its text and of the model that made it, so that
// models and configurations share the file. Loaded by mapping it; written whole and atomically by save(). A
// file that is missing is an empty cache; one that is damaged is an empty cache with a note, and the next
// save() replaces it.
//
// Format (little-endian): "WBEMBED1", u64 entries, u64 floats, u64 XXH3 of all that follows; per entry u64
// low, u64 high, u64 first float, u64 dimensions; the floats.
//
// Not thread-safe.
class UtteranceCache {
 public:
  // Entries that were not asked for since open() are kept up to this size of the file, the most recent first.
  static constexpr std::size_t kMaxBytes = 64U << 20;

  explicit UtteranceCache(std::filesystem::path file);

  // The key of `text` as embedded by the model with this hash (which covers everything that changes
  // embeddings).
  [[nodiscard]] static Hash128 key(std::string_view text, std::uint64_t model_hash) noexcept {
    return hash128(text, model_hash);
  }

  // The embedding, empty if it is not there with this many dimensions. Valid until save() or destruction.
  [[nodiscard]] std::span<const float> find(const Hash128& key, std::size_t dim);
  void insert(const Hash128& key, std::span<const float> embedding);

  // Writes the file if anything was inserted. Fails with kIo; the cache remains usable.
  [[nodiscard]] Status save(std::size_t max_bytes = kMaxBytes);

  [[nodiscard]] std::size_t size() const noexcept { return entries_.size(); }
  [[nodiscard]] const std::string& note() const noexcept {
    return note_;
  }  // why the file was not used, or empty

 private:
  struct Entry {
    std::span<const float> floats;
    bool used = false;           // found or inserted since open()
    std::uint32_t position = 0;  // in the file; new ones count on
  };
  struct KeyHash {
    std::size_t operator()(const Hash128& key) const noexcept { return key.low; }
  };

  [[nodiscard]] Status read();

  std::filesystem::path path_;
  MappedFile file_;
  std::unordered_map<Hash128, Entry, KeyHash> entries_;
  std::vector<std::vector<float>> inserted_;
  std::string note_;
};

// Fitted heads (or any bytes that are a function of a key), one file each in a folder, the most recently used
// few of them kept. A file that is damaged or of another key is as one that is missing.
//
// Format: "WBFITTED", u64 low and u64 high of the key, u64 XXH3 of the bytes, the bytes.
class FittedCache {
 public:
  static constexpr std::size_t kMaxFiles = 8;

  explicit FittedCache(std::filesystem::path folder) : folder_(std::move(folder)) {}

  [[nodiscard]] std::optional<std::string> find(const Hash128& key) const;
  [[nodiscard]] Status insert(const Hash128& key, std::string_view bytes) const;

 private:
  [[nodiscard]] std::filesystem::path path_of(const Hash128& key) const;

  std::filesystem::path folder_;
};

}  // namespace waybill::route
