// A thread that looks at the event loops from outside, and at files that may change.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <filesystem>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "http/event_loop.h"
#include "http/tls_context.h"

namespace waybill::http {

struct ServerOptions;

// Tells of a loop that does not come back to its events, while it hangs and not only afterwards (and apart
// from that of a process that did not run at all, which is no loop's doing), takes up a changed certificate,
// and gives memory back once many connections have ended. `options`, the loops and `connections` (how many
// are open) must outlive it.
class Watchdog {
 public:
  Watchdog(const ServerOptions& options, const std::vector<EventLoop*>& loops,
           std::shared_ptr<const TlsContext> tls, const std::atomic<std::size_t>& connections);
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
  void check_itself();
  void check_loops();
  void check_tls();
  void check_memory();

  const ServerOptions& options_;
  const std::atomic<std::size_t>& connections_;
  std::size_t most_connections_ = 0;  // since memory was given back
  std::vector<Watched> loops_;
  TimePoint looked_{};                                           // when this thread last ran
  TimePoint resumed_{};                                          // the end of the last standstill
  std::filesystem::file_time_type certificate_time_, key_time_;  // of the pair in use
  std::filesystem::file_time_type refused_certificate_time_{}, refused_key_time_{};

  mutable std::mutex mutex_;
  std::condition_variable wake_;
  std::shared_ptr<const TlsContext> tls_;  // guarded by mutex_, as stopping_
  bool stopping_ = false;
  std::thread thread_;
};

}  // namespace waybill::http
