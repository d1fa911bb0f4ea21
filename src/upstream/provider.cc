#include "upstream/provider.h"

#include <utility>

#include <fmt/format.h>

#include "config/base_url.h"
#include "config/secret.h"
#include "upstream/ollama/ollama.h"
#include "upstream/openai/openai.h"
#include "upstream/proxy.h"
#include "upstream/request_head.h"

namespace waybill::upstream {
namespace {

std::unique_ptr<const Dialect> make_dialect(const config::Provider& config) {
  switch (config.kind) {
    case config::ProviderKind::kOpenAi:
      break;
    case config::ProviderKind::kOllama:
      return make_ollama_dialect({.keep_alive = config.keep_alive, .num_ctx = config.num_ctx});
  }
  return make_openai_dialect({.stream_options = config.stream_options});
}

LaneQueueOptions lane_options(const config::ProviderLimits& limits) {
  return {.slots = limits.concurrency,
          .batch_slots = limits.batch_concurrency,
          .requests_per_minute = limits.requests_per_minute,
          .tokens_per_minute = limits.tokens_per_minute,
          .max_queue = limits.max_queue,
          .max_wait = limits.max_wait};
}

Result<std::shared_ptr<const http::Origin>> make_origin(const config::Provider& config,
                                                        const config::BaseUrl& url) {
  auto origin = std::make_shared<http::Origin>();
  origin->tls = url.tls;
  origin->host = url.host;
  origin->port = url.port;
  origin->resolve_timeout = config.timeouts.resolve;
  origin->connect_timeout = config.timeouts.connect;
  origin->tls_timeout = config.timeouts.tls;
  if (url.tls) {
    auto context = http::ClientTlsContext::load({.ca = config.tls.ca,
                                                 .certificate = config.tls.certificate,
                                                 .private_key = config.tls.private_key,
                                                 .verify = config.tls.verify});
    if (!context) {
      Error error = std::move(context.error());
      error.message = fmt::format("provider {}: {}", config.name, error.message);
      return std::unexpected(std::move(error));
    }
    origin->tls_context = std::move(*context);
  }
  Result<std::optional<Proxy>> proxy = proxy_for(config.proxy, url);
  if (!proxy) return std::unexpected(std::move(proxy.error()));
  if (*proxy) {
    origin->proxy_host = (*proxy)->host;
    origin->proxy_port = (*proxy)->port;
    origin->proxy_authorization = (*proxy)->authorization;
  }
  return origin;
}

}  // namespace

Provider::Provider(const config::Provider& config)
    : config_(config), dialect_(make_dialect(config)), lanes_(config.name, lane_options(config.limits)) {}

Result<std::shared_ptr<Provider>> Provider::make(const config::Provider& config) {
  std::shared_ptr<Provider> made(new Provider(config));
  const Result<config::BaseUrl> url = config::parse_base_url(config.base_url);
  if (!url)
    return fail(ErrorCode::kInvalidInput,
                fmt::format("provider {}: base_url {}", config.name, url.error().message));
  Result<std::shared_ptr<const http::Origin>> origin = make_origin(config, *url);
  if (!origin) return std::unexpected(std::move(origin.error()));
  made->origin_ = std::move(*origin);
  made->host_ = made->origin_->authority();
  made->prefix_ = made->origin_->target_prefix() + url->path;
  for (const config::HttpHeader& header : config.headers)
    add_header(header.name, header.value, made->headers_);
  const bool plain_proxy = !made->origin_->tls && !made->origin_->proxy_authorization.empty();
  if (plain_proxy) add_header("Proxy-Authorization", made->origin_->proxy_authorization, made->headers_);
  for (std::size_t i = 0; i < config.keys.size(); ++i) {
    Result<std::string> key =
        config::read_secret(config.keys[i], fmt::format("providers ({}).keys[{}]", config.name, i));
    if (!key) return std::unexpected(std::move(key.error()));
    made->keys_.push_back(std::move(*key));
  }
  return made;
}

TargetAddress Provider::address(std::string_view model) const noexcept {
  TargetAddress address = {.host = host_, .prefix = prefix_, .key = {}, .headers = headers_, .model = model};
  if (!keys_.empty()) address.key = keys_[next_key_.fetch_add(1, std::memory_order_relaxed) % keys_.size()];
  return address;
}

}  // namespace waybill::upstream
