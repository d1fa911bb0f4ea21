#include "telemetry/otlp_exporter.h"

#include <algorithm>
#include <atomic>
#include <charconv>
#include <deque>
#include <mutex>
#include <random>

#include <fmt/format.h>

#include "telemetry/background_queue.h"
#include "telemetry/http_post.h"
#include "telemetry/otlp_json.h"

namespace waybill::telemetry {
namespace {

constexpr Duration kLongestPause = std::chrono::seconds(30);

// Told by the sending thread, read by anybody; both share it, since the thread may be left behind.
struct Stats {
  std::atomic<std::uint64_t> offered{0};
  std::atomic<std::uint64_t> exported{0};
  std::atomic<std::uint64_t> dropped{0};
  std::mutex mutex;
  std::string trouble;  // guarded by mutex
};

// The statuses that the protocol says to try again on.
bool is_passing(unsigned status) { return status == 429 || (status >= 502 && status <= 504); }

class Sender final : public QueueConsumer<Record> {
 public:
  Sender(OtlpOptions options, HttpTarget target, std::shared_ptr<Stats> stats)
      : options_(std::move(options)), target_(std::move(target)), stats_(std::move(stats)) {}

  void consume(std::deque<Record>& batch, StopSignal& stop) noexcept override {
    std::uint64_t spans = 0;
    for (const Record& record : batch) spans += count_spans(record);
    const std::string body = to_otlp_json(batch, options_.service_name, options_.service_version);
    const std::uint64_t taken = send(body, spans, stop);
    stats_->exported.fetch_add(taken, std::memory_order_relaxed);
    stats_->dropped.fetch_add(spans - taken, std::memory_order_relaxed);
  }

 private:
  // How many of the spans the collector took.
  std::uint64_t send(const std::string& body, std::uint64_t spans, StopSignal& stop) {
    Duration pause = options_.first_pause;
    for (unsigned attempt = 1;; ++attempt) {
      const Duration left = stop.give_up_at() - std::chrono::steady_clock::now();
      if (left <= Duration::zero()) return 0;
      const Result<HttpAnswer> answer =
          http_post(target_, options_.headers, body, std::min(left, options_.timeout));
      if (answer && answer->status >= 200 && answer->status < 300) {
        const std::uint64_t rejected = std::min(rejected_spans(answer->body), spans);
        if (rejected > 0) note(fmt::format("the collector rejected {} of {} spans", rejected, spans));
        return spans - rejected;
      }
      note(answer ? fmt::format("the collector answered {}", answer->status) : answer.error().message);
      const bool again = !answer || is_passing(answer->status);
      if (!again || attempt >= options_.tries) return 0;
      // Once stopping, one more try without a pause, and no third.
      if (!stop.pause(pause_before_next(pause, answer)) && attempt > 1) return 0;
      pause = std::min(2 * pause, kLongestPause);
    }
  }

  // The collector's wish, else the growing pause; spread by half, so that many programs do not come back
  // together.
  Duration pause_before_next(Duration pause, const Result<HttpAnswer>& answer) {
    int wish_s = 0;
    if (answer) {
      const std::string& text = answer->retry_after;
      std::from_chars(text.data(), text.data() + text.size(), wish_s);
    }
    if (wish_s > 0) return std::min<Duration>(std::chrono::seconds(wish_s), kLongestPause);
    std::uniform_real_distribution<double> spread(0.5, 1.5);
    return std::chrono::duration_cast<Duration>(pause * spread(random_));
  }

  void note(std::string trouble) {
    const std::scoped_lock lock(stats_->mutex);
    stats_->trouble = std::move(trouble);
  }

  const OtlpOptions options_;
  const HttpTarget target_;
  const std::shared_ptr<Stats> stats_;
  std::minstd_rand random_{std::random_device{}()};
};

}  // namespace

struct OtlpExporter::Impl {
  Impl(const OtlpOptions& options, HttpTarget target, const std::shared_ptr<Stats>& shared)
      : stats(shared),
        queue({.thread_name = "otlp",
               .capacity = options.queue,
               .batch = options.batch,
               .linger = options.interval},
              std::make_unique<Sender>(options, std::move(target), shared)) {}

  const std::shared_ptr<Stats> stats;
  std::atomic<bool> stopped{false};
  BackgroundQueue<Record> queue;
};

OtlpExporter::OtlpExporter(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
OtlpExporter::~OtlpExporter() = default;

Result<std::unique_ptr<OtlpExporter>> OtlpExporter::make(const OtlpOptions& options) {
  Result<HttpTarget> target = parse_http_target(options.endpoint);
  if (!target) {
    Error error = std::move(target).error();
    error.field = "telemetry.traces.endpoint";
    return std::unexpected(std::move(error));
  }
  if (target->path == "/") target->path = "/v1/traces";
  auto impl = std::make_unique<Impl>(options, *std::move(target), std::make_shared<Stats>());
  return std::unique_ptr<OtlpExporter>(new OtlpExporter(std::move(impl)));
}

void OtlpExporter::closed(const Record& record) noexcept {
  if (!record.sampled) return;
  impl_->stats->offered.fetch_add(count_spans(record), std::memory_order_relaxed);
  if (!impl_->queue.push(record))
    impl_->stats->dropped.fetch_add(count_spans(record), std::memory_order_relaxed);
}

std::uint64_t OtlpExporter::exported() const noexcept {
  return impl_->stats->exported.load(std::memory_order_relaxed);
}

std::uint64_t OtlpExporter::dropped() const noexcept {
  // Once stopped, what was not sent never will be.
  if (impl_->stopped.load(std::memory_order_acquire))
    return impl_->stats->offered.load() - impl_->stats->exported.load();
  return impl_->stats->dropped.load(std::memory_order_relaxed);
}

std::string OtlpExporter::last_error() const {
  const std::scoped_lock lock(impl_->stats->mutex);
  return impl_->stats->trouble;
}

void OtlpExporter::stop(Duration bound) {
  impl_->queue.stop(bound);
  impl_->stopped.store(true, std::memory_order_release);
}

}  // namespace waybill::telemetry
