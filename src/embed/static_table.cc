#include "embed/static_table.h"

#include <algorithm>
#include <array>
#include <bit>
#include <chrono>
#include <cmath>
#include <cstring>
#include <utility>

#include <fmt/format.h>
#include <immintrin.h>

#include "base/check.h"
#include "base/hash.h"
#include "embed/static_distill.h"

namespace waybill::embed {
namespace {

constexpr std::array<char, 8> kMagic = {'W', 'A', 'Y', 'B', 'S', 'T', 'A', 'T'};
constexpr std::uint32_t kVersion = 1;  // raised when the recipe or the layout changes
constexpr std::size_t kColumns = 64;   // a cache line of a row; what the kernel sums at a time

// The cache file, little-endian: this header, the scales (float32, padded with zeros to a multiple of 64
// bytes), the values (int8, rows of `stride`).
struct Header {
  std::array<char, 8> magic;
  std::uint32_t version, dim;
  std::uint64_t vocabulary;
  std::uint64_t model_hash;  // Model::hash()
  std::uint64_t checksum;    // hash64 of all that follows the header
  std::array<std::uint64_t, 3> reserved;
};
static_assert(sizeof(Header) == 64 && std::endian::native == std::endian::little);

constexpr std::size_t kMaxDim = 1U << 14, kMaxVocabulary = 1U << 24;

std::size_t padded(std::size_t n) { return (n + 63) / 64 * 64; }

// Sums scale * value over the ids for 64 columns from `column` on.
void sum_columns(std::span<const TokenId> ids, const float* scales, const std::int8_t* values,
                 std::size_t stride, std::size_t column, float* out) noexcept {
  __m256 sums[8] = {};
  for (const TokenId id : ids) {
    const auto token = static_cast<std::size_t>(id);
    const __m256 scale = _mm256_set1_ps(scales[token]);
    const std::int8_t* row = values + token * stride + column;
    for (int i = 0; i < 8; ++i) {
      const __m128i bytes = _mm_loadl_epi64(reinterpret_cast<const __m128i*>(row + 8 * i));
      sums[i] = _mm256_fmadd_ps(scale, _mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(bytes)), sums[i]);
    }
  }
  for (int i = 0; i < 8; ++i) _mm256_storeu_ps(out + 8 * i, sums[i]);
}

void normalise(std::span<float> v) noexcept {
  std::array<float, 8> squares = {};  // independent sums: one addition a cycle, not one in four
  std::size_t i = 0;
  for (; i + 8 <= v.size(); i += 8) {
    for (std::size_t j = 0; j < 8; ++j) squares[j] += v[i + j] * v[i + j];
  }
  float sum = 0;
  for (; i < v.size(); ++i) sum += v[i] * v[i];
  for (const float s : squares) sum += s;
  if (sum <= 0) return;
  const float factor = 1 / std::sqrt(sum);
  for (float& x : v) x *= factor;
}

std::unexpected<Error> damaged(std::string_view what) {
  return fail(ErrorCode::kCorrupt,
              fmt::format("the static table {}; it will be made again when it is deleted", what));
}

Status write(const std::filesystem::path& path, const StaticRows& rows, std::uint64_t model_hash) {
  std::vector<std::byte> body(padded(rows.scales.size() * sizeof(float)) + rows.values.size());
  std::memcpy(body.data(), rows.scales.data(), rows.scales.size() * sizeof(float));
  std::memcpy(body.data() + padded(rows.scales.size() * sizeof(float)), rows.values.data(),
              rows.values.size());
  Header header{kMagic,       kVersion, static_cast<std::uint32_t>(rows.dim), rows.scales.size(), model_hash,
                hash64(body), {}};
  const std::array<std::span<const std::byte>, 2> parts = {std::as_bytes(std::span(&header, 1)), body};
  return write_file_atomically(path, parts);
}

}  // namespace

std::filesystem::path StaticTable::cache_file(const Model& model) {
  return model.folder() / ".waybill" / fmt::format("static-{:016x}.table", model.hash());
}

Result<StaticTable> StaticTable::parse(std::span<const std::byte> bytes, std::uint64_t model_hash) {
  Header header;
  if (bytes.size() < sizeof header) return damaged("is cut short");
  std::memcpy(&header, bytes.data(), sizeof header);
  if (header.magic != kMagic) return damaged("is not one");
  if (header.version != kVersion) return damaged("was written by another version");
  if (header.model_hash != model_hash) return damaged("belongs to another model");
  if (header.dim == 0 || header.dim > kMaxDim || header.vocabulary == 0 ||
      header.vocabulary > kMaxVocabulary) {
    return damaged("is damaged (its size makes no sense)");
  }
  const std::size_t stride = padded(header.dim);
  const std::size_t scale_bytes = padded(header.vocabulary * sizeof(float));
  const auto body = bytes.subspan(sizeof header);
  if (body.size() != scale_bytes + header.vocabulary * stride)
    return damaged("is cut short or has something after its end");
  if (hash64(body) != header.checksum) return damaged("is damaged (its checksum does not fit)");
  WAYBILL_CHECK(reinterpret_cast<std::uintptr_t>(bytes.data()) % 64 == 0);
  StaticTable table;
  table.dim_ = header.dim;
  table.stride_ = stride;
  table.scales_ = {reinterpret_cast<const float*>(body.data()), header.vocabulary};
  table.values_ = {reinterpret_cast<const std::int8_t*>(body.data() + scale_bytes),
                   header.vocabulary * stride};
  return table;
}

StaticTable StaticTable::of(StaticRows rows) {
  WAYBILL_CHECK(rows.stride % kColumns == 0 && rows.dim <= rows.stride &&
                rows.values.size() == rows.scales.size() * rows.stride);
  StaticTable table;
  table.rows_ = std::make_unique<StaticRows>(std::move(rows));
  table.dim_ = table.rows_->dim;
  table.stride_ = table.rows_->stride;
  table.scales_ = table.rows_->scales;
  table.values_ = table.rows_->values;
  return table;
}

Result<StaticTable> StaticTable::load(const Model& model) {
  auto file = MappedFile::open(cache_file(model));
  if (!file) return std::unexpected(file.error());
  auto table = parse(file->bytes(), model.hash());
  if (!table) {
    table.error().message += fmt::format(" ({})", cache_file(model).string());
    return table;
  }
  if (table->vocabulary() != model.tokenizer().vocabulary_size())
    return damaged("belongs to another vocabulary");
  table->file_ = std::move(*file);
  return table;
}

Result<StaticTable> StaticTable::load_or_distill(const Model& model, unsigned threads,
                                                 const Progress& progress, StaticTableReport* report,
                                                 const std::stop_token& stop) {
  StaticTableReport unread;
  StaticTableReport& said = report != nullptr ? *report : unread;
  said = {};
  const auto start = std::chrono::steady_clock::now();
  const auto finish = [&](StaticTable table) {
    said.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    return table;
  };
  if (auto cached = load(model)) {
    said.from_cache_file = true;
    return finish(std::move(*cached));
  } else if (cached.error().code != ErrorCode::kNotFound) {
    said.cache_note = cached.error().message;
  }
  Result<StaticRows> rows = distill_static_rows(model, threads, progress, stop);
  if (!rows) return std::unexpected(std::move(rows.error()));
  const Status written = write(cache_file(model), *rows, model.hash());
  if (!written) {
    said.cache_note =
        fmt::format("the static table is not kept for the next start: {}", written.error().message);
    return finish(of(std::move(*rows)));
  }
  // The mapped file can be dropped from memory and is shared by processes; the copy on the heap cannot and is
  // not.
  if (auto mapped = load(model)) return finish(std::move(*mapped));
  return finish(of(std::move(*rows)));
}

void StaticTable::embed(std::span<const TokenId> ids, std::span<float> out) const noexcept {
  WAYBILL_CHECK(out.size() == dim_);
  for (const TokenId id : ids) {
    WAYBILL_CHECK(static_cast<std::size_t>(id) < scales_.size());
    // The whole row, while the sums of the first columns are under way.
    for (std::size_t column = 0; column < stride_; column += kColumns) {
      _mm_prefetch(
          reinterpret_cast<const char*>(values_.data() + static_cast<std::size_t>(id) * stride_ + column),
          _MM_HINT_T0);
    }
  }
  for (std::size_t column = 0; column < dim_; column += kColumns) {
    if (column + kColumns <= dim_) {
      sum_columns(ids, scales_.data(), values_.data(), stride_, column, &out[column]);
    } else {
      std::array<float, kColumns> last;
      sum_columns(ids, scales_.data(), values_.data(), stride_, column, last.data());
      std::copy_n(last.data(), dim_ - column, &out[column]);
    }
  }
  normalise(out);
}

}  // namespace waybill::embed
