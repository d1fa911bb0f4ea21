// What operators ask for: metrics, waybills, the ledger, another configuration.
#include <fmt/format.h>

#include "api/await.h"
#include "api/endpoint.h"
#include "api/gateway.h"
#include "api/request_filter.h"
#include "base/json_writer.h"
#include "telemetry/record_json.h"

namespace waybill::api {
http::Task<Status> metrics(Gateway& gateway, Call& call) {
  const telemetry::Exposition exposition = telemetry::choose_exposition(call.request().header("accept"));
  call.response().content_type = telemetry::content_type(exposition);
  call.response().body = gateway.telemetry().registry().expose(exposition);
  co_return Status{};
}

http::Task<Status> find_request(Gateway& gateway, Call& call) {
  const std::string id = path_argument(call);
  const std::optional<telemetry::Record> record = gateway.telemetry().waybills().find(id);
  if (!record) {
    co_return fail(
        ErrorCode::kNotFound,
        fmt::format("There is no waybill of the request \"{}\": it never came here, or it is too long ago "
                    "(telemetry.waybills.keep).",
                    id.substr(0, 100)),
        "id");
  }
  call.response().body = telemetry::to_json(*record);
  co_return Status{};
}

http::Task<Status> list_requests(Gateway& gateway, Call& call) {
  RequestFilter read;
  if (Status status = read_request_filter(call.request().query, read); !status) co_return status;
  JsonWriter json(call.response().body);
  json.begin_object().key("object").string("list").key("data").begin_array();
  for (const telemetry::Record& record : gateway.telemetry().waybills().list(read.filter))
    telemetry::write_record(json, record);
  json.end_array().end_object();
  co_return Status{};
}

http::Task<Status> ledger(Gateway& gateway, Call& call) {
  call.response().body = telemetry::to_json(gateway.telemetry().check_ledger());
  co_return Status{};
}

http::Task<Status> reload(Gateway& gateway, Call& call) {
  auto start = [&gateway, &call](std::move_only_function<void(Result<std::string>)>&& done) {
    gateway.reload(call.exchange.loop(), std::move(done));
    return std::optional<Result<std::string>>();
  };
  Result<std::string> done = co_await await_answer<std::string>(call.exchange, start);
  if (!done) co_return std::unexpected(done.error());
  JsonWriter json(call.response().body);
  json.begin_object().key("status").string("reloaded").key("message").string(*done).end_object();
  co_return Status{};
}

}  // namespace waybill::api
