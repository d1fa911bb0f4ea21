// The kinds of values that only what the server reads has: as text, and read from YAML.
#include <array>
#include <charconv>
#include <chrono>
#include <utility>

#include <fmt/format.h>

#include "config/key.h"
#include "config/reader.h"

namespace waybill::config {
namespace {

constexpr std::array<std::pair<std::string_view, Duration>, 5> kUnits = {
    {{"d", std::chrono::hours(24)},
     {"h", std::chrono::hours(1)},
     {"m", std::chrono::minutes(1)},
     {"s", std::chrono::seconds(1)},
     {"ms", std::chrono::milliseconds(1)}}};

std::optional<Duration> duration_of(std::string_view text) {
  std::uint32_t count = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), count);
  if (error != std::errc()) return std::nullopt;
  std::string_view unit = text.substr(static_cast<std::size_t>(end - text.data()));
  while (unit.starts_with(' ')) unit.remove_prefix(1);
  for (const auto& [name, length] : kUnits) {
    // 1e9 hours are more than a Duration holds.
    if (unit == name && count <= Duration::max() / length) return count * length;
  }
  return std::nullopt;
}

bool is_hexadecimal(std::string_view text) {
  return text.find_first_not_of("0123456789abcdefABCDEF") == std::string_view::npos;
}

Result<std::uint16_t> port_of(std::string_view text) {
  std::uint16_t port = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), port);
  if (text.empty() || error != std::errc() || end != text.data() + text.size())
    return fail(ErrorCode::kInvalidInput,
                fmt::format("has the port \"{}\"; a port is a number from 0 to 65535", shown(text)));
  return port;
}

}  // namespace

std::string duration_text(Duration value) {
  for (const auto& [unit, length] : kUnits) {
    if (value.count() != 0 && value % length == Duration{}) return fmt::format("{}{}", value / length, unit);
  }
  return fmt::format("{}ms", std::chrono::duration_cast<std::chrono::milliseconds>(value).count());
}

bool ListenAddress::is_local() const noexcept {
  if (kind != Kind::kTcp) return kind == Kind::kUnix;
  // A name may begin with 127. and lead anywhere.
  const bool loopback =
      host.starts_with("127.") && host.find_first_not_of("0123456789.") == std::string::npos;
  return host == "localhost" || host == "::1" || loopback;
}

std::string ListenAddress::text() const {
  switch (kind) {
    case Kind::kUnix:
      return "unix:" + path.string();
    case Kind::kSystemd:
      return "systemd";
    case Kind::kTcp:
      break;
  }
  return host.find(':') != std::string::npos ? fmt::format("[{}]:{}", host, port)
                                             : fmt::format("{}:{}", host, port);
}

Result<ListenAddress> parse_listen_address(std::string_view text) {
  constexpr std::size_t kLongestUnixPath = 107;  // sockaddr_un::sun_path
  const auto wrong = [](std::string message) { return fail(ErrorCode::kInvalidInput, std::move(message)); };
  ListenAddress out;
  if (text == "systemd") {
    out.kind = ListenAddress::Kind::kSystemd;
    return out;
  }
  if (text.starts_with("unix:")) {
    out.kind = ListenAddress::Kind::kUnix;
    out.path = text.substr(5);
    if (out.path.empty()) return wrong("names no socket; write unix:/run/waybill.sock");
    if (text.size() - 5 > kLongestUnixPath)
      return wrong(
          fmt::format("has more than the {} bytes that the path of a socket may have", kLongestUnixPath));
    return out;
  }
  if (text.find("://") != std::string_view::npos)
    return wrong("is a URL; write host:port alone (certificates are in server.tls)");
  const std::size_t colon = text.rfind(':');
  if (colon == std::string_view::npos || text.ends_with(']')) {
    return text.find_first_not_of("0123456789") == std::string_view::npos
               ? wrong(fmt::format(
                     "has no host; write 127.0.0.1:{0}, or 0.0.0.0:{0} for all of this machine's addresses",
                     shown(text)))
               : wrong(fmt::format("has no port; write {}:8000", shown(text)));
  }
  std::string_view host = text.substr(0, colon);
  if (host.empty())
    return wrong(fmt::format(
        "has no host; write 127.0.0.1{0}, or 0.0.0.0{0} and [::]{0} for all of this machine's addresses",
        shown(text.substr(colon))));
  const bool brackets = host.starts_with('[') && host.ends_with(']');
  if (!brackets && host.find(':') != std::string_view::npos)
    return wrong(fmt::format("has colons in its host; write an IPv6 address in brackets ([{}]:{})",
                             shown(host), shown(text.substr(colon + 1))));
  if (brackets) {
    host = host.substr(1, host.size() - 2);
    if (host.find_first_not_of("0123456789abcdefABCDEF:.") != std::string_view::npos ||
        host.find(':') == std::string_view::npos)
      return wrong("has no IPv6 address in its brackets; write [::1]:8000");
  } else if (host.find_first_of(" /[]*?#@") != std::string_view::npos) {
    return wrong(host == "*" ? fmt::format("has \"*\" for its host; write 0.0.0.0:{0} and [::]:{0}",
                                           shown(text.substr(colon + 1)))
                             : std::string("has a host with characters that no host has; write host:port"));
  }
  const Result<std::uint16_t> port = port_of(text.substr(colon + 1));
  if (!port) return std::unexpected(port.error());
  out.host = host;
  out.port = *port;
  return out;
}

void SectionReader::file(const Key& key, std::filesystem::path& out) {
  std::string value;
  text(key, value);
  if (!value.empty()) out = context_.resolve(value);
}

std::optional<Duration> SectionReader::bounded_duration(std::string_view text, int line,
                                                        const std::string& path, DurationBounds bounds) {
  const std::optional<Duration> value = duration_of(text);
  if (value && *value >= bounds.min && *value <= bounds.max) return value;
  const bool bare = text.find_first_not_of("0123456789") == std::string_view::npos;
  context_.error(line, path,
                 fmt::format("{} is \"{}\", which must be a duration from {} to {}: a whole number with ms, "
                             "s, m, h or d ({})",
                             path, shown(text), duration_text(bounds.min), duration_text(bounds.max),
                             bare ? shown(text) + "s" : std::string("250ms")));
  return std::nullopt;
}

void SectionReader::duration(const Key& key, DurationBounds bounds, Duration& out) {
  const YamlNode* node = find(key);
  if (node == nullptr) return;
  const auto text = scalar(*node, path_of(key), "a duration such as 10s");
  if (!text) return;
  if (const auto value = bounded_duration(*text, node->line, path_of(key), bounds)) out = *value;
}

void SectionReader::durations(const Key& key, DurationBounds bounds, std::vector<Duration>& out) {
  const YamlNode* node = find(key);
  if (node == nullptr) return;
  std::vector<std::string> texts;
  read_texts(*node, path_of(key), texts);
  std::vector<Duration> values;
  for (const std::string& text : texts) {
    if (const auto value = bounded_duration(text, node->line, path_of(key), bounds)) values.push_back(*value);
  }
  if (!values.empty()) out = std::move(values);
}

// Whoever puts the key itself here must not find it in a log: the value is in no message.
void SectionReader::digest(const Key& key, std::string& out) {
  const YamlNode* node = find(key);
  if (node == nullptr) return;
  auto value = scalar(*node, path_of(key), "the SHA-256 of the key, 64 hexadecimal digits");
  if (!value) return;
  if (value->size() != 64 || !is_hexadecimal(*value)) {
    context_.error(node->line, path_of(key),
                   fmt::format("{} is not 64 hexadecimal digits; it is the SHA-256 of the key, not the key: "
                               "printf %s KEY | sha256sum",
                               path_of(key)));
    return;
  }
  for (char& c : *value) {
    if (c >= 'A' && c <= 'F') c = static_cast<char>(c - 'A' + 'a');
  }
  out = *std::move(value);
}

void SectionReader::addresses(const Key& key, std::vector<ListenAddress>& out) {
  const YamlNode* node = find(key);
  if (node == nullptr) return;
  std::vector<std::string> texts;
  read_texts(*node, path_of(key), texts);
  std::vector<ListenAddress> addresses;
  for (const std::string& text : texts) {
    Result<ListenAddress> address = parse_listen_address(text);
    if (!address) {
      context_.error(node->line, path_of(key),
                     fmt::format("{}: \"{}\" {}", path_of(key), shown(text), address.error().message));
      continue;
    }
    if (address->kind == ListenAddress::Kind::kUnix) address->path = context_.resolve(address->path);
    addresses.push_back(*std::move(address));
  }
  if (!addresses.empty()) out = std::move(addresses);
}

// A value may be a secret in spite of all advice: it is in no message.
void SectionReader::headers(const Key& key, std::vector<HttpHeader>& out) {
  const YamlNode* node = find(key);
  if (node == nullptr || !expect_mapping(*node, path_of(key))) return;
  for (const auto& [name, value] : node->entries) {
    const std::string path = path_of(key) + '.' + shown(name->text);
    auto text = scalar(*value, path, "text");
    if (!text) continue;
    context_.lines.try_emplace(path_of(key) + '.' + name->text, name->line);
    if (text->find("${") != std::string::npos) {
      context_.error(value->line, path,
                     fmt::format("{} holds \"${{\", but environment variables are not put in; a key is named "
                                 "under keys (keys: [{{env: NAME}}])",
                                 path));
      continue;
    }
    out.push_back({name->text, *std::move(text)});
  }
}

}  // namespace waybill::config
