// Names to addresses, off the event loops.
#pragma once

#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <boost/asio/ip/tcp.hpp>

#include "base/clock.h"
#include "base/executor.h"
#include "base/result.h"
#include "base/worker_pool.h"

namespace waybill::http {

using Addresses = std::vector<boost::asio::ip::tcp::endpoint>;  // at least one

struct ResolverOptions {
  unsigned threads = 2;                      // dns-N
  std::size_t max_waiting = 256;             // lookups
  Duration keep = std::chrono::seconds(30);  // the system tells no lifetime of its answers
  std::size_t max_names = 1024;              // that are kept
};

// getaddrinfo on threads of its own, because it blocks; answers are kept for a while, and an old one serves
// while no new one can be had. Thread-safe.
class Resolver {
 public:
  using Done = std::move_only_function<void(Result<Addresses>)>;

  explicit Resolver(const ResolverOptions& options = {});

  // Answers at once where it is known or `host` is an address, else with nothing, and then `done` is called
  // once through `executor`, which must live until then. kNotFound: there is no such name; kOverloaded.
  [[nodiscard]] std::optional<Result<Addresses>> resolve(const std::string& host, std::uint16_t port,
                                                         Executor& executor, Done done);
  // Forgets what is known of it: none of its addresses answers.
  void forget(const std::string& host);
  void stop();  // answers what waits, ends the threads

 private:
  struct Known {
    Addresses addresses;
    TimePoint until{};
  };
  [[nodiscard]] Result<Addresses> look_up(const std::string& host, std::uint16_t port);

  const ResolverOptions options_;
  std::mutex mutex_;  // guards known_
  std::map<std::string, Known, std::less<>> known_;
  WorkerPool threads_;
};

}  // namespace waybill::http
