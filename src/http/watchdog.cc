#include "http/watchdog.h"

#include <algorithm>
#include <utility>

#include <pthread.h>

#include "base/process.h"
#include "http/server.h"

namespace waybill::http {
namespace {

constexpr auto kLook = std::chrono::milliseconds(20);
constexpr auto kLookNowAndThen = std::chrono::seconds(2);  // at files and memory
constexpr std::size_t kKeptFree = 16U << 20, kGivenBackAtOnce = 64U << 20;
constexpr std::size_t kManyConnections = 64;

std::filesystem::file_time_type changed(const std::filesystem::path& file) {
  std::error_code ignored;
  return std::filesystem::last_write_time(file, ignored);
}

}  // namespace

Watchdog::Watchdog(const ServerOptions& options, const std::vector<EventLoop*>& loops,
                   std::shared_ptr<const TlsContext> tls, const std::atomic<std::size_t>& connections)
    : options_(options), connections_(connections), tls_(std::move(tls)) {
  for (EventLoop* loop : loops) loops_.push_back({loop});
  if (options_.tls) {
    certificate_time_ = changed(options_.tls->certificate);
    key_time_ = changed(options_.tls->private_key);
  }
}

void Watchdog::start() {
  thread_ = std::thread([this] {
    pthread_setname_np(pthread_self(), "watchdog");
    run();
  });
}

void Watchdog::stop() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  wake_.notify_all();
  if (thread_.joinable()) thread_.join();
}

std::shared_ptr<const TlsContext> Watchdog::tls() const {
  const std::lock_guard lock(mutex_);
  return tls_;
}

void Watchdog::run() {
  looked_ = std::chrono::steady_clock::now();
  TimePoint due = looked_ + kLookNowAndThen;
  std::unique_lock lock(mutex_);
  while (!wake_.wait_for(lock, kLook, [this] { return stopping_; })) {
    lock.unlock();
    check_itself();
    check_loops();
    if (const TimePoint now = std::chrono::steady_clock::now(); now >= due) {
      due = now + kLookNowAndThen;
      if (options_.tls) check_tls();
      check_memory();
    }
    lock.lock();
  }
}

// When this thread too came late, the loops are given their time anew: it is not they who hang.
void Watchdog::check_itself() {
  const TimePoint now = std::chrono::steady_clock::now();
  const Duration late = now - std::exchange(looked_, now) - kLook;
  if (late < options_.stall_threshold) return;
  resumed_ = now;
  if (options_.on_standstill) options_.on_standstill(late);
}

void Watchdog::check_loops() {
  const TimePoint now = std::chrono::steady_clock::now();
  for (Watched& watched : loops_) {
    const TimePoint tick = watched.loop->last_tick();
    const Duration late = now - std::max(tick + EventLoop::kTick, resumed_);
    if (late < options_.stall_threshold || watched.reported == tick) continue;
    watched.reported = tick;
    const LoopActivity activity = watched.loop->activity();
    if (options_.on_stall) {
      options_.on_stall({.loop = watched.loop->index(),
                         .length = late,
                         .doing = activity.what == nullptr ? std::string_view() : activity.what});
    }
  }
}

// Large blocks that were freed do not stay. And the allocator keeps what connections have freed: that is
// given back when most of them have ended, and not while they come and go: they would only ask for it again.
void Watchdog::check_memory() {
  release_memory_beyond(kKeptFree, kGivenBackAtOnce);
  const std::size_t open = connections_.load(std::memory_order_relaxed);
  most_connections_ = std::max(most_connections_, open);
  if (most_connections_ < kManyConnections || open > most_connections_ / 2) return;
  most_connections_ = open;
  release_free_memory();
}

void Watchdog::check_tls() {
  const auto certificate_time = changed(options_.tls->certificate);
  const auto key_time = changed(options_.tls->private_key);
  if (certificate_time == certificate_time_ && key_time == key_time_) return;
  // Certificate and key are replaced one after the other: a pair that does not fit yet is tried again, and
  // told once.
  auto loaded = TlsContext::load(*options_.tls);
  if (loaded) {
    certificate_time_ = certificate_time;
    key_time_ = key_time;
    const std::lock_guard lock(mutex_);
    tls_ = std::move(*loaded);
  }
  const bool told = !loaded && certificate_time == refused_certificate_time_ && key_time == refused_key_time_;
  if (!loaded) {
    refused_certificate_time_ = certificate_time;
    refused_key_time_ = key_time;
  }
  if (options_.on_tls_reload && !told)
    options_.on_tls_reload(loaded ? Status{} : Status(std::unexpected(loaded.error())));
}

}  // namespace waybill::http
