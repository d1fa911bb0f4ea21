// The file of a head, little-endian: "WBHEAD", u16 version, u64 XXH3 of all that follows; then its numbers in
// the order of write(), each array as u64 count and the elements.
#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <type_traits>

#include <fmt/format.h>

#include "base/hash.h"
#include "route/head.h"

namespace waybill::route {
namespace {

static_assert(std::endian::native == std::endian::little, "the file is little-endian");

constexpr std::string_view kMagic = "WBHEAD";
constexpr std::uint16_t kVersion = 2;
constexpr std::size_t kHeader = kMagic.size() + sizeof kVersion + sizeof(std::uint64_t);

class Writer {
 public:
  template <class T>
    requires std::is_trivially_copyable_v<T>
  void number(const T& value) {
    bytes.append(reinterpret_cast<const char*>(&value), sizeof value);
  }
  template <class T>
  void array(const std::vector<T>& values) {
    number(std::uint64_t{values.size()});
    bytes.append(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T));
  }
  std::string bytes;
};

class Reader {
 public:
  explicit Reader(std::string_view bytes) : rest_(bytes) {}

  template <class T>
    requires std::is_trivially_copyable_v<T>
  void number(T& value) {
    if (rest_.size() < sizeof value) return fail_here();
    std::memcpy(&value, rest_.data(), sizeof value);
    rest_.remove_prefix(sizeof value);
  }
  template <class T>
  void array(std::vector<T>& values) {
    std::uint64_t count = 0;
    number(count);
    if (count > rest_.size() / sizeof(T)) return fail_here();
    values.resize(count);
    if (count > 0) std::memcpy(values.data(), rest_.data(), count * sizeof(T));
    rest_.remove_prefix(count * sizeof(T));
  }
  [[nodiscard]] bool whole() const { return good_ && rest_.empty(); }

 private:
  void fail_here() { good_ = false, rest_ = {}; }
  std::string_view rest_;
  bool good_ = true;
};

// One list of fields for both directions. Booleans and enums travel as u32, so that any bits are safe to
// read.
struct Fields {
  std::uint32_t scoring = 0, aggregation = 0, linear = 0;
  std::uint64_t dim = 0, top_k = 0, columns = 0, stride = 0;
};
// They are written as they lie in memory, so there must be no padding with chance contents.
static_assert(sizeof(RouteStatistics) == 8 + 8 + 4 * 4 && sizeof(ReliabilityBin) == 3 * 8);

bool all_below(const std::vector<std::uint32_t>& values, std::size_t limit) {
  for (const std::uint32_t value : values) {
    if (value >= limit) return false;
  }
  return true;
}

std::unexpected<Error> damaged(std::string_view why) {
  return fail(ErrorCode::kCorrupt,
              fmt::format("the fitted head is damaged ({}); delete the file, and it is fitted anew", why));
}

}  // namespace

std::string Head::serialize() const {
  Writer w;
  w.number(static_cast<std::uint32_t>(scoring_));
  w.number(static_cast<std::uint32_t>(aggregation_));
  w.number(static_cast<std::uint32_t>(linear_));
  for (const std::uint64_t n : {dim_, top_k_, columns_}) w.number(n);
  for (const float f :
       {calibration_.temperature, calibration_.none_logit, calibration_.slope, calibration_.intercept})
    w.number(f);
  w.array(points_);
  w.number(std::uint64_t{landmarks_.stride});
  w.number(weight_scale_);
  w.array(landmarks_.values);
  w.array(landmarks_.scales);
  w.array(weights_);
  w.array(labels_);
  w.array(column_routes_);
  w.array(thresholds_);
  w.number(statistics_.accuracy);
  w.number(statistics_.calibration_error);
  w.array(statistics_.reliability);
  w.array(statistics_.routes);

  Writer file;
  file.bytes = kMagic;
  file.number(kVersion);
  file.number(hash64(std::string_view(w.bytes)));
  return std::move(file.bytes) + w.bytes;
}

Result<Head> Head::deserialize(std::string_view bytes) {
  if (bytes.size() < kHeader) return damaged("it is too short");
  if (!bytes.starts_with(kMagic)) return damaged("it is not a fitted head");
  std::uint16_t version = 0;
  std::uint64_t checksum = 0;
  std::memcpy(&version, bytes.data() + kMagic.size(), sizeof version);
  std::memcpy(&checksum, bytes.data() + kMagic.size() + sizeof version, sizeof checksum);
  if (version != kVersion) {
    return fail(
        ErrorCode::kUnsupported,
        fmt::format("the fitted head has format {}, this program reads {}; fit it anew", version, kVersion));
  }
  const std::string_view body = bytes.substr(kHeader);
  if (hash64(body) != checksum) return damaged("its checksum is wrong");

  Reader r(body);
  Fields f;
  Head h;
  for (std::uint32_t* n : {&f.scoring, &f.aggregation, &f.linear}) r.number(*n);
  for (std::uint64_t* n : {&f.dim, &f.top_k, &f.columns}) r.number(*n);
  for (float* n : {&h.calibration_.temperature, &h.calibration_.none_logit, &h.calibration_.slope,
                   &h.calibration_.intercept})
    r.number(*n);
  r.array(h.points_);
  r.number(f.stride);
  r.number(h.weight_scale_);
  r.array(h.landmarks_.values);
  r.array(h.landmarks_.scales);
  r.array(h.weights_);
  r.array(h.labels_);
  r.array(h.column_routes_);
  r.array(h.thresholds_);
  r.number(h.statistics_.accuracy);
  r.number(h.statistics_.calibration_error);
  r.array(h.statistics_.reliability);
  r.array(h.statistics_.routes);
  if (!r.whole()) return damaged("its parts do not add up");

  h.scoring_ = static_cast<config::Scoring>(f.scoring);
  h.aggregation_ = static_cast<config::Aggregation>(f.aggregation);
  h.linear_ = f.linear != 0;
  h.dim_ = f.dim, h.top_k_ = f.top_k, h.columns_ = f.columns;
  h.landmarks_.columns = f.dim, h.landmarks_.stride = f.stride;
  if (f.scoring > 1 || f.aggregation > 2 || f.dim == 0 || h.thresholds_.empty() ||
      h.statistics_.routes.size() != h.thresholds_.size() || !all_below(h.labels_, h.routes()) ||
      !all_below(h.column_routes_, h.routes())) {
    return damaged("its sizes contradict each other");
  }
  const std::size_t count = h.landmarks_.rows(), features = count + (h.linear_ ? f.dim : 0);
  const std::size_t width = (f.columns + kHalfColumns - 1) / kHalfColumns * kHalfColumns;
  const bool consistent =
      h.scoring_ == config::Scoring::kAurelio
          ? !h.labels_.empty() && h.points_.size() == h.labels_.size() * f.dim && f.top_k > 0
          : !h.column_routes_.empty() && f.columns >= h.column_routes_.size() &&
                f.columns <= h.column_routes_.size() + 1 && features > 0 && f.stride >= f.dim &&
                f.stride % kByteColumns == 0 && h.landmarks_.values.size() == count * f.stride &&
                h.weights_.size() == features * width && h.calibration_.temperature > 0;
  if (!consistent) return damaged("its sizes contradict each other");
  return h;
}

}  // namespace waybill::route
