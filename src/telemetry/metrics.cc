#include "telemetry/metrics.h"

#include <algorithm>
#include <variant>

#include "base/check.h"
#include "base/hash.h"
#include "telemetry/exposition.h"

namespace waybill::telemetry {
namespace {

constexpr std::int64_t kExemplarEveryUs = 1'000'000;
constexpr std::string_view kOther = "other";

std::uint64_t hash_of(std::span<const std::string_view> values) noexcept {
  std::uint64_t hash = values.size();
  for (const std::string_view value : values) hash = hash64(value, hash);
  return hash;
}

}  // namespace

// --- series
// ----------------------------------------------------------------------------------------------------

void ExemplarSlot::offer(const TraceId& trace_id, double value, std::int64_t time_us) noexcept {
  if (time_us - time_us_.load(std::memory_order_relaxed) < kExemplarEveryUs) return;
  if (busy_.test_and_set(std::memory_order_acquire)) return;
  exemplar_ = {trace_id, value, time_us};
  time_us_.store(time_us, std::memory_order_relaxed);
  busy_.clear(std::memory_order_release);
}

ExemplarSlot::Exemplar ExemplarSlot::read() const noexcept {
  while (busy_.test_and_set(std::memory_order_acquire)) {
  }
  const Exemplar copy = exemplar_;
  busy_.clear(std::memory_order_release);
  return copy;
}

Histogram::Histogram(const MetricDescriptor& descriptor)
    : bounds_(descriptor.buckets), buckets_(std::make_unique<Bucket[]>(descriptor.buckets.size() + 1)) {}

Histogram::Bucket& Histogram::add(double value) noexcept {
  // A few dozen bounds in growing order: a run through them beats a binary search, whose branches cannot be
  // guessed.
  std::size_t i = 0;
  while (i < bounds_.size() && value > bounds_[i]) ++i;
  buckets_[i].count.fetch_add(1, std::memory_order_relaxed);
  sum_.fetch_add(value, std::memory_order_relaxed);
  return buckets_[i];
}

void Histogram::observe(double value) noexcept { add(value); }

void Histogram::observe(double value, const TraceId& trace_id, std::int64_t time_us) noexcept {
  add(value).exemplar.offer(trace_id, value, time_us);
}

std::uint64_t Histogram::count() const noexcept {
  std::uint64_t n = 0;
  for (std::size_t i = 0; i <= bounds_.size(); ++i) n += bucket(i);
  return n;
}

// --- families
// --------------------------------------------------------------------------------------------------

namespace {
constexpr std::size_t kTableSize = 2 * kMaxSeries;  // a power of two, at most half full
static_assert((kTableSize & (kTableSize - 1)) == 0);
}  // namespace

template <class Series>
struct Family<Series>::Entry {
  Entry(const MetricDescriptor& descriptor, std::uint64_t h, std::vector<std::string> v)
      : hash(h), values(std::move(v)), series(descriptor) {}
  const std::uint64_t hash;
  const std::vector<std::string> values;
  Series series;
};

template <class Series>
Family<Series>::Family(const MetricDescriptor& descriptor)
    : descriptor_(descriptor),
      table_(descriptor.labels.empty() ? std::make_unique<std::atomic<Entry*>[]>(1)
                                       : std::make_unique<std::atomic<Entry*>[]>(kTableSize)),
      seen_values_(descriptor.labels.size()) {
  if (descriptor.labels.empty()) (void)add({});
}

template <class Series>
Family<Series>::~Family() = default;

template <class Series>
typename Family<Series>::Entry* Family<Series>::find(
    std::uint64_t hash, std::span<const std::string_view> values) const noexcept {
  for (std::size_t i = hash % kTableSize;; i = (i + 1) % kTableSize) {
    Entry* entry = table_[i].load(std::memory_order_acquire);
    if (entry == nullptr) return nullptr;
    if (entry->hash == hash && std::ranges::equal(entry->values, values)) return entry;
  }
}

template <class Series>
Series& Family<Series>::with(std::span<const std::string_view> values) {
  WAYBILL_CHECK(values.size() == descriptor_.labels.size());
  if (values.empty()) return table_[0].load(std::memory_order_acquire)->series;
  if (Entry* entry = find(hash_of(values), values)) return entry->series;
  return add(values);
}

template <class Series>
Series& Family<Series>::add(std::span<const std::string_view> values) {
  const std::scoped_lock lock(mutex_);
  std::vector<std::string_view> bounded(values.begin(), values.end());
  if (entries_.size() + 1 >= kMaxSeries) {  // the last place is for what is "other" in all labels
    if (Entry* entry = find(hash_of(values), values)) return entry->series;
    std::ranges::fill(bounded, kOther);
  }
  for (std::size_t i = 0; i < bounded.size(); ++i) {
    std::vector<std::string>& seen = seen_values_[i];
    if (std::ranges::find(seen, bounded[i]) != seen.end()) continue;
    if (seen.size() < kMaxLabelValues) {
      seen.emplace_back(bounded[i]);
    } else {
      bounded[i] = kOther;
    }
  }
  const std::uint64_t hash = hash_of(bounded);
  std::size_t place = 0;
  if (!bounded.empty()) {
    if (Entry* entry = find(hash, bounded)) return entry->series;
    place = hash % kTableSize;
    while (table_[place].load(std::memory_order_relaxed) != nullptr) place = (place + 1) % kTableSize;
  }
  entries_.push_back(
      std::make_unique<Entry>(descriptor_, hash, std::vector<std::string>(bounded.begin(), bounded.end())));
  table_[place].store(entries_.back().get(), std::memory_order_release);
  return entries_.back()->series;
}

template <class Series>
void Family<Series>::for_each(const Visitor& visit) const {
  const std::scoped_lock lock(mutex_);
  for (const auto& entry : entries_) visit(entry->values, entry->series);
}

template class Family<Counter>;
template class Family<Gauge>;
template class Family<Histogram>;

// --- registry
// --------------------------------------------------------------------------------------------------

struct Registry::Families {
  using Any = std::variant<std::unique_ptr<Family<Counter>>, std::unique_ptr<Family<Gauge>>,
                           std::unique_ptr<Family<Histogram>>>;
  std::vector<Any> all;

  static Any make(const MetricDescriptor& descriptor) {
    switch (descriptor.kind) {
      case MetricKind::kCounter:
        return std::make_unique<Family<Counter>>(descriptor);
      case MetricKind::kGauge:
        return std::make_unique<Family<Gauge>>(descriptor);
      case MetricKind::kHistogram:
        break;
    }
    return std::make_unique<Family<Histogram>>(descriptor);
  }

  template <class Series>
  Family<Series>& get(std::string_view name) {
    for (Any& any : all) {
      auto* family = std::get_if<std::unique_ptr<Family<Series>>>(&any);
      if (family != nullptr && (*family)->descriptor().name == name) return **family;
    }
    constexpr bool kInTheCatalogue = false;
    WAYBILL_CHECK(kInTheCatalogue);
    __builtin_unreachable();
  }
};

Registry::Registry(std::span<const MetricDescriptor> catalog) : families_(std::make_unique<Families>()) {
  for (const MetricDescriptor& descriptor : catalog) families_->all.push_back(Families::make(descriptor));
}

Registry::~Registry() = default;

Family<Counter>& Registry::counters(std::string_view name) { return families_->get<Counter>(name); }
Family<Gauge>& Registry::gauges(std::string_view name) { return families_->get<Gauge>(name); }
Family<Histogram>& Registry::histograms(std::string_view name) { return families_->get<Histogram>(name); }

Registry::Hook Registry::on_scrape(std::function<void()> refresh) {
  const std::scoped_lock lock(hooks_mutex_);
  hooks_.emplace_back(++last_hook_, std::move(refresh));
  return {this, last_hook_};
}

void Registry::remove_hook(std::uint64_t id) {
  const std::scoped_lock lock(hooks_mutex_);
  std::erase_if(hooks_, [id](const auto& hook) { return hook.first == id; });
}

std::string Registry::expose(Exposition exposition) {
  {
    const std::scoped_lock lock(hooks_mutex_);
    for (const auto& hook : hooks_) hook.second();
  }
  ExpositionWriter writer(exposition);
  for (const Families::Any& any : families_->all) {
    std::visit([&writer](const auto& family) { writer.write(*family); }, any);
  }
  return std::move(writer).finish();
}

}  // namespace waybill::telemetry
