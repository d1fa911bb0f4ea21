// What became of webhooks, and their way back.
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "api/endpoint.h"
#include "api/gateway.h"
#include "api/job_access.h"
#include "api/job_json.h"
#include "api/query.h"
#include "base/json_writer.h"

namespace waybill::api {
namespace {

constexpr std::size_t kListed = 20;

void write_delivery(JsonWriter& json, const store::DeliveryRecord& delivery) {
  json.begin_object().key("id").integer(static_cast<std::int64_t>(delivery.delivery));
  json.key("object").string("webhook.delivery").key("job").string(to_string(delivery.job));
  json.key("url").string(delivery.url).key("state").string(delivery.state);
  json.key("attempts").integer(delivery.attempts).key("created_at");
  write_time(json, delivery.created);
  json.key("due_at");
  write_time(json, delivery.state == "pending" ? delivery.due : store::kNever);
  json.key("status");
  if (delivery.status == 0) {
    json.null();
  } else {
    json.integer(delivery.status);
  }
  json.key("error");
  if (delivery.error.empty()) {
    json.null();
  } else {
    json.string(delivery.error);
  }
  json.end_object();
}

http::Task<Result<std::vector<store::DeliveryRecord>>> look_up(jobs::Service& service, Call& call,
                                                               std::optional<Uuid> job, bool dead_only,
                                                               std::size_t limit) {
  auto look = [job, dead_only, limit](store::Store& from) { return from.deliveries(job, dead_only, limit); };
  Result<std::vector<store::DeliveryRecord>> found = co_await service.read(call.exchange.loop(), look);
  co_return found;
}

}  // namespace

http::Task<Status> list_deliveries(Gateway& gateway, Call& call) {
  Result<jobs::Service*> service = jobs_of(gateway);
  if (!service) co_return std::unexpected(std::move(service.error()));
  const std::string_view query = call.request().query;
  const Result<std::size_t> limit = read_limit(query, kListed);
  if (!limit) co_return std::unexpected(limit.error());
  std::string text;
  std::optional<Uuid> job;
  if (http::query_parameter(query, "job", text)) {
    job = parse_uuid(text);
    if (!job) co_return fail(ErrorCode::kInvalidInput, "\"job\" must be the id of a job.", "job");
  }
  bool dead_only = false;
  if (http::query_parameter(query, "dead", text)) {
    dead_only = text == "true";
    if (!dead_only && text != "false")
      co_return fail(ErrorCode::kInvalidInput, "\"dead\" must be true or false.", "dead");
  }
  Result<std::vector<store::DeliveryRecord>> found =
      co_await look_up(**service, call, job, dead_only, *limit + 1);
  if (!found) co_return std::unexpected(std::move(found.error()));
  const bool more = found->size() > *limit;
  if (more) found->pop_back();
  JsonWriter json(call.response().body);
  json.begin_object().key("object").string("list").key("data").begin_array();
  for (const store::DeliveryRecord& each : *found) write_delivery(json, each);
  json.end_array().key("has_more").boolean(more).end_object();
  co_return Status{};
}

http::Task<Status> resend_webhook(Gateway& gateway, Call& call) {
  Result<jobs::Service*> service = jobs_of(gateway);
  if (!service) co_return std::unexpected(std::move(service.error()));
  Result<store::Job> job = co_await find_job(**service, call);
  if (!job) co_return std::unexpected(std::move(job.error()));
  const store::Resend command = {.job = job->id};
  Result<bool> done = co_await (*service)->commit(command, call.exchange.loop());
  if (!done) co_return std::unexpected(std::move(done.error()));
  Result<std::vector<store::DeliveryRecord>> found = co_await look_up(**service, call, job->id, false, 1);
  if (!found) co_return std::unexpected(std::move(found.error()));
  if (!*done || found->empty()) {
    co_return refuse(call, 409, "no_delivery",
                     "There is nothing to send once more: the job has no webhook, or has not ended yet.");
  }
  JsonWriter json(call.response().body);
  write_delivery(json, found->front());
  call.response().status = 202;
  co_return Status{};
}

}  // namespace waybill::api
