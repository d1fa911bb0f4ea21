// A thread that looks at the event loops from outside, and at files that may change.
#pragma once

#include <condition_variable>
#include <filesystem>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "http/event_loop.h"
#include "http/tls_context.h"

namespace waybill::http {

struct ServerOptions;

// Tells of a loop that does not come back to its events, while it hangs and not only afterwards, and takes up
// a changed certificate. `options` and the loops must outlive it.
class Watchdog {
 public:
  Watchdog(const ServerOptions& options, std::vector<EventLoop*> loops,
           std::shared_ptr<const TlsContext> tls);
  ~Watchdog() { stop(); }
  Watchdog(const Watchdog&) = delete;
  Watchdog& operator=(const Watchdog&) = delete;

  void start();
  void stop();

  // The context for new connections; null without TLS. Shared: a connection keeps the one it began with.
  [[nodiscard]] std::shared_ptr<const TlsContext> tls() const;

 private:
  struct Watched {
    EventLoop* loop;
    TimePoint reported{};  // the tick that has been told to be late
  };

  void run();
  void check_loops();
  void check_tls();

  const ServerOptions& options_;
  std::vector<Watched> loops_;
  std::filesystem::file_time_type certificate_time_, key_time_;  // of the pair in use
  std::filesystem::file_time_type refused_certificate_time_{}, refused_key_time_{};

  mutable std::mutex mutex_;
  std::condition_variable wake_;
  std::shared_ptr<const TlsContext> tls_;  // guarded by mutex_, as stopping_
  bool stopping_ = false;
  std::thread thread_;
};

}  // namespace waybill::http
