#include "route/utterance_cache.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <functional>

#include <fmt/format.h>

namespace waybill::route {
namespace {

static_assert(std::endian::native == std::endian::little, "the cache files are little-endian");

constexpr std::array<char, 8> kEmbeddingsMagic = {'W', 'B', 'E', 'M', 'B', 'E', 'D', '1'};
constexpr std::array<char, 8> kFittedMagic = {'W', 'B', 'F', 'I', 'T', 'T', 'E', 'D'};

struct FileHeader {
  std::array<char, 8> magic;
  std::uint64_t entries, floats, checksum;
};

struct IndexEntry {
  std::uint64_t low, high, first, dim;
};

struct FittedHeader {
  std::array<char, 8> magic;
  std::uint64_t low, high, checksum;
};

template <class T>
std::span<const std::byte> bytes_of(const T& value) {
  return std::as_bytes(std::span(&value, 1));
}

Status damaged(const std::filesystem::path& path, std::string_view why) {
  return fail(ErrorCode::kCorrupt, fmt::format("{} is damaged ({}); it is made anew", path.string(), why));
}

}  // namespace

UtteranceCache::UtteranceCache(std::filesystem::path file) : path_(std::move(file)) {
  Result<MappedFile> mapped = MappedFile::open(path_);
  if (!mapped) {
    if (mapped.error().code != ErrorCode::kNotFound)
      note_ = fmt::format("utterance cache not read: {}", mapped.error().message);
    return;
  }
  file_ = std::move(*mapped);
  if (const Status status = read(); !status) {
    note_ = fmt::format("utterance cache not used: {}", status.error().message);
    entries_.clear();
  }
}

Status UtteranceCache::read() {
  const std::span<const std::byte> bytes = file_.bytes();
  FileHeader header{};
  if (bytes.size() < sizeof header) return damaged(path_, "too short");
  std::memcpy(&header, bytes.data(), sizeof header);
  const std::span<const std::byte> body = bytes.subspan(sizeof header);
  if (header.magic != kEmbeddingsMagic) return damaged(path_, "not a cache of embeddings");
  if (header.entries > body.size() / sizeof(IndexEntry) || header.floats > body.size() / sizeof(float) ||
      body.size() != header.entries * sizeof(IndexEntry) + header.floats * sizeof(float)) {
    return damaged(path_, "its size is not what its header says");
  }
  if (hash64(body) != header.checksum) return damaged(path_, "its checksum is wrong");

  // The mapping is page-aligned and both parts before the floats are multiples of 32 bytes.
  const std::span floats(reinterpret_cast<const float*>(body.data() + header.entries * sizeof(IndexEntry)),
                         header.floats);
  entries_.reserve(header.entries);
  for (std::uint32_t i = 0; i < header.entries; ++i) {
    IndexEntry entry{};
    std::memcpy(&entry, body.data() + i * sizeof entry, sizeof entry);
    if (entry.first > header.floats || entry.dim > header.floats - entry.first)
      return damaged(path_, "an entry points past its end");
    entries_[{entry.low, entry.high}] =
        Entry{.floats = floats.subspan(entry.first, entry.dim), .used = false, .position = i};
  }
  return {};
}

std::span<const float> UtteranceCache::find(const Hash128& key, std::size_t dim) {
  const auto found = entries_.find(key);
  if (found == entries_.end() || found->second.floats.size() != dim) return {};
  found->second.used = true;
  return found->second.floats;
}

void UtteranceCache::insert(const Hash128& key, std::span<const float> embedding) {
  const std::vector<float>& kept = inserted_.emplace_back(embedding.begin(), embedding.end());
  entries_[key] =
      Entry{.floats = kept, .used = true, .position = static_cast<std::uint32_t>(entries_.size())};
}

Status UtteranceCache::save(std::size_t max_bytes) {
  if (inserted_.empty()) return {};
  std::vector<std::pair<const Hash128*, const Entry*>> order;
  order.reserve(entries_.size());
  for (const auto& [key, entry] : entries_) order.emplace_back(&key, &entry);
  // What was used comes first, then what an earlier save() put first.
  std::sort(order.begin(), order.end(), [](const auto& a, const auto& b) {
    return std::pair(!a.second->used, a.second->position) < std::pair(!b.second->used, b.second->position);
  });

  std::vector<IndexEntry> index;
  FileHeader header{.magic = kEmbeddingsMagic, .entries = 0, .floats = 0, .checksum = 0};
  std::size_t bytes = sizeof header;
  std::vector<float> floats;
  for (const auto& [key, entry] : order) {
    bytes += sizeof(IndexEntry) + entry->floats.size_bytes();
    if (!entry->used && bytes > max_bytes) break;
    index.push_back({key->low, key->high, floats.size(), entry->floats.size()});
    floats.insert(floats.end(), entry->floats.begin(), entry->floats.end());
  }
  std::vector<std::byte> body(index.size() * sizeof(IndexEntry) + floats.size() * sizeof(float));
  std::memcpy(body.data(), index.data(), index.size() * sizeof(IndexEntry));
  std::memcpy(body.data() + index.size() * sizeof(IndexEntry), floats.data(), floats.size() * sizeof(float));
  header.entries = index.size();
  header.floats = floats.size();
  header.checksum = hash64(body);
  const std::array<std::span<const std::byte>, 2> file = {bytes_of(header), body};
  return write_file_atomically(path_, file);
}

std::filesystem::path FittedCache::path_of(const Hash128& key) const {
  return folder_ / fmt::format("fitted-{:016x}{:016x}.bin", key.high, key.low);
}

std::optional<std::string> FittedCache::find(const Hash128& key) const {
  const std::filesystem::path path = path_of(key);
  Result<std::string> bytes = read_file(path);
  FittedHeader header{};
  if (!bytes || bytes->size() < sizeof header) return std::nullopt;
  std::memcpy(&header, bytes->data(), sizeof header);
  bytes->erase(0, sizeof header);
  if (header.magic != kFittedMagic || header.low != key.low || header.high != key.high ||
      header.checksum != hash64(std::string_view(*bytes))) {
    return std::nullopt;
  }
  std::error_code
      ignored;  // the time of use, by which insert() chooses what goes; a read-only folder may keep it
  std::filesystem::last_write_time(path, std::filesystem::file_time_type::clock::now(), ignored);
  return std::move(*bytes);
}

Status FittedCache::insert(const Hash128& key, std::string_view bytes) const {
  const FittedHeader header{
      .magic = kFittedMagic, .low = key.low, .high = key.high, .checksum = hash64(bytes)};
  const std::array<std::span<const std::byte>, 2> file = {bytes_of(header), std::as_bytes(std::span(bytes))};
  if (Status status = write_file_atomically(path_of(key), file); !status) return status;

  std::error_code ignored;
  std::vector<std::pair<std::filesystem::file_time_type, std::filesystem::path>> files;
  for (std::filesystem::directory_iterator entry(folder_, ignored), end; entry != end;
       entry.increment(ignored)) {
    const std::string name = entry->path().filename().string();
    if (name.starts_with("fitted-") && name.ends_with(".bin"))
      files.emplace_back(entry->last_write_time(ignored), entry->path());
  }
  std::sort(files.begin(), files.end(), std::greater<>());
  for (std::size_t i = kMaxFiles; i < files.size(); ++i) std::filesystem::remove(files[i].second, ignored);
  return {};
}

}  // namespace waybill::route
