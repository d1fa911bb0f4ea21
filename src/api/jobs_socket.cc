// GET /v1/jobs/ws: what happens to jobs, told as it happens, on one connection for any number of them.
#include <exception>
#include <string>
#include <utility>

#include <boost/asio/co_spawn.hpp>

#include "api/cors.h"
#include "api/endpoint.h"
#include "api/gateway.h"
#include "api/job_access.h"
#include "api/job_listener.h"
#include "http/pending.h"
#include "http/websocket.h"

namespace waybill::api {
namespace {

constexpr std::string_view kProtocol = "waybill.v1";
// Ten thousand ids; some dozens of jobs with all that they can have in them.
constexpr http::WebSocketLimits kLimits = {.max_message_bytes = 512U << 10, .max_buffered_bytes = 4U << 20};

http::Task<Status> no_upgrade(Call& call, Error error) {
  if (error.code != ErrorCode::kInvalidInput && error.code != ErrorCode::kUnsupported)
    co_return std::unexpected(std::move(error));
  call.response().add_header("Upgrade", "websocket");
  call.response().add_header("Sec-WebSocket-Version", "13");
  co_return refuse(call, 426, "websocket_needed", std::move(error.message));
}

http::Task<> listen(http::EventLoop& loop, http::WebSocket& socket, JobListener& listener) {
  for (;;) {
    const char* activity = loop.set_activity(nullptr);  // the loop does other things meanwhile
    std::optional<http::WebSocket::Message> message = co_await socket.read();
    loop.set_activity(activity);
    if (!message) co_return;
    listener.take(*message);
  }
}

}  // namespace

http::Task<Status> jobs_socket(Gateway& gateway, Call& call) {
  Result<jobs::Service*> service = jobs_of(gateway);
  if (!service) co_return std::unexpected(std::move(service.error()));
  const http::Request& request = call.request();
  // Where no key is asked for, any page in a browser of this machine could listen.
  if (call.caller == nullptr && !is_allowed_origin(request, call.deployment->config().server.cors)) {
    co_return fail(ErrorCode::kPermissionDenied,
                   "Pages of this origin may not listen to jobs (server.cors.allow_origins).");
  }
  add_id_headers(call);
  const bool named = http::has_token(request.header("sec-websocket-protocol"), kProtocol);
  const std::string_view protocol = named ? kProtocol : std::string_view();
  Result<http::WebSocket*> upgraded = co_await call.exchange.upgrade(protocol, kLimits);
  if (!upgraded) {
    Status refused = co_await no_upgrade(call, std::move(upgraded.error()));
    co_return refused;
  }
  http::WebSocket& socket = **upgraded;
  http::EventLoop& loop = call.exchange.loop();
  const std::string* caller = sees_all(call) ? nullptr : &call.caller->name;
  JobListener listener(**service, loop, socket, caller);
  http::Pending<bool> told;
  boost::asio::co_spawn(loop.context(), listener.tell(), [&told, &socket](const std::exception_ptr& fault) {
    if (fault) socket.close(http::close_code::kServerFault);
    told.set(!fault);
  });
  bool threw = false;
  try {
    co_await listen(loop, socket, listener);
  } catch (const std::exception&) {
    threw = true;
  }
  listener.stop();
  const bool well = co_await told.get();
  if (threw || !well) {
    socket.close(http::close_code::kServerFault);
    co_return fail(ErrorCode::kInternal, "This is a fault of the server, not of the client.");
  }
  co_return Status{};
}

}  // namespace waybill::api
