// /v1/queues: how many jobs wait, run and have ended in each; paused and resumed.
#include <algorithm>
#include <array>
#include <map>
#include <utility>

#include "api/endpoint.h"
#include "api/gateway.h"
#include "api/job_access.h"
#include "api/job_json.h"
#include "api/job_reader.h"
#include "base/json_writer.h"

namespace waybill::api {
namespace {

using store::State;

struct QueueLook {
  std::array<std::uint64_t, store::kStates> jobs{};
  bool paused = false;
  store::Time oldest = store::kNever;

  [[nodiscard]] std::uint64_t of(State state) const noexcept { return jobs[static_cast<std::size_t>(state)]; }
};
using QueueLooks = std::map<std::string, QueueLook, std::less<>>;

// Of all callers, or of one.
Result<QueueLooks> look_at_queues(store::Store& from, const std::optional<std::string>& caller) {
  QueueLooks looks;
  Result<std::vector<store::Depth>> depths = from.depths();
  if (!depths) return std::unexpected(std::move(depths.error()));
  for (const store::Depth& each : *depths) {
    if (caller && each.caller != *caller) continue;
    looks[each.queue].jobs[static_cast<std::size_t>(each.state)] += each.jobs;
  }
  Result<std::vector<store::QueueState>> states = from.queues();
  if (!states) return std::unexpected(std::move(states.error()));
  for (const store::QueueState& each : *states) {
    looks[each.name].paused = each.paused;
    looks[each.name].oldest = each.oldest;
  }
  return looks;
}

http::Task<Result<QueueLooks>> read_queues(jobs::Service& service, Call& call, bool all) {
  std::optional<std::string> caller;
  if (!all) caller = call.caller->name;
  auto look = [&caller](store::Store& from) { return look_at_queues(from, caller); };
  Result<QueueLooks> looks = co_await service.read(call.exchange.loop(), look);
  co_return looks;
}

// `queue` null: it holds jobs, and the configuration does not have it.
void write_queue(JsonWriter& json, std::string_view name, const config::JobQueue* queue,
                 const QueueLook& look) {
  json.begin_object().key("name").string(name).key("object").string("queue");
  json.key("configured").boolean(queue != nullptr);
  json.key("paused").boolean(look.paused);
  if (queue != nullptr) {
    json.key("workers").string(queue->workers == config::QueueWorkers::kServer ? "server" : "external");
    json.key("concurrency").integer(static_cast<std::int64_t>(queue->concurrency));
    json.key("max_depth").integer(static_cast<std::int64_t>(queue->max_depth));
  }
  json.key("in_flight").integer(static_cast<std::int64_t>(look.of(State::kRunning)));
  json.key("oldest_age")
      .number(look.oldest == store::kNever
                  ? 0
                  : std::max(0.0, static_cast<double>(jobs::store_now() - look.oldest) * 1e-6));
  json.key("depth").begin_object();
  for (std::size_t state = 0; state < store::kStates; ++state) {
    json.key(to_string(static_cast<State>(state)));
    json.integer(static_cast<std::int64_t>(look.jobs[state]));
  }
  json.end_object().end_object();
}

// The queue in the path, and how it is.
http::Task<Status> answer_queue(jobs::Service& service, Call& call,
                                std::shared_ptr<const config::JobQueue> queue) {
  Result<QueueLooks> looks = co_await read_queues(service, call, sees_all(call));
  if (!looks) co_return std::unexpected(std::move(looks.error()));
  JsonWriter json(call.response().body);
  write_queue(json, queue->name, queue.get(), (*looks)[queue->name]);
  co_return Status{};
}

http::Task<Status> set_paused(Gateway& gateway, Call& call, bool paused) {
  Result<jobs::Service*> service = jobs_of(gateway);
  if (!service) co_return std::unexpected(std::move(service.error()));
  auto queue = find_queue(path_argument(call), **service);
  if (!queue) co_return std::unexpected(std::move(queue.error()));
  store::Pause command = {.queue = (*queue)->name, .paused = paused};
  Result<bool> done = co_await (*service)->commit(std::move(command), call.exchange.loop());
  if (!done) co_return std::unexpected(std::move(done.error()));
  Status answered = co_await answer_queue(**service, call, *queue);
  co_return answered;
}

}  // namespace

http::Task<Status> list_queues(Gateway& gateway, Call& call) {
  Result<jobs::Service*> service = jobs_of(gateway);
  if (!service) co_return std::unexpected(std::move(service.error()));
  Result<QueueLooks> looks = co_await read_queues(**service, call, sees_all(call));
  if (!looks) co_return std::unexpected(std::move(looks.error()));
  JsonWriter json(call.response().body);
  json.begin_object().key("object").string("list").key("data").begin_array();
  for (const auto& each : (*service)->queues()) {
    write_queue(json, each->name, each.get(), (*looks)[each->name]);
    looks->erase(each->name);
  }
  for (const auto& [name, look] : *looks) {
    const bool is_empty = std::ranges::all_of(look.jobs, [](std::uint64_t jobs) { return jobs == 0; });
    if (!is_empty && name != jobs::kCallQueue) write_queue(json, name, nullptr, look);
  }
  json.end_array().end_object();
  co_return Status{};
}

http::Task<Status> find_queue(Gateway& gateway, Call& call) {
  Result<jobs::Service*> service = jobs_of(gateway);
  if (!service) co_return std::unexpected(std::move(service.error()));
  auto queue = find_queue(path_argument(call), **service);
  if (!queue) co_return std::unexpected(std::move(queue.error()));
  Status answered = co_await answer_queue(**service, call, *queue);
  co_return answered;
}

http::Task<Status> pause_queue(Gateway& gateway, Call& call) {
  Status status = co_await set_paused(gateway, call, true);
  co_return status;
}
http::Task<Status> resume_queue(Gateway& gateway, Call& call) {
  Status status = co_await set_paused(gateway, call, false);
  co_return status;
}

// One number, for autoscalers: what could be worked on now. Of all callers, whoever asks.
http::Task<Status> scale_queue(Gateway& gateway, Call& call) {
  Result<jobs::Service*> service = jobs_of(gateway);
  if (!service) co_return std::unexpected(std::move(service.error()));
  auto queue = find_queue(path_argument(call), **service);
  if (!queue) co_return std::unexpected(std::move(queue.error()));
  Result<QueueLooks> looks = co_await read_queues(**service, call, true);
  if (!looks) co_return std::unexpected(std::move(looks.error()));
  const QueueLook& look = (*looks)[(*queue)->name];
  JsonWriter json(call.response().body);
  json.begin_object().key("value");
  json.integer(static_cast<std::int64_t>(look.of(State::kQueued) + look.of(State::kRunning))).end_object();
  co_return Status{};
}

}  // namespace waybill::api
