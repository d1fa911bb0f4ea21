#include "cli/api_client.h"

#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <exception>
#include <thread>

#include <CLI/CLI.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/json.hpp>
#include <fmt/format.h>

#include "base/json_text.h"
#include "cli/command.h"
#include "cli/common_options.h"
#include "config/base_url.h"
#include "config/secret.h"
#include "upstream/proxy.h"

namespace waybill::cli {
namespace {

constexpr std::string_view kDefaultServer = "http://127.0.0.1:8000";
constexpr const char* kUrlVariable = "WAYBILL_URL";
constexpr const char* kKeyVariable = "WAYBILL_API_KEY";
constexpr std::size_t kLongestAnswer = std::size_t{1} << 30;

TimePoint in(Duration time) { return std::chrono::steady_clock::now() + time; }

std::string environment(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? std::string() : std::string(value);
}

// A server that hangs up on a TLS connection would end this program, for OpenSSL writes without MSG_NOSIGNAL.
// Only while the loop runs: a reader of stdout that has gone is to end it.
class IgnoredPipeSignal {
 public:
  IgnoredPipeSignal() : before_(std::signal(SIGPIPE, SIG_IGN)) {}
  ~IgnoredPipeSignal() { std::signal(SIGPIPE, before_); }
  IgnoredPipeSignal(const IgnoredPipeSignal&) = delete;
  IgnoredPipeSignal& operator=(const IgnoredPipeSignal&) = delete;

 private:
  void (*before_)(int);
};

// The key and where it is from; neither where there is none.
struct Key {
  std::string value, from;
};

Result<Key> find_key(const std::string& file) {
  config::SecretSource source;
  Key key;
  if (!file.empty()) {
    source.file = file;
    key.from = file;
  } else if (!environment(kKeyVariable).empty()) {
    source.env = kKeyVariable;
    key.from = kKeyVariable;
  } else {
    return key;
  }
  Result<std::string> value = config::read_secret(source, "--key-file");
  if (!value) return std::unexpected(std::move(value.error()));
  key.value = std::move(*value);
  return key;
}

ErrorCode code_of_status(unsigned status) noexcept {
  switch (status) {
    case 401:
      return ErrorCode::kUnauthenticated;
    case 403:
      return ErrorCode::kPermissionDenied;
    case 404:
      return ErrorCode::kNotFound;
    case 429:
      return ErrorCode::kRateLimited;
    default:
      return status >= 500 ? ErrorCode::kOverloaded : ErrorCode::kInvalidInput;
  }
}

// {"error": {"message", "param"}}; false where it is something else.
bool read_error(const std::string& body, Error& error) {
  boost::system::error_code wrong;
  const boost::json::value value = boost::json::parse(decodable_json(body), wrong);
  const boost::json::object* object = wrong ? nullptr : value.if_object();
  const boost::json::value* inner = object == nullptr ? nullptr : object->if_contains("error");
  object = inner == nullptr ? nullptr : inner->if_object();
  if (object == nullptr) return false;
  const auto text = [&](std::string_view name) {
    const boost::json::value* found = object->if_contains(name);
    const boost::json::string* string = found == nullptr ? nullptr : found->if_string();
    return string == nullptr ? std::string() : std::string(*string);
  };
  error.message = text("message");
  error.field = text("param");
  return !error.message.empty();
}

http::Task<http::ClientResult<void>> begin_call(http::ClientConnection& connection, const std::string& head,
                                                const std::string& body, TimePoint deadline) {
  http::ClientResult<void> done = co_await connection.open(deadline);
  if (done) done = co_await connection.send(head, body, deadline);
  if (done) done = co_await connection.read_head(deadline);
  co_return done;
}

}  // namespace

void add_server_options(CLI::App& command, ServerOptions& options) {
  command
      .add_option("--server", options.server,
                  fmt::format("Where the server is; else ${}, else {}. The key is that in ${}, if it is set",
                              kUrlVariable, kDefaultServer, kKeyVariable))
      ->type_name("URL");
  add_file(command, "--key-file", options.key_file,
           fmt::format("A file with the key, instead of ${}", kKeyVariable));
  add_file(command, "--ca", options.ca,
           "PEM certificates of who signed the server's; else those the system trusts");
  add_json_flag(command, options.json, "The API's objects as they are, one a line");
}

Result<std::unique_ptr<ApiClient>> ApiClient::make(const ServerOptions& options) {
  std::unique_ptr<ApiClient> client(new ApiClient());
  std::string from(kServerOption);
  client->url_ = options.server;
  if (client->url_.empty()) {
    client->url_ = environment(kUrlVariable);
    from = kUrlVariable;
  }
  if (client->url_.empty()) client->url_ = kDefaultServer;
  const Result<config::BaseUrl> url = config::parse_base_url(client->url_);
  if (!url)
    return fail(ErrorCode::kInvalidInput, fmt::format("{} {} {}", from, client->url_, url.error().message));
  Result<Key> key = find_key(options.key_file);
  if (!key) return std::unexpected(std::move(key.error()));
  Result<std::optional<upstream::Proxy>> proxy = upstream::proxy_for({}, *url);
  if (!proxy) return std::unexpected(std::move(proxy.error()));

  auto origin = std::make_shared<http::Origin>();
  origin->tls = url->tls;
  origin->host = url->host;
  origin->port = url->port;
  origin->resolve_timeout = origin->connect_timeout = origin->tls_timeout = std::chrono::seconds(10);
  if (url->tls) {
    auto context = http::ClientTlsContext::load({.ca = options.ca, .certificate = {}, .private_key = {}});
    if (!context) return std::unexpected(std::move(context.error()));
    origin->tls_context = std::move(*context);
  }
  if (*proxy) {
    origin->proxy_host = (*proxy)->host;
    origin->proxy_port = (*proxy)->port;
    origin->proxy_authorization = (*proxy)->authorization;
  }
  // The base URL of OpenAI's clients ends in /v1, as all paths here begin.
  std::string path = url->path;
  if (path.ends_with("/v1")) path.resize(path.size() - 3);
  client->prefix_ = origin->target_prefix() + path;
  client->host_ = origin->authority();
  if (!url->tls && !origin->proxy_authorization.empty())
    client->headers_ = fmt::format("Proxy-Authorization: {}\r\n", origin->proxy_authorization);
  if (!key->value.empty()) {
    client->headers_ += fmt::format("Authorization: Bearer {}\r\n", key->value);
    if (!url->tls && !url->is_local())
      print_note(fmt::format("the key goes to {} unencrypted; https:// would not show it", client->host_));
  }
  client->key_from_ = std::move(key->from);
  client->origin_ = std::move(origin);
  return client;
}

ApiClient::~ApiClient() { resolver_.stop(); }

template <class T>
http::ClientResult<T> ApiClient::run(http::Task<http::ClientResult<T>> task) {
  const IgnoredPipeSignal ignored;
  std::optional<http::ClientResult<T>> result;
  std::exception_ptr thrown;
  boost::asio::co_spawn(loop_.context(), std::move(task),
                        [&](std::exception_ptr error, http::ClientResult<T> done) {
                          thrown = std::move(error);
                          result.emplace(std::move(done));
                        });
  while (!result) loop_.context().run_one();
  if (thrown) std::rethrow_exception(thrown);
  return std::move(*result);
}

std::string ApiClient::head_of(const ApiRequest& request) const {
  std::string head =
      fmt::format("{} {}{} HTTP/1.1\r\nHost: {}\r\nUser-Agent: waybill/{}\r\nAccept: */*\r\n{}",
                  request.method, prefix_, request.path, host_, WAYBILL_VERSION, headers_);
  for (const auto& [name, value] : request.headers) head += fmt::format("{}: {}\r\n", name, value);
  if (request.method != "GET")
    head += fmt::format("Content-Type: application/json\r\nContent-Length: {}\r\n", request.body.size());
  return head + "\r\n";
}

http::ClientResult<void> ApiClient::begin(const ApiRequest& request, TimePoint deadline) {
  const std::string head = head_of(request);
  for (;;) {
    loop_.context().poll();  // what has come since the last call
    if (connection_ && connection_->is_reusable() && !connection_->is_stale()) {
      connection_->start_reuse();
    } else {
      connection_.emplace(loop_, resolver_, origin_);
    }
    http::ClientResult<void> begun = run<void>(begin_call(*connection_, head, request.body, deadline));
    if (begun) return begun;
    connection_.reset();
    // What is not only looked at may have been done.
    if (!begun.error().stale || request.method != "GET") return begun;
  }
}

std::unexpected<Error> ApiClient::no_answer(const http::ClientError& error) const {
  using http::ClientFault;
  using http::ClientStage;
  const bool late = error.fault == ClientFault::kTimeout;
  const ErrorCode code = late ? ErrorCode::kUpstreamTimeout : ErrorCode::kUpstreamFailed;
  switch (error.stage) {
    case ClientStage::kResolve:
    case ClientStage::kConnect:
      return fail(code,
                  fmt::format("no server is reached at {} ({}); `waybill serve` starts one, --server or {} "
                              "names another",
                              url_, error.message, kUrlVariable),
                  std::string(kServerOption));
    case ClientStage::kTls:
      return fail(code,
                  fmt::format("there is no secure connection to {} ({}); --ca names the certificates of who "
                              "signed the server's",
                              url_, error.message),
                  std::string(kServerOption));
    case ClientStage::kSend:
    case ClientStage::kHeaders:
    case ClientStage::kBody:
      break;
  }
  return fail(code, late ? fmt::format("{} did not answer in time", url_)
                         : fmt::format("there is no whole answer from {}: {}", url_, error.message));
}

Result<ApiAnswer> ApiClient::rest_of_answer(TimePoint deadline) {
  ApiAnswer answer;
  answer.status = connection_->head().status;
  for (;;) {
    const http::ClientResult<std::string_view> piece =
        run<std::string_view>(connection_->read_body(deadline));
    if (!piece) {
      connection_.reset();
      return no_answer(piece.error());
    }
    if (piece->empty()) return answer;
    if (answer.body.size() + piece->size() > kLongestAnswer) {
      connection_.reset();
      return fail(ErrorCode::kUpstreamFailed, fmt::format("the answer of {} has no end", url_));
    }
    answer.body += *piece;
  }
}

Result<ApiAnswer> ApiClient::send(const ApiRequest& request) {
  const TimePoint deadline = in(request.timeout);
  const http::ClientResult<void> begun = begin(request, deadline);
  if (!begun) return no_answer(begun.error());
  return rest_of_answer(deadline);
}

Result<std::string> ApiClient::ask(const ApiRequest& request) {
  Result<ApiAnswer> answer = send(request);
  if (!answer) return std::unexpected(std::move(answer.error()));
  if (answer->status / 100 != 2) return std::unexpected(error_of(request, *answer));
  return std::move(answer->body);
}

Error ApiClient::error_of(const ApiRequest& request, const ApiAnswer& answer) const {
  Error error;
  error.code = code_of_status(answer.status);
  const bool told = read_error(answer.body, error);
  if (answer.status == 401) {
    error.message =
        key_from_.empty()
            ? fmt::format("the server at {} wants a key: set {}, or name a file that has it with --key-file",
                          url_, kKeyVariable)
            : fmt::format("the server at {} does not know the key in {}", url_, key_from_);
  } else if (!told) {
    const std::string path = request.path.substr(0, request.path.find('?'));
    error.message = fmt::format("{} answered {} to {} {}; is it a Waybill server?", url_, answer.status,
                                request.method, path);
  } else if (!error.field.empty() && error.message.find(error.field) == std::string::npos) {
    error.message += fmt::format(" ({})", error.field);
  }
  return error;
}

Result<unsigned> ApiClient::begin_stream(const ApiRequest& request) {
  const TimePoint deadline = in(request.timeout);
  const http::ClientResult<void> begun = begin(request, deadline);
  if (!begun) return no_answer(begun.error());
  const unsigned status = connection_->head().status;
  if (status / 100 == 2) return status;
  const Result<ApiAnswer> answer = rest_of_answer(deadline);
  if (!answer) return std::unexpected(answer.error());
  return std::unexpected(error_of(request, *answer));
}

Result<std::string_view> ApiClient::next_piece(Duration timeout) {
  const http::ClientResult<std::string_view> piece =
      run<std::string_view>(connection_->read_body(in(timeout)));
  if (piece) return *piece;
  connection_.reset();
  return no_answer(piece.error());
}

bool Patience::wait_after(const Error& error) {
  constexpr unsigned kMost = 20;  // in a row: about a minute and a half
  constexpr std::chrono::milliseconds kFirst(100), kLongest(5000);
  const bool passes = error.code == ErrorCode::kUpstreamFailed || error.code == ErrorCode::kUpstreamTimeout ||
                      error.code == ErrorCode::kOverloaded || error.code == ErrorCode::kRateLimited;
  if (!passes || !was_reached_ || failures_ == kMost) return false;
  std::this_thread::sleep_for(std::min(kFirst * (1U << std::min(failures_, 8U)), kLongest));
  ++failures_;
  return true;
}

std::string percent_encoded(std::string_view text) {
  std::string out;
  for (const char c : text) {
    const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                       c == '-' || c == '.' || c == '_' || c == '~';
    if (plain) {
      out += c;
    } else {
      out += fmt::format("%{:02X}", static_cast<unsigned char>(c));
    }
  }
  return out;
}

}  // namespace waybill::cli
