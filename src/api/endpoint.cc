#include "api/endpoint.h"

#include <array>

namespace waybill::api {

using http::Method;

std::span<const Endpoint> endpoints() noexcept {
  static constexpr std::array kEndpoints = {
      Endpoint{Method::kPost, "/route", Access::kCaller, true, decide},
      Endpoint{Method::kPost, "/v1/route", Access::kCaller, true, decide},
      Endpoint{Method::kPost, "/v1/chat/completions", Access::kCaller, true, chat, true},
      Endpoint{Method::kPost, "/v1/completions", Access::kCaller, true, complete, true},
      Endpoint{Method::kPost, "/v1/embeddings", Access::kCaller, true, embed},
      Endpoint{Method::kGet, "/v1/models", Access::kCaller, true, list_models},
      Endpoint{Method::kGet, "/v1/models/{id}", Access::kCaller, true, list_models},
      Endpoint{Method::kGet, "/health", Access::kOpen, false, health},
      Endpoint{Method::kGet, "/ready", Access::kOpen, false, ready},
      Endpoint{Method::kGet, "/openapi.yaml", Access::kOpen, false, openapi},
      Endpoint{Method::kGet, "/docs", Access::kOpen, false, docs_page},
      Endpoint{Method::kGet, "/metrics", Access::kAdmin, false, metrics},
      Endpoint{Method::kGet, "/v1/requests", Access::kAdmin, false, list_requests},
      Endpoint{Method::kGet, "/v1/requests/{id}", Access::kAdmin, false, find_request},
      Endpoint{Method::kGet, "/v1/ledger", Access::kAdmin, false, ledger},
      Endpoint{Method::kGet, "/v1/targets", Access::kAdmin, false, list_targets},
      Endpoint{Method::kPost, "/v1/admin/reload", Access::kAdmin, false, reload},
  };
  return kEndpoints;
}

std::string path_argument(const Call& call) noexcept {
  const std::string_view path = call.request().path;
  return http::percent_decoded(path.substr(path.rfind('/') + 1));
}

}  // namespace waybill::api
