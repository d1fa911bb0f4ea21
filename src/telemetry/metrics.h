// Metrics as Prometheus reads them: counters, gauges, histograms, in the text format 0.0.4 and in
// OpenMetrics 1.0. docs/decisions/0007-own-metrics.md says why they are our own.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "telemetry/metric_catalog.h"
#include "telemetry/trace_context.h"

namespace waybill::telemetry {

// The trace of one observation, kept with a counter or a bucket, so that a reader gets from a figure to an
// example. At most one a second is taken for each; a writer that meets another leaves its own out.
class ExemplarSlot {
 public:
  struct Exemplar {
    TraceId trace_id{};
    double value = 0;
    std::int64_t time_us = 0;  // since 1970; 0: none yet
  };
  void offer(const TraceId& trace_id, double value, std::int64_t time_us) noexcept;
  [[nodiscard]] Exemplar read() const noexcept;

 private:
  mutable std::atomic_flag busy_;
  std::atomic<std::int64_t> time_us_{0};
  Exemplar exemplar_;
};

// Only grows. Thread-safe, no lock.
class alignas(64) Counter {
 public:
  Counter() = default;
  explicit Counter(const MetricDescriptor& /*unused*/) {}
  void add(std::uint64_t n = 1) noexcept { value_.fetch_add(n, std::memory_order_relaxed); }
  void add(std::uint64_t n, const TraceId& trace_id, std::int64_t time_us) noexcept {
    add(n);
    exemplar_.offer(trace_id, static_cast<double>(n), time_us);
  }
  // For a count that is kept elsewhere and copied at each scrape; it must not go down.
  void set(std::uint64_t value) noexcept { value_.store(value, std::memory_order_relaxed); }
  [[nodiscard]] std::uint64_t value() const noexcept { return value_.load(std::memory_order_relaxed); }
  [[nodiscard]] const ExemplarSlot& exemplar() const noexcept { return exemplar_; }

 private:
  std::atomic<std::uint64_t> value_{0};
  ExemplarSlot exemplar_;
};

// A value that comes and goes. Thread-safe, no lock.
class alignas(64) Gauge {
 public:
  Gauge() = default;
  explicit Gauge(const MetricDescriptor& /*unused*/) {}
  void set(double value) noexcept { value_.store(value, std::memory_order_relaxed); }
  void add(double by) noexcept { value_.fetch_add(by, std::memory_order_relaxed); }
  [[nodiscard]] double value() const noexcept { return value_.load(std::memory_order_relaxed); }

 private:
  std::atomic<double> value_{0};
};

// Counts by size. Thread-safe, no lock.
class alignas(64) Histogram {
 public:
  explicit Histogram(const MetricDescriptor& descriptor);
  void observe(double value) noexcept;
  void observe(double value, const TraceId& trace_id, std::int64_t time_us) noexcept;

  [[nodiscard]] std::span<const double> bounds() const noexcept { return bounds_; }
  // Of one bucket alone, not cumulative; the last is what is above all bounds.
  [[nodiscard]] std::uint64_t bucket(std::size_t i) const noexcept {
    return buckets_[i].count.load(std::memory_order_relaxed);
  }
  [[nodiscard]] const ExemplarSlot& exemplar(std::size_t i) const noexcept { return buckets_[i].exemplar; }
  [[nodiscard]] std::uint64_t count() const noexcept;
  [[nodiscard]] double sum() const noexcept { return sum_.load(std::memory_order_relaxed); }

 private:
  struct Bucket {
    std::atomic<std::uint64_t> count{0};
    ExemplarSlot exemplar;
  };
  Bucket& add(double value) noexcept;

  std::span<const double> bounds_;
  std::unique_ptr<Bucket[]> buckets_;  // bounds_.size() + 1
  std::atomic<double> sum_{0};
};

// All series of one metric, one for each combination of label values. with() finds an existing series without
// a lock, in some tens of ns; who knows its labels beforehand keeps the reference, which stays valid.
// Thread-safe.
template <class Series>
class Family {
 public:
  explicit Family(const MetricDescriptor& descriptor);
  ~Family();
  Family(const Family&) = delete;
  Family& operator=(const Family&) = delete;

  // As many values as the descriptor has labels. A value beyond the bounds of metric_catalog.h counts as
  // "other".
  [[nodiscard]] Series& with(std::span<const std::string_view> values);
  [[nodiscard]] Series& with(std::initializer_list<std::string_view> values) {
    return with(std::span(values.begin(), values.size()));
  }

  [[nodiscard]] const MetricDescriptor& descriptor() const noexcept { return descriptor_; }
  // Calls visit(values, series) for each series, in the order they came to be.
  using Visitor = std::function<void(std::span<const std::string>, const Series&)>;
  void for_each(const Visitor& visit) const;

 private:
  struct Entry;
  Entry* find(std::uint64_t hash, std::span<const std::string_view> values) const noexcept;
  Series& add(std::span<const std::string_view> values);

  const MetricDescriptor& descriptor_;
  std::unique_ptr<std::atomic<Entry*>[]> table_;  // open addressing; entries are only ever added

  mutable std::mutex mutex_;
  std::vector<std::unique_ptr<Entry>> entries_;
  std::vector<std::vector<std::string>> seen_values_;  // by label
};

extern template class Family<Counter>;
extern template class Family<Gauge>;
extern template class Family<Histogram>;

enum class Exposition : std::uint8_t { kPrometheusText, kOpenMetrics };

// The content type of an answer, and the format that an Accept header asks for.
[[nodiscard]] std::string_view content_type(Exposition exposition) noexcept;
[[nodiscard]] Exposition choose_exposition(std::string_view accept) noexcept;

// All families of the catalogue. Thread-safe.
class Registry {
 public:
  explicit Registry(std::span<const MetricDescriptor> catalog = metric_catalog());
  ~Registry();
  Registry(const Registry&) = delete;
  Registry& operator=(const Registry&) = delete;

  // Asking for a name that is not in the catalogue, or is of another kind, is a bug.
  [[nodiscard]] Family<Counter>& counters(std::string_view name);
  [[nodiscard]] Family<Gauge>& gauges(std::string_view name);
  [[nodiscard]] Family<Histogram>& histograms(std::string_view name);

  // Runs `refresh` before each scrape, on the scraping thread, to set what is read rather than counted. It
  // runs until the hook is destroyed, which waits for a scrape that is under way.
  class Hook {
   public:
    Hook() = default;
    Hook(Registry* registry, std::uint64_t id) : registry_(registry), id_(id) {}
    Hook(Hook&& other) noexcept : registry_(std::exchange(other.registry_, nullptr)), id_(other.id_) {}
    Hook& operator=(Hook&& other) noexcept {
      std::swap(registry_, other.registry_);
      std::swap(id_, other.id_);
      return *this;
    }
    ~Hook() {
      if (registry_ != nullptr) registry_->remove_hook(id_);
    }

   private:
    Registry* registry_ = nullptr;
    std::uint64_t id_ = 0;
  };
  [[nodiscard]] Hook on_scrape(std::function<void()> refresh);

  [[nodiscard]] std::string expose(Exposition exposition);

 private:
  struct Families;
  void remove_hook(std::uint64_t id);

  std::unique_ptr<Families> families_;

  std::mutex hooks_mutex_;
  std::uint64_t last_hook_ = 0;
  std::vector<std::pair<std::uint64_t, std::function<void()>>> hooks_;
};

}  // namespace waybill::telemetry
