#include "telemetry/http_post.h"

#include <cstdint>
#include <optional>

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/core/tcp_stream.hpp>
#include <boost/beast/http.hpp>
#include <fmt/format.h>

namespace waybill::telemetry {
namespace {

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace http = beast::http;

constexpr auto kToken = asio::as_tuple(asio::use_awaitable);
constexpr std::uint64_t kMaxAnswer = 1U << 16;

std::unexpected<Error> failure(const HttpTarget& target, const beast::error_code& error) {
  return waybill::fail(ErrorCode::kIo,
                       fmt::format("http://{}:{}: {}", target.host, target.port, error.message()));
}

asio::awaitable<Result<HttpAnswer>> exchange(const HttpTarget& target,
                                             http::request<http::string_body>& request) {
  auto executor = co_await asio::this_coro::executor;
  asio::ip::tcp::resolver resolver(executor);
  auto [resolve_error, addresses] = co_await resolver.async_resolve(target.host, target.port, kToken);
  if (resolve_error) co_return failure(target, resolve_error);

  beast::tcp_stream stream(executor);
  auto [connect_error, endpoint] = co_await stream.async_connect(addresses, kToken);
  if (connect_error) co_return failure(target, connect_error);
  auto [write_error, written] = co_await http::async_write(stream, request, kToken);
  if (write_error) co_return failure(target, write_error);

  beast::flat_buffer buffer;
  http::response_parser<http::string_body> parser;
  parser.body_limit(kMaxAnswer);
  auto [read_error, read] = co_await http::async_read(stream, buffer, parser, kToken);
  if (read_error) co_return failure(target, read_error);
  HttpAnswer answer;
  answer.status = parser.get().result_int();
  answer.retry_after = std::string(parser.get()[http::field::retry_after]);
  answer.body = std::move(parser.get().body());
  co_return answer;
}

}  // namespace

Result<HttpTarget> parse_http_target(std::string_view url) {
  const auto wrong = [url](const char* why) {
    return waybill::fail(ErrorCode::kInvalidInput, fmt::format("\"{}\" is no address: {}", url, why));
  };
  constexpr std::string_view kScheme = "http://";
  if (!url.starts_with(kScheme)) {
    return waybill::fail(
        ErrorCode::kUnsupported,
        fmt::format("\"{}\" is no http:// address; for TLS, run a collector beside the program", url));
  }
  const std::string_view rest = url.substr(kScheme.size());
  const std::size_t slash = std::min(rest.find_first_of("/?#"), rest.size());
  std::string_view authority = rest.substr(0, slash);
  HttpTarget target;
  if (slash < rest.size()) target.path = rest.substr(slash);
  for (const char c : url) {
    if (c <= 0x20 || c >= 0x7F) return wrong("it has blanks or characters beyond ASCII");
  }
  if (authority.find('@') != std::string_view::npos) return wrong("give credentials as headers");
  if (!target.path.starts_with('/') || target.path.find('#') != std::string::npos)
    return wrong("the path is odd");
  std::size_t host_end = 0;
  if (authority.starts_with('[')) {
    const std::size_t close = authority.find(']');
    if (close == std::string_view::npos) return wrong("a bracket is not closed");
    target.host = authority.substr(1, close - 1);
    host_end = close + 1;
  } else {
    host_end = std::min(authority.find(':'), authority.size());
    target.host = authority.substr(0, host_end);
  }
  if (target.host.empty()) return wrong("there is no host");
  authority.remove_prefix(host_end);
  if (authority.empty()) return target;
  authority.remove_prefix(1);
  const bool digits = !authority.empty() && authority.size() <= 5 &&
                      authority.find_first_not_of("0123456789") == std::string_view::npos;
  if (!digits) return wrong("the port is no number");
  target.port = authority;
  return target;
}

Result<HttpAnswer> http_post(const HttpTarget& target,
                             const std::vector<std::pair<std::string, std::string>>& headers,
                             std::string body, Duration timeout) {
  http::request<http::string_body> request{http::verb::post, target.path, 11};
  const bool six = target.host.find(':') != std::string::npos;
  request.set(http::field::host,
              fmt::format("{}{}{}:{}", six ? "[" : "", target.host, six ? "]" : "", target.port));
  request.set(http::field::content_type, "application/json");
  request.set(http::field::user_agent, "waybill");
  request.set(http::field::connection, "close");
  for (const auto& [name, value] : headers) request.set(name, value);
  request.body() = std::move(body);
  request.prepare_payload();

  // The loop runs for so long and not longer; whatever is then under way goes with it.
  std::optional<Result<HttpAnswer>> result;
  asio::io_context loop(1);
  asio::co_spawn(loop, exchange(target, request),
                 [&result](const std::exception_ptr& thrown, Result<HttpAnswer> answer) {
                   if (!thrown) result = std::move(answer);
                 });
  loop.run_for(timeout);
  if (result) return std::move(*result);
  return waybill::fail(ErrorCode::kDeadlineExceeded, fmt::format("http://{}:{}: no answer within {} s",
                                                                 target.host, target.port, seconds(timeout)));
}

}  // namespace waybill::telemetry
