// GET /health (alive) and GET /ready (takes requests).
#include "api/endpoint.h"
#include "api/gateway.h"

namespace waybill::api {

http::Task<Status> health(Gateway& /*gateway*/, Call& call) {
  call.response().body = R"({"status":"ok"})";
  co_return Status{};
}

http::Task<Status> ready(Gateway& gateway, Call& call) {
  if (gateway.draining()) {
    co_return fail(ErrorCode::kShuttingDown,
                   "The server is being stopped and takes no more requests; use another one.");
  }
  if (gateway.jobs() != nullptr && !gateway.jobs()->is_writable()) {
    co_return fail(ErrorCode::kStoreUnavailable,
                   "The store of jobs cannot be written; the server's log says why. Calls to models are "
                   "answered, jobs are not accepted.");
  }
  call.response().body = R"({"status":"ready"})";
  co_return Status{};
}

}  // namespace waybill::api
