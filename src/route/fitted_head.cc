#include "route/fitted_head.h"

#include <chrono>
#include <cstring>
#include <optional>
#include <type_traits>
#include <utility>

#include "base/hash.h"
#include "route/utterance_cache.h"

namespace waybill::route {
namespace {

// Raised when the same data would be fitted to another head.
constexpr std::uint64_t kFormat = 3;

template <class T>
void put(std::string& out, const T& value) {
  static_assert(std::is_trivially_copyable_v<T>);
  out.append(reinterpret_cast<const char*>(&value), sizeof value);
}

template <class T>
void put_hash(std::string& out, std::span<const T> values) {
  put(out, std::uint64_t{values.size()});
  const auto bytes = std::as_bytes(values);
  put(out, hash128({reinterpret_cast<const char*>(bytes.data()), bytes.size()}));
}

Hash128 key_of(const LabelledEmbeddings& data, const HeadOptions& options) {
  std::string all;
  put(all, kFormat);
  put_hash(all, data.embeddings);
  put_hash(all, data.labels);
  put_hash(all, data.out_of_scope);
  put(all, std::uint64_t{data.dim});
  put(all, std::uint64_t{data.routes});
  put(all, options.scoring);
  put(all, options.aggregation);
  put(all, std::uint64_t{options.top_k});
  put(all, std::uint64_t{options.exact});
  put(all, std::uint64_t{options.landmarks});
  put(all, options.reject_quantile);
  for (const std::optional<float>& threshold : options.thresholds) put(all, threshold.value_or(-1));
  return hash128(all);
}

// Held-out decisions, then the head's own bytes.
struct HeldOutRecord {
  std::uint32_t best, second;
  float probability, second_probability, margin;
  std::uint32_t accepted;
};

std::string to_bytes(const FittedHead& fitted) {
  std::string out;
  put(out, std::uint64_t{fitted.held_out.size()});
  for (const HeadDecision& d : fitted.held_out) {
    put(out,
        HeldOutRecord{d.best, d.second, d.probability, d.second_probability, d.margin, d.accepted ? 1U : 0U});
  }
  return out + fitted.head.serialize();
}

std::optional<FittedHead> from_bytes(std::string_view bytes, const LabelledEmbeddings& data) {
  std::uint64_t count = 0;
  if (bytes.size() < sizeof count) return std::nullopt;
  std::memcpy(&count, bytes.data(), sizeof count);
  bytes.remove_prefix(sizeof count);
  if (count != data.labels.size() || bytes.size() / sizeof(HeldOutRecord) < count) return std::nullopt;
  std::vector<HeadDecision> held_out(count);
  for (HeadDecision& decision : held_out) {
    HeldOutRecord record{};
    std::memcpy(&record, bytes.data(), sizeof record);
    bytes.remove_prefix(sizeof record);
    if (record.best >= data.routes) return std::nullopt;
    decision = {.best = record.best,
                .second = record.second,
                .probability = record.probability,
                .second_probability = record.second_probability,
                .margin = record.margin,
                .accepted = record.accepted != 0};
  }
  Result<Head> head = Head::deserialize(bytes);
  if (!head || head->routes() != data.routes) return std::nullopt;
  return FittedHead{.head = std::move(*head), .held_out = std::move(held_out), .from_cache = true};
}

}  // namespace

Result<FittedHead> fit_or_load(const LabelledEmbeddings& data, const HeadOptions& options,
                               const std::filesystem::path& cache_folder, FitMode mode) {
  const auto start = std::chrono::steady_clock::now();
  const auto since_start = [start] {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  };
  const Hash128 key = key_of(data, options);
  const FittedCache cache(cache_folder);
  if (const std::optional<std::string> bytes = cache.find(key)) {
    if (std::optional<FittedHead> fitted = from_bytes(*bytes, data)) {
      fitted->seconds = since_start();
      return std::move(*fitted);
    }
  }
  if (mode == FitMode::kCachedOnly) return fail(ErrorCode::kNotFound, "there is no fitted head in the cache");
  Result<Head> head = Head::fit(data, options);
  if (!head) return std::unexpected(std::move(head.error()));
  FittedHead fitted{.head = std::move(*head)};
  fitted.held_out.assign(fitted.head.leave_one_out().begin(), fitted.head.leave_one_out().end());
  fitted.seconds = since_start();
  if (const Status saved = cache.insert(key, to_bytes(fitted)); !saved) {
    fitted.note = "fitted head not cached: " + saved.error().message;
  }
  return fitted;
}

}  // namespace waybill::route
