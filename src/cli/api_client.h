// A running server, called by a command: one call after another, over one connection.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "http/client_connection.h"
#include "http/event_loop.h"
#include "http/resolver.h"

namespace CLI {
class App;
}

namespace waybill::cli {

// Which server, and as whom. The key is never on the command line, where every user of the machine sees it.
struct ServerOptions {
  std::string server;    // --server; else $WAYBILL_URL, else http://127.0.0.1:8000
  std::string key_file;  // --key-file; else $WAYBILL_API_KEY, else no key is sent
  std::string ca;        // --ca; else the system's authorities
  bool json = false;     // --json
};
// Declares them for the command, and so for those below it.
void add_server_options(CLI::App& command, ServerOptions& options);

inline constexpr std::string_view kServerOption = "--server";

struct ApiRequest {
  std::string_view method = "GET";
  std::string path;  // and query, percent-encoded
  std::string body;
  std::vector<std::pair<std::string, std::string>> headers;
  Duration timeout = std::chrono::seconds(60);
};

struct ApiAnswer {
  unsigned status = 0;
  std::string body;
};

// Errors are sentences that say what to change. kUpstreamFailed and kUpstreamTimeout: there is no answer, and
// where the field is kServerOption nothing was sent; kOverloaded and kRateLimited: it may go better later;
// else what the server said, with its field. Blocks; one thread.
class ApiClient {
 public:
  // Nothing is connected to yet.
  [[nodiscard]] static Result<std::unique_ptr<ApiClient>> make(const ServerOptions& options);
  ~ApiClient();
  ApiClient(const ApiClient&) = delete;
  ApiClient& operator=(const ApiClient&) = delete;

  // The body of a 2xx answer.
  [[nodiscard]] Result<std::string> ask(const ApiRequest& request);
  // Any answer; what is wrong with it tells error_of().
  [[nodiscard]] Result<ApiAnswer> send(const ApiRequest& request);
  [[nodiscard]] Error error_of(const ApiRequest& request, const ApiAnswer& answer) const;

  // An answer that is read as it comes: its status first (errors like ask()), then piece by piece, empty at
  // its end.
  [[nodiscard]] Result<unsigned> begin_stream(const ApiRequest& request);
  [[nodiscard]] Result<std::string_view> next_piece(Duration timeout);

  [[nodiscard]] const std::string& url() const noexcept { return url_; }

 private:
  ApiClient() : loop_(0, {}) {}
  template <class T>
  http::ClientResult<T> run(http::Task<http::ClientResult<T>> task);
  [[nodiscard]] std::string head_of(const ApiRequest& request) const;
  [[nodiscard]] http::ClientResult<void> begin(const ApiRequest& request, TimePoint deadline);
  [[nodiscard]] Result<ApiAnswer> rest_of_answer(TimePoint deadline);
  [[nodiscard]] std::unexpected<Error> no_answer(const http::ClientError& error) const;

  std::string url_, prefix_, host_, headers_, key_from_;
  http::EventLoop loop_;  // run by whoever calls
  http::Resolver resolver_;
  std::shared_ptr<const http::Origin> origin_;
  std::optional<http::ClientConnection> connection_;
};

// Whether to try again after an error: a server that is started anew, or has too much to do, is waited for,
// one that was never reached is not.
class Patience {
 public:
  void met() noexcept { was_reached_ = true; }  // it has answered
  void advanced() noexcept { failures_ = 0; }   // and something has come of it
  // Waits a while and says yes, or no.
  [[nodiscard]] bool wait_after(const Error& error);

 private:
  bool was_reached_ = false;
  unsigned failures_ = 0;  // in a row
};

// As a piece of a path or a query.
[[nodiscard]] std::string percent_encoded(std::string_view text);

}  // namespace waybill::cli
