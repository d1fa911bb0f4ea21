// /v1/dead-letters: jobs that used up their receives, and their way back.
#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "api/endpoint.h"
#include "api/gateway.h"
#include "api/job_access.h"
#include "api/job_filter.h"
#include "api/job_result.h"
#include "api/job_wait.h"
#include "api/json_body.h"
#include "base/json_writer.h"

namespace waybill::api {
namespace {

constexpr std::int64_t kMostRedriven = 100'000;
constexpr std::size_t kMostIds = 1000, kAtOnce = 1000;
constexpr double kFastest = 100'000;                        // a second
constexpr Duration kStep = std::chrono::milliseconds(200);  // where there is a rate

struct RedriveRequest {
  store::Redrive command;
  std::vector<Uuid> ids;
  bool by_ids = false;
  double rate = 0;  // a second; 0: at once
};

Status read_ids(const JsonBody& body, RedriveRequest& wanted) {
  const boost::json::value* value = body.find("ids");
  if (value == nullptr) return {};
  const boost::json::array* array = value->if_array();
  if (array == nullptr || array->size() > kMostIds)
    return wrong_type("ids", "an array of at most 1000 ids of jobs", *value);
  wanted.by_ids = true;
  for (const boost::json::value& each : *array) {
    const boost::json::string* text = each.if_string();
    const std::optional<Uuid> id = text == nullptr ? std::nullopt : parse_uuid(std::string_view(*text));
    if (!id) return fail(ErrorCode::kInvalidInput, "\"ids\" must be ids of jobs.", "ids");
    wanted.ids.push_back(*id);
  }
  return {};
}

Result<RedriveRequest> read_redrive(const Call& call, const jobs::Service& service) {
  JsonBody body;
  const std::string& text = call.request().body;
  if (Status parsed = body.parse(text.empty() ? std::string_view("{}") : std::string_view(text)); !parsed)
    return std::unexpected(std::move(parsed.error()));
  if (Status known = body.check_fields({"queue", "error_code", "ids", "max", "rate_per_second", "dry_run"});
      !known)
    return std::unexpected(std::move(known.error()));
  RedriveRequest wanted;
  if (Status read = read_ids(body, wanted); !read) return std::unexpected(std::move(read.error()));
  const auto queue = body.text("queue"), code = body.text("error_code");
  if (!queue) return std::unexpected(queue.error());
  if (!code) return std::unexpected(code.error());
  if (*queue == jobs::kCallQueue) {
    return fail(ErrorCode::kInvalidInput,
                "No worker takes the records of calls that their own connections made; send the calls again.",
                "queue");
  }
  if (*queue && service.queue(**queue) == nullptr) {
    return fail(ErrorCode::kInvalidInput,
                fmt::format("The queue \"{}\" is not configured: nobody would run its jobs.", **queue),
                "queue");
  }
  if (*queue) wanted.command.queue = std::string(**queue);
  if (*code) wanted.command.error_code = std::string(**code);
  const auto max = body.integer("max", 1, kMostRedriven);
  if (!max) return std::unexpected(max.error());
  wanted.command.max = static_cast<std::size_t>(max->value_or(kAtOnce));
  const auto rate = body.number("rate_per_second", 0.1, kFastest);
  if (!rate) return std::unexpected(rate.error());
  wanted.rate = rate->value_or(0);
  const auto dry_run = body.flag("dry_run");
  if (!dry_run) return std::unexpected(dry_run.error());
  wanted.command.dry_run = dry_run->value_or(false);
  return wanted;
}

// Those of the ids that are dead letters; into `stranded` those of them whose queue is not configured.
http::Task<Result<std::vector<Uuid>>> dead_ones(jobs::Service& service, Call& call,
                                                const RedriveRequest& wanted, std::vector<Uuid>& stranded) {
  auto look = [&wanted, &service, &stranded](store::Store& from) -> Result<std::vector<Uuid>> {
    std::vector<Uuid> dead;
    for (const Uuid& id : wanted.ids) {
      Result<std::optional<store::Job>> job = from.find(id);
      if (!job) return std::unexpected(std::move(job.error()));
      const bool is_wanted =
          *job && (*job)->state == store::State::kDead && (*job)->queue != jobs::kCallQueue &&
          (!wanted.command.queue || (*job)->queue == *wanted.command.queue) &&
          (!wanted.command.error_code ||
           (!(*job)->errors.empty() && (*job)->errors.back().code == *wanted.command.error_code));
      if (!is_wanted) continue;
      if (service.queue((*job)->queue) == nullptr) {
        stranded.push_back(id);
      } else if (dead.size() < wanted.command.max) {
        dead.push_back(id);
      }
    }
    return dead;
  };
  Result<std::vector<Uuid>> dead = co_await service.read(call.exchange.loop(), look);
  co_return dead;
}

// Queue by queue where none is named, so that the records of calls (jobs::kCallQueue), which no worker takes,
// stay where they are.
http::Task<Result<std::vector<Uuid>>> redrive_by_filter(jobs::Service& service, Call& call,
                                                        const store::Redrive& wanted, std::size_t most) {
  std::vector<std::string> queues;
  if (wanted.queue) {
    queues.push_back(*wanted.queue);
  } else {
    for (const auto& each : service.queues()) queues.push_back(each->name);
  }
  std::vector<Uuid> done;
  for (std::size_t i = 0; i < queues.size() && done.size() < most; ++i) {
    store::Redrive command = wanted;
    command.queue = queues[i];
    command.max = most - done.size();
    Result<std::vector<Uuid>> some = co_await service.commit(std::move(command), call.exchange.loop());
    if (!some) co_return some;
    done.insert(done.end(), some->begin(), some->end());
  }
  co_return done;
}

// One step: up to `most` of them. Empties `ids` as it goes where they were named.
http::Task<Result<std::vector<Uuid>>> redrive_some(jobs::Service& service, Call& call,
                                                   const RedriveRequest& wanted, std::vector<Uuid>& ids,
                                                   std::size_t most) {
  if (!wanted.by_ids) {
    Result<std::vector<Uuid>> done = co_await redrive_by_filter(service, call, wanted.command, most);
    co_return done;
  }
  std::vector<Uuid> done;
  while (!ids.empty() && done.size() < most) {
    const store::Retry command = {.id = ids.back()};
    ids.pop_back();
    Result<store::Retry::Reply> reply = co_await service.commit(command, call.exchange.loop());
    if (!reply) co_return std::unexpected(std::move(reply.error()));
    if (reply->found && reply->before == store::State::kDead) done.push_back(command.id);
  }
  co_return done;
}

// All of them, no faster than the rate, as long as somebody waits for it.
http::Task<Result<std::vector<Uuid>>> redrive_all(Gateway& gateway, jobs::Service& service, Call& call,
                                                  const RedriveRequest& wanted, std::vector<Uuid> ids) {
  JobWait wait(gateway, call.exchange);
  const TimePoint begin = std::chrono::steady_clock::now();
  std::vector<Uuid> done;
  while (done.size() < wanted.command.max) {
    std::size_t most = std::min(kAtOnce, wanted.command.max - done.size());
    if (wanted.rate > 0) {
      const double due = wanted.rate * seconds(std::chrono::steady_clock::now() - begin + kStep);
      most = std::min(most, static_cast<std::size_t>(std::max(0.0, due - static_cast<double>(done.size()))));
    }
    if (most > 0) {
      Result<std::vector<Uuid>> some = co_await redrive_some(service, call, wanted, ids, most);
      if (!some) co_return std::unexpected(std::move(some.error()));
      done.insert(done.end(), some->begin(), some->end());
      if (some->size() < most) break;
    }
    if (wanted.rate == 0) continue;
    const JobWait::End end = co_await wait.wait(std::chrono::steady_clock::now() + kStep);
    if (end != JobWait::End::kTime) break;
  }
  co_return done;
}

}  // namespace

http::Task<Status> list_dead_letters(Gateway& gateway, Call& call) {
  Result<jobs::Service*> service = jobs_of(gateway);
  if (!service) co_return std::unexpected(std::move(service.error()));
  Result<store::JobFilter> filter = read_job_filter(call);
  if (!filter) co_return std::unexpected(std::move(filter.error()));
  filter->state = store::State::kDead;
  Status status = co_await list_jobs_of(**service, call, std::move(*filter));
  co_return status;
}

http::Task<Status> redrive(Gateway& gateway, Call& call) {
  Result<jobs::Service*> service = jobs_of(gateway);
  if (!service) co_return std::unexpected(std::move(service.error()));
  const Result<RedriveRequest> wanted = read_redrive(call, **service);
  if (!wanted) co_return std::unexpected(wanted.error());
  Result<std::vector<Uuid>> ids = std::vector<Uuid>();
  std::vector<Uuid> stranded;
  if (wanted->by_ids) ids = co_await dead_ones(**service, call, *wanted, stranded);
  if (!ids) co_return std::unexpected(std::move(ids.error()));
  if (!wanted->by_ids && wanted->command.dry_run) {
    ids = co_await redrive_by_filter(**service, call, wanted->command, wanted->command.max);
  } else if (!wanted->command.dry_run) {
    ids = co_await redrive_all(gateway, **service, call, *wanted, std::move(*ids));
  }
  if (!ids) co_return std::unexpected(std::move(ids.error()));
  JsonWriter json(call.response().body);
  json.begin_object().key("object").string("redrive").key("dry_run").boolean(wanted->command.dry_run);
  json.key("count").integer(static_cast<std::int64_t>(ids->size())).key("ids").begin_array();
  for (const Uuid& id : *ids) json.string(to_string(id));
  json.end_array();
  if (!stranded.empty()) {
    json.key("refused").begin_array();
    for (const Uuid& id : stranded)
      json.begin_object()
          .key("id")
          .string(to_string(id))
          .key("code")
          .string("queue_not_configured")
          .end_object();
    json.end_array();
  }
  json.end_object();
  co_return Status{};
}

}  // namespace waybill::api
