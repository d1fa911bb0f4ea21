#include "config/upstream_checks.h"

#include <algorithm>
#include <array>
#include <string_view>
#include <unordered_map>
#include <utility>

#include <fmt/format.h>

#include "config/base_url.h"
#include "config/reader.h"
#include "config/secret_checks.h"

namespace waybill::config {
namespace {

std::string lower(std::string_view text) {
  std::string out(text);
  for (char& c : out) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  return out;
}

// RFC 9110, section 5.6.2.
bool is_header_name(std::string_view name) {
  return !name.empty() && std::ranges::all_of(name, [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           std::string_view("!#$%&'*+-.^_`|~").find(c) != std::string_view::npos;
  });
}

// As Ollama reads it: whole seconds, -1 for ever, or whole numbers with ms, s, m or h.
bool is_keep_alive(std::string_view text) {
  const auto digits = [&text] {
    const std::size_t count = std::min(text.find_first_not_of("0123456789"), text.size());
    text.remove_prefix(count);
    return count > 0 && count < 10;
  };
  if (text.starts_with('-')) text.remove_prefix(1);
  if (!digits()) return false;
  if (text.empty()) return true;
  for (;;) {
    const std::size_t unit = text.starts_with("ms") ? 2 : 1;
    if (text.empty() || std::string_view("smh").find(text[unit - 1]) == std::string_view::npos) return false;
    text.remove_prefix(unit);
    if (text.empty()) return true;
    if (!digits()) return false;
  }
}

class ProviderChecker : CheckContext {
 public:
  explicit ProviderChecker(const CheckContext& context) : CheckContext(context) {}

  void check_all() {
    std::unordered_map<std::string_view, const Provider*> first;
    for (std::size_t i = 0; i < config_.providers.size(); ++i) {
      const Provider& provider = config_.providers[i];
      at_ = &provider;
      path_ = fmt::format("providers[{}]", i);
      check_name(first);
      check_url();
      check_keys();
      check_headers();
      check_limits();
      check_tls();
      check_proxy();
      check_kind();
    }
  }

 private:
  [[nodiscard]] std::string key(std::string_view name) const { return fmt::format("{}.{}", path_, name); }
  void wrong(std::string_view name, std::string message) {
    error(line_of(key(name), at_->position), key(name), std::move(message));
  }
  void doubtful(std::string_view name, std::string message) {
    warn(line_of(key(name), at_->position), key(name), std::move(message));
  }

  void check_name(std::unordered_map<std::string_view, const Provider*>& first) {
    const std::string& name = at_->name;
    if (name.empty()) return;  // told when it was read
    if (name.find('/') != std::string::npos) {
      wrong("name",
            fmt::format("the provider \"{}\" has a \"/\" in its name, which parts provider/model; rename it",
                        name));
    }
    const auto [before, added] = first.emplace(name, at_);
    if (!added) {
      wrong("name",
            fmt::format("the provider \"{}\" is there twice (first at {}); rename one, or give one of them "
                        "several keys",
                        name, before->second->position.text()));
    }
  }

  void check_url() {
    url_.reset();
    if (at_->base_url.empty()) return;
    Result<BaseUrl> url = parse_base_url(at_->base_url);
    if (!url) {
      const bool secret = at_->base_url.find('@') != std::string::npos;
      const std::string_view fix = secret ? " and give the key under keys" : "";
      wrong("base_url", fmt::format("{}{} {}{}", key("base_url"),
                                    secret ? std::string() : fmt::format(": \"{}\"", shown(at_->base_url)),
                                    url.error().message, fix));
      return;
    }
    url_ = *std::move(url);
    check_path();
  }

  // What the program itself adds to the path.
  void check_path() {
    static constexpr std::array<std::string_view, 12> kCalls = {
        "/chat/completions", "/completions", "/embeddings", "/models",   "/responses", "/api/chat",
        "/api/generate",     "/api/embed",   "/api/tags",   "/api/show", "/api/ps",    "/api"};
    const std::string path = lower(url_->path);
    const auto root = [this](std::size_t cut) {
      std::string_view url = at_->base_url;
      while (url.ends_with('/')) url.remove_suffix(1);
      return shown(url.substr(0, url.size() - cut));
    };
    for (const std::string_view call : kCalls) {
      if (!path.ends_with(call) || (call == "/api" && at_->kind != ProviderKind::kOllama)) continue;
      wrong("base_url", fmt::format("{}: \"{}\" ends with {}, which is added to it for each call; write {}",
                                    key("base_url"), shown(at_->base_url), call, root(call.size())));
      return;
    }
    if (at_->kind == ProviderKind::kOllama && path.ends_with("/v1")) {
      wrong("base_url",
            fmt::format("{}: \"{}\" is Ollama's copy of OpenAI's API; write {} for its own, or say "
                        "kind: openai",
                        key("base_url"), shown(at_->base_url), root(3)));
    } else if (at_->kind == ProviderKind::kOpenAi && lower(url_->host) == "api.openai.com" && path.empty()) {
      wrong("base_url", fmt::format("{} has no path; write https://api.openai.com/v1", key("base_url")));
    }
  }

  // Settings that one kind alone has.
  void check_kind() {
    const bool ollama = at_->kind == ProviderKind::kOllama;
    const std::array<std::pair<std::string_view, bool>, 2> set = {
        std::pair{std::string_view("keep_alive"), !at_->keep_alive.empty()},
        std::pair{std::string_view("num_ctx"), at_->num_ctx > 0}};
    for (const auto& [name, is_set] : set) {
      if (!is_set || ollama) continue;
      wrong(name, fmt::format("{} is Ollama's; remove it, or say kind: ollama", key(name)));
    }
    if (ollama && !at_->stream_options)
      wrong("stream_options", fmt::format("{} is of kind openai only; remove it", key("stream_options")));
    if (ollama && !at_->keep_alive.empty() && !is_keep_alive(at_->keep_alive)) {
      wrong("keep_alive", fmt::format("{}: \"{}\" is not a time; write one like 10m or 1h30m, or -1 for ever",
                                      key("keep_alive"), shown(at_->keep_alive)));
    }
  }

  void check_keys() {
    check_secrets(*this, at_->keys, key("keys"), "OPENAI_API_KEY");
    if (!at_->keys.empty() && url_ && !url_->tls && !url_->is_local()) {
      doubtful("keys",
               fmt::format("{} are sent to {} without encryption; write https:// in base_url, if it can",
                           key("keys"), url_->host));
    }
  }

  void check_headers() {
    // Made for each call, or of the connection (RFC 9110, section 7.6.1).
    static constexpr std::array<std::string_view, 12> kOurs = {
        "host",       "content-length", "content-type", "transfer-encoding",
        "connection", "keep-alive",     "upgrade",      "te",
        "trailer",    "expect",         "accept",       "accept-encoding"};
    std::vector<std::string> seen;
    for (const HttpHeader& header : at_->headers) {
      const std::string name = lower(header.name);
      const std::string at = "headers." + header.name;
      if (!is_header_name(name)) {
        wrong(at, fmt::format("{} is not the name of a header", key("headers." + shown(header.name))));
      } else if (name == "authorization" || name == "proxy-authorization") {
        wrong(at, fmt::format("{} would put a key into the configuration; name where it is under keys "
                              "(keys: [{{env: NAME}}])",
                              key(at)));
      } else if (std::ranges::find(kOurs, name) != kOurs.end()) {
        wrong(at, fmt::format("{} is set by the program for each call; remove it", key(at)));
      } else if (name == "x-api-key" || name == "api-key" || name == "cookie") {
        doubtful(at, fmt::format("{} looks like a key, which everybody who reads the configuration sees",
                                 key(at)));
      }
      if (std::ranges::any_of(header.value, [](char c) { return (c >= 0 && c < ' ') || c == 0x7F; }))
        wrong(at, fmt::format("{} has a control character or a line break in it",
                              key("headers." + shown(header.name))));
      if (std::ranges::find(seen, name) != seen.end())
        wrong(at, fmt::format("{} is there twice; remove one", key("headers." + shown(header.name))));
      seen.push_back(name);
    }
  }

  void check_limits() {
    const ProviderLimits& limits = at_->limits;
    if (limits.concurrency != 0 && limits.batch_concurrency > limits.concurrency) {
      wrong("limits.batch_concurrency",
            fmt::format("{} is {}, more than the {} of {}; lower it", key("limits.batch_concurrency"),
                        limits.batch_concurrency, limits.concurrency, key("limits.concurrency")));
    }
    const ProviderHealth& health = at_->health;
    if (health.cooldown > health.max_cooldown) {
      wrong(lines_.contains(key("health.cooldown")) ? "health.cooldown" : "health.max_cooldown",
            fmt::format("{} is longer than {}; raise one or lower the other", key("health.cooldown"),
                        key("health.max_cooldown")));
    }
    if (!health.path.empty() && !health.path.starts_with('/')) {
      wrong("health.path", fmt::format("{} is \"{}\", which must begin with a slash; write /{}",
                                       key("health.path"), shown(health.path), shown(health.path)));
    }
  }

  void check_tls() {
    const UpstreamTls& tls = at_->tls;
    const bool told = is_wrong(key("tls.certificate")) || is_wrong(key("tls.private_key"));
    if (tls.certificate.empty() != tls.private_key.empty() && !told) {
      const std::string_view there = tls.certificate.empty() ? "private_key" : "certificate";
      const std::string_view missing = tls.certificate.empty() ? "certificate" : "private_key";
      wrong("tls",
            fmt::format("{0} has a {1} and no {2}; add {2}, or remove {1}", key("tls"), there, missing));
    }
    if (url_ && !url_->tls && lines_.contains(key("tls"))) {
      doubtful("tls", fmt::format("{} has no effect, as base_url is http", key("tls")));
    } else if (!tls.verify) {
      doubtful("tls.verify",
               fmt::format("{} is false: whoever stands between can read the calls and their keys; "
                           "name the authority in ca instead",
                           key("tls.verify")));
    }
  }

  void check_proxy() {
    if (at_->proxy.empty() || at_->proxy == "none") return;
    const Result<BaseUrl> proxy = parse_base_url(at_->proxy);
    if (!proxy) {
      const bool secret = at_->proxy.find('@') != std::string::npos;
      wrong("proxy", fmt::format("{} {}{}", key("proxy"), proxy.error().message,
                                 secret ? " and give it in the environment variable HTTPS_PROXY" : ""));
    } else if (proxy->tls || !proxy->path.empty()) {
      wrong("proxy", fmt::format("{} must be http://host:port or none", key("proxy")));
    }
  }

  const Provider* at_ = nullptr;  // what is being checked,
  std::string path_;              // "providers[0]",
  std::optional<BaseUrl> url_;    // and its base_url, if that is one
};

}  // namespace

void check_providers(const CheckContext& context) { ProviderChecker(context).check_all(); }

}  // namespace waybill::config
