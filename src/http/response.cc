#include "http/response.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <ctime>

namespace waybill::http {
namespace {

constexpr std::size_t kKeptBytes = 1U << 10;  // a larger body is given back once it has been sent

}  // namespace

void Response::add_header(std::string_view name, std::string_view value) {
  if (std::ranges::any_of(value, [](char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7F; }))
    return;
  headers.append(name).append(": ").append(value).append("\r\n");
}

void Response::add_header(std::string_view name, std::uint64_t value) {
  std::array<char, 24> text;
  const auto end = std::to_chars(text.data(), text.data() + text.size(), value).ptr;
  headers.append(name).append(": ").append(text.data(), end).append("\r\n");
}

void Response::add_header(std::string_view name, double value, int decimals) {
  std::array<char, 64> text;
  const auto [end, error] =
      std::to_chars(text.data(), text.data() + text.size(), value, std::chars_format::fixed, decimals);
  if (error == std::errc()) headers.append(name).append(": ").append(text.data(), end).append("\r\n");
}

void Response::clear() {
  status = 200;
  content_type = "application/json";
  headers.clear();
  if (body.capacity() > kKeptBytes) std::string().swap(body);
  body.clear();
  close = false;
}

std::string_view reason_phrase(unsigned status) noexcept {
  switch (status) {
    case 100:
      return "Continue";
    case 101:
      return "Switching Protocols";
    case 200:
      return "OK";
    case 202:
      return "Accepted";
    case 204:
      return "No Content";
    case 304:
      return "Not Modified";
    case 400:
      return "Bad Request";
    case 401:
      return "Unauthorized";
    case 403:
      return "Forbidden";
    case 404:
      return "Not Found";
    case 405:
      return "Method Not Allowed";
    case 408:
      return "Request Timeout";
    case 409:
      return "Conflict";
    case 413:
      return "Content Too Large";
    case 415:
      return "Unsupported Media Type";
    case 417:
      return "Expectation Failed";
    case 422:
      return "Unprocessable Content";
    case 426:
      return "Upgrade Required";
    case 429:
      return "Too Many Requests";
    case 431:
      return "Request Header Fields Too Large";
    case 499:
      return "Client Closed Request";
    case 500:
      return "Internal Server Error";
    case 501:
      return "Not Implemented";
    case 502:
      return "Bad Gateway";
    case 503:
      return "Service Unavailable";
    case 504:
      return "Gateway Timeout";
    case 505:
      return "HTTP Version Not Supported";
    default:
      return "Status";
  }
}

void write_response(const Response& response, const WriteOptions& options, std::string& out) {
  const auto number = [&out](std::size_t value) {
    std::array<char, 24> digits;
    const auto end = std::to_chars(digits.data(), digits.data() + digits.size(), value).ptr;
    out.append(digits.data(), end);
  };
  out.append(options.minor_version == 0 ? "HTTP/1.0 " : "HTTP/1.1 ");
  number(response.status);
  out.append(" ")
      .append(reason_phrase(response.status))
      .append("\r\nDate: ")
      .append(options.date)
      .append("\r\n");
  const bool may_have_body = response.status >= 200 && response.status != 204 && response.status != 304;
  if (may_have_body) {
    if (!response.content_type.empty())
      out.append("Content-Type: ").append(response.content_type).append("\r\n");
    if (options.framing == Framing::kLength) {
      out.append("Content-Length: ");
      number(response.body.size());
      out.append("\r\n");
    } else if (options.framing == Framing::kChunked) {
      out.append("Transfer-Encoding: chunked\r\n");
    }
  }
  out.append(response.headers);
  if (!options.keep_alive) {
    out.append("Connection: close\r\n");
  } else if (options.minor_version == 0) {
    out.append("Connection: keep-alive\r\n");
  }
  out.append("\r\n");
  if (may_have_body && !options.head_only && options.framing == Framing::kLength) out.append(response.body);
}

void write_chunk(std::string_view piece, std::string& out) {
  if (piece.empty()) return;
  std::array<char, 20> digits;
  const auto end = std::to_chars(digits.data(), digits.data() + digits.size(), piece.size(), 16).ptr;
  out.append(digits.data(), end).append("\r\n").append(piece).append("\r\n");
}

std::string http_date(long long unix_seconds) {
  const std::time_t time = static_cast<std::time_t>(unix_seconds);
  std::tm parts{};
  gmtime_r(&time, &parts);
  std::array<char, 64> text;
  const std::size_t size = std::strftime(text.data(), text.size(), "%a, %d %b %Y %H:%M:%S GMT", &parts);
  return {text.data(), size};
}

}  // namespace waybill::http
