// The endpoints: what is answered where, to whom.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "api/call.h"
#include "base/result.h"
#include "http/request.h"
#include "http/task.h"

namespace waybill::api {

class Gateway;

enum class Access : std::uint8_t {
  kOpen,    // everybody
  kCaller,  // who has a key, where there are keys
  kAdmin,   // the admin listener; where there is none, who has an admin key, or this machine where there are
            // no keys
};

// Fills the response, or fails with what is to be told. Runs on the connection's loop.
using Run = http::Task<Status> (*)(Gateway&, Call&);

inline constexpr std::string_view kAnyQuery = "*";

struct Endpoint {
  http::Method method;
  std::string_view path;  // "/v1/jobs/{id}/cancel": a part in braces stands for any text without "/"
  Access access;
  bool accounted;  // has a waybill; what looks at the accounts has none, so as not to change what it shows
  Run run;
  // The parameters that it takes, with spaces between; "metadata." stands for all that begin so. kAnyQuery:
  // what others add to a URL (probes, browsers, clients of other gateways) is no matter.
  std::string_view query = {};
  bool calls_model =
      false;  // takes as long as a model does: without a deadline of its own it has the longest
};

[[nodiscard]] std::span<const Endpoint> endpoints() noexcept;

struct FoundEndpoint {
  const Endpoint* endpoint = nullptr;  // null: nothing is there, or not by this method
  bool path_known = false;
};
// HEAD finds what GET does. A path that is in the table as it stands is never taken for one with braces.
[[nodiscard]] FoundEndpoint find_endpoint(http::Method method, std::string_view path) noexcept;
// "OPTIONS, GET, HEAD": for the Allow header.
[[nodiscard]] std::string allowed_methods(std::string_view path);

// The text that stands for the part in braces, percent-decoded: a "/" in it comes as %2F.
[[nodiscard]] std::string path_argument(const Call& call);

// One file each.
http::Task<Status> decide(Gateway& gateway, Call& call);  // decide_endpoint.cc
http::Task<Status> embed(Gateway& gateway, Call& call);   // embeddings_endpoint.cc
http::Task<Status> chat(Gateway& gateway, Call& call);    // chat_endpoint.cc
http::Task<Status> complete(Gateway& gateway, Call& call);
http::Task<Status> list_models(Gateway& gateway, Call& call);  // models_endpoint.cc
http::Task<Status> health(Gateway& gateway, Call& call);       // health_endpoint.cc
http::Task<Status> ready(Gateway& gateway, Call& call);
http::Task<Status> metrics(Gateway& gateway, Call& call);  // admin_endpoint.cc
http::Task<Status> list_targets(Gateway& gateway, Call& call);
http::Task<Status> usage(Gateway& gateway, Call& call);
http::Task<Status> find_request(Gateway& gateway, Call& call);
http::Task<Status> list_requests(Gateway& gateway, Call& call);
http::Task<Status> ledger(Gateway& gateway, Call& call);
http::Task<Status> reload(Gateway& gateway, Call& call);
http::Task<Status> submit_jobs(Gateway& gateway, Call& call);  // jobs_endpoint.cc
http::Task<Status> list_jobs(Gateway& gateway, Call& call);
http::Task<Status> find_job(Gateway& gateway, Call& call);
http::Task<Status> job_result(Gateway& gateway, Call& call);
http::Task<Status> cancel_job(Gateway& gateway, Call& call);
http::Task<Status> retry_job(Gateway& gateway, Call& call);
http::Task<Status> delete_job(Gateway& gateway, Call& call);
http::Task<Status> job_events(Gateway& gateway, Call& call);   // job_events_endpoint.cc
http::Task<Status> list_queues(Gateway& gateway, Call& call);  // queues_endpoint.cc
http::Task<Status> find_queue(Gateway& gateway, Call& call);
http::Task<Status> pause_queue(Gateway& gateway, Call& call);
http::Task<Status> resume_queue(Gateway& gateway, Call& call);
http::Task<Status> scale_queue(Gateway& gateway, Call& call);
http::Task<Status> lease_jobs(Gateway& gateway, Call& call);  // leases_endpoint.cc
http::Task<Status> renew_lease(Gateway& gateway, Call& call);
http::Task<Status> complete_lease(Gateway& gateway, Call& call);
http::Task<Status> fail_lease(Gateway& gateway, Call& call);
http::Task<Status> release_lease(Gateway& gateway, Call& call);
http::Task<Status> list_dead_letters(Gateway& gateway, Call& call);  // dead_letters_endpoint.cc
http::Task<Status> redrive(Gateway& gateway, Call& call);
http::Task<Status> jobs_socket(Gateway& gateway, Call& call);      // jobs_socket.cc
http::Task<Status> list_deliveries(Gateway& gateway, Call& call);  // webhooks_endpoint.cc
http::Task<Status> resend_webhook(Gateway& gateway, Call& call);
http::Task<Status> openapi(Gateway& gateway, Call& call);  // docs_endpoint.cc
http::Task<Status> docs_page(Gateway& gateway, Call& call);

}  // namespace waybill::api
