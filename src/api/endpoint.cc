#include "api/endpoint.h"

#include <array>
#include <optional>
#include <unordered_map>
#include <vector>

namespace waybill::api {

using http::Method;

std::span<const Endpoint> endpoints() noexcept {
  static constexpr std::array kEndpoints = {
      Endpoint{Method::kPost, "/route", Access::kCaller, true, decide, kAnyQuery},
      Endpoint{Method::kPost, "/v1/route", Access::kCaller, true, decide, kAnyQuery},
      Endpoint{Method::kPost, "/v1/chat/completions", Access::kCaller, true, chat, kAnyQuery, true},
      Endpoint{Method::kPost, "/v1/completions", Access::kCaller, true, complete, kAnyQuery, true},
      Endpoint{Method::kPost, "/v1/embeddings", Access::kCaller, true, embed, kAnyQuery},
      Endpoint{Method::kGet, "/v1/models", Access::kCaller, true, list_models, "provider"},
      Endpoint{Method::kGet, "/v1/models/{id}", Access::kCaller, true, list_models},
      Endpoint{Method::kPost, "/v1/jobs", Access::kCaller, true, submit_jobs},
      Endpoint{Method::kGet, "/v1/jobs", Access::kCaller, true, list_jobs,
               "status queue after limit metadata."},
      Endpoint{Method::kGet, "/v1/jobs/ws", Access::kCaller, true, jobs_socket},
      Endpoint{Method::kGet, "/v1/jobs/{id}", Access::kCaller, true, find_job, "wait"},
      Endpoint{Method::kDelete, "/v1/jobs/{id}", Access::kCaller, true, delete_job},
      Endpoint{Method::kGet, "/v1/jobs/{id}/result", Access::kCaller, true, job_result},
      Endpoint{Method::kGet, "/v1/jobs/{id}/events", Access::kCaller, true, job_events},
      Endpoint{Method::kPost, "/v1/jobs/{id}/cancel", Access::kCaller, true, cancel_job},
      Endpoint{Method::kPost, "/v1/jobs/{id}/retry", Access::kCaller, true, retry_job},
      Endpoint{Method::kPost, "/v1/jobs/{id}/webhook/resend", Access::kCaller, true, resend_webhook},
      Endpoint{Method::kGet, "/v1/webhooks/deliveries", Access::kAdmin, true, list_deliveries,
               "dead job limit"},
      Endpoint{Method::kGet, "/v1/dead-letters", Access::kCaller, true, list_dead_letters,
               "queue after limit metadata."},
      Endpoint{Method::kPost, "/v1/dead-letters/redrive", Access::kAdmin, true, redrive},
      Endpoint{Method::kGet, "/v1/queues", Access::kCaller, true, list_queues},
      Endpoint{Method::kGet, "/v1/queues/{name}", Access::kCaller, true, find_queue},
      Endpoint{Method::kGet, "/v1/queues/{name}/scale", Access::kCaller, true, scale_queue},
      Endpoint{Method::kPost, "/v1/queues/{name}/pause", Access::kAdmin, true, pause_queue},
      Endpoint{Method::kPost, "/v1/queues/{name}/resume", Access::kAdmin, true, resume_queue},
      Endpoint{Method::kPost, "/v1/queues/{name}/lease", Access::kCaller, true, lease_jobs},
      Endpoint{Method::kPost, "/v1/leases/{token}/heartbeat", Access::kCaller, true, renew_lease},
      Endpoint{Method::kPost, "/v1/leases/{token}/complete", Access::kCaller, true, complete_lease},
      Endpoint{Method::kPost, "/v1/leases/{token}/fail", Access::kCaller, true, fail_lease},
      Endpoint{Method::kPost, "/v1/leases/{token}/release", Access::kCaller, true, release_lease},
      Endpoint{Method::kGet, "/health", Access::kOpen, false, health, kAnyQuery},
      Endpoint{Method::kGet, "/ready", Access::kOpen, false, ready, kAnyQuery},
      Endpoint{Method::kGet, "/openapi.yaml", Access::kOpen, false, openapi, kAnyQuery},
      Endpoint{Method::kGet, "/docs", Access::kOpen, false, docs_page, kAnyQuery},
      Endpoint{Method::kGet, "/metrics", Access::kAdmin, false, metrics, kAnyQuery},
      Endpoint{Method::kGet, "/v1/requests", Access::kAdmin, false, list_requests,
               "outcome route since limit"},
      Endpoint{Method::kGet, "/v1/requests/{id}", Access::kAdmin, false, find_request},
      Endpoint{Method::kGet, "/v1/ledger", Access::kAdmin, false, ledger},
      Endpoint{Method::kGet, "/v1/targets", Access::kAdmin, false, list_targets},
      Endpoint{Method::kGet, "/v1/usage", Access::kAdmin, false, usage},
      Endpoint{Method::kPost, "/v1/admin/reload", Access::kAdmin, false, reload},
  };
  return kEndpoints;
}

namespace {

struct Table {
  // By path: those without braces, and those with them. Few of the latter share a first part.
  std::unordered_map<std::string_view, std::vector<const Endpoint*>> literal;
  std::vector<const Endpoint*> patterns;
};

const Table& table() {
  static const Table made = [] {
    Table by_path;
    for (const Endpoint& each : endpoints()) {
      if (each.path.find('{') == std::string_view::npos) {
        by_path.literal[each.path].push_back(&each);
      } else {
        by_path.patterns.push_back(&each);
      }
    }
    return by_path;
  }();
  return made;
}

// What stands for the braces; nothing: the path is another.
std::optional<std::string_view> match(std::string_view pattern, std::string_view path) noexcept {
  const std::size_t open = pattern.find('{'), close = pattern.find('}', open);
  const std::string_view before = pattern.substr(0, open), after = pattern.substr(close + 1);
  if (path.size() <= before.size() + after.size() || !path.starts_with(before) || !path.ends_with(after))
    return std::nullopt;
  const std::string_view argument = path.substr(before.size(), path.size() - before.size() - after.size());
  if (argument.find('/') != std::string_view::npos) return std::nullopt;
  return argument;
}

template <class Take>
void for_each_at(std::string_view path, Take take) {
  if (const auto found = table().literal.find(path); found != table().literal.end()) {
    for (const Endpoint* each : found->second) take(*each);
    return;
  }
  for (const Endpoint* each : table().patterns) {
    if (match(each->path, path)) take(*each);
  }
}

}  // namespace

FoundEndpoint find_endpoint(Method method, std::string_view path) noexcept {
  FoundEndpoint found;
  for_each_at(path, [&](const Endpoint& each) {
    found.path_known = true;
    if (each.method == method || (each.method == Method::kGet && method == Method::kHead))
      found.endpoint = &each;
  });
  return found;
}

std::string allowed_methods(std::string_view path) {
  std::string methods = "OPTIONS";
  for_each_at(path, [&](const Endpoint& each) {
    methods.append(", ").append(http::to_string(each.method));
    if (each.method == Method::kGet) methods.append(", HEAD");
  });
  return methods;
}

std::string path_argument(const Call& call) {
  return http::percent_decoded(match(call.endpoint->path, call.request().path).value_or(""));
}

}  // namespace waybill::api
