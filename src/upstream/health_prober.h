// Asks providers by itself whether they are well, where their configuration says how often.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>

#include "base/clock.h"
#include "http/cancellation.h"
#include "http/event_loop.h"
#include "http/resolver.h"
#include "http/task.h"
#include "upstream/catalog.h"

namespace waybill::upstream {

// A target that is not called is called again as soon as its provider answers a probe; one whose provider
// does not answer is no longer called after as many probes as calls would have it. Runs on one event loop;
// start() and stop() belong to another thread.
class HealthProber {
 public:
  using CurrentCatalog = std::function<std::shared_ptr<const Catalog>()>;  // thread-safe

  HealthProber(http::EventLoop& loop, http::Resolver& resolver, CurrentCatalog current);
  ~HealthProber();  // stop()
  HealthProber(const HealthProber&) = delete;
  HealthProber& operator=(const HealthProber&) = delete;

  void start();
  // Cancels the probes that are out and waits for them. The loop must still run.
  void stop();

 private:
  http::Task<> watch();
  http::Task<> probe(std::shared_ptr<const Catalog> catalog, std::shared_ptr<Provider> provider);
  http::Task<bool> ask(const Provider& provider);
  void spawn(http::Task<> task);

  http::EventLoop& loop_;
  http::Resolver& resolver_;
  const CurrentCatalog current_;
  // Of the loop's thread:
  std::map<std::string, TimePoint, std::less<>> due_;  // by provider; far away while a probe is out
  bool stopping_ = false;
  std::function<void()> wake_;

  bool started_ = false;
  std::mutex mutex_;  // guards the next
  std::size_t running_ = 0;
  std::condition_variable ended_;
};

}  // namespace waybill::upstream
