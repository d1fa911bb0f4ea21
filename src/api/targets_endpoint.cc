// GET /v1/targets: how the models' targets and their providers are.
#include "api/endpoint.h"
#include "api/gateway.h"
#include "base/json_writer.h"

namespace waybill::api {
namespace {

std::int64_t milliseconds(Duration duration) {
  return std::chrono::duration_cast<std::chrono::milliseconds>(duration).count();
}

void write_target(JsonWriter& json, const upstream::Target& target, TimePoint now) {
  const Duration left = target.circuit.when() - now;
  json.begin_object().key("target").string(target.name);
  json.key("provider").string(target.provider->config().name);
  json.key("state").string(to_string(target.circuit.state(now)));
  json.key("failures").integer(target.circuit.failures());
  json.key("callable_in_ms").integer(left > Duration::zero() ? milliseconds(left) : 0);
  json.key("in_flight").integer(target.load.in_flight());
  json.key("latency_ms").number(seconds(target.load.latency()) * 1000).end_object();
}

void write_lane(JsonWriter& json, std::string_view name, const upstream::LaneQueue::Stats::PerLane& lane) {
  json.key(name).begin_object().key("in_flight").integer(static_cast<std::int64_t>(lane.in_use));
  json.key("waiting").integer(static_cast<std::int64_t>(lane.waiting));
  json.key("predicted_wait_ms").integer(milliseconds(lane.predicted_wait));
  json.key("oldest_wait_ms").integer(milliseconds(lane.oldest_wait)).end_object();
}

}  // namespace

http::Task<Status> list_targets(Gateway& /*gateway*/, Call& call) {
  const upstream::Catalog& catalog = *call.deployment->catalog;
  const TimePoint now = std::chrono::steady_clock::now();
  JsonWriter json(call.response().body);
  json.begin_object().key("object").string("list").key("data").begin_array();
  for (const auto& [name, target] : catalog.targets()) write_target(json, *target, now);
  json.end_array().key("providers").begin_array();
  for (const auto& provider : catalog.providers()) {
    const upstream::LaneQueue::Stats lanes = provider->lanes().stats(now);
    json.begin_object().key("provider").string(provider->config().name);
    write_lane(json, "interactive", lanes.interactive);
    write_lane(json, "batch", lanes.batch);
    json.end_object();
  }
  json.end_array().end_object();
  co_return Status{};
}

}  // namespace waybill::api
