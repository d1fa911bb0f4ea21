#include "api/job_listener.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include <boost/json/array.hpp>
#include <boost/json/value.hpp>
#include <fmt/format.h>

#include "api/job_json.h"
#include "http/deadline.h"

namespace waybill::api {
namespace {

constexpr std::size_t kMostItems = 4 * JobListener::kMostJobs;
constexpr std::size_t kAtOnce = 64;  // jobs that are looked up together
constexpr std::size_t kPage = 500;   // endings
constexpr std::size_t kEnoughUntaken = 256U
                                       << 10;  // bytes that the client has not taken: no more is read for it
constexpr std::uint64_t kMostResumed = 100'000;
constexpr Duration kLookForRoom = std::chrono::milliseconds(20);
constexpr Duration kLookAgain = std::chrono::milliseconds(200);  // where the store could not be read
constexpr Duration kForEver = std::chrono::hours(24);

}  // namespace

JobListener::JobListener(jobs::Service& service, http::EventLoop& loop, http::WebSocket& socket,
                         const std::string* caller)
    : service_(service),
      loop_(loop),
      socket_(socket),
      sees_all_(caller == nullptr),
      caller_(caller == nullptr ? std::string() : *caller) {}

JobListener::~JobListener() = default;

void JobListener::push(Item item) {
  if (items_.size() >= kMostItems) {
    socket_.close(http::close_code::kTryAgainLater, "more happens than is read");
    return;
  }
  items_.push_back(std::move(item));
  // Not at once: whoever calls this may be in the middle of something.
  if (waiting_) loop_.post([waiting = waiting_] { waiting->set(true); });
}

void JobListener::push_text(std::string text) { push({.kind = Item::Kind::kText, .text = std::move(text)}); }

void JobListener::push_error(std::string_view code, std::string_view message, std::string_view field) {
  std::string text;
  JsonWriter json(text);
  json.begin_object().key("type").string("error").key("code").string(code).key("message").string(message);
  if (!field.empty()) json.key("field").string(field);
  json.end_object();
  push_text(std::move(text));
}

void JobListener::take(const http::WebSocket::Message& message) {
  const Status taken = message.text ? take_text(message.data)
                                    : fail(ErrorCode::kInvalidInput, "Messages are texts: JSON objects.");
  if (!taken) push_error("invalid_message", taken.error().message, taken.error().field);
}

Status JobListener::take_text(std::string_view text) {
  JsonBody body;
  if (Status parsed = body.parse(text); !parsed) return parsed;
  const auto type = body.text("type");
  if (!type) return std::unexpected(type.error());
  if (*type == "subscribe") return subscribe(body);
  if (*type == "unsubscribe") return unsubscribe(body);
  if (*type == "ping") {
    push_text(R"({"type":"pong"})");
    return {};
  }
  if (*type == "resume") {
    if (Status known = body.check_fields({"type", "cursor"}); !known) return known;
    const auto cursor = body.integer("cursor", 0, INT64_MAX);
    if (!cursor) return std::unexpected(cursor.error());
    if (!*cursor) return missing_field("cursor", "the cursor of the last message");
    push({.kind = Item::Kind::kResume, .number = static_cast<std::uint64_t>(**cursor)});
    return {};
  }
  return fail(ErrorCode::kInvalidInput, "\"type\" must be subscribe, unsubscribe, resume or ping.", "type");
}

// Empty where there are none.
Result<std::vector<Uuid>> JobListener::read_ids(const JsonBody& body) const {
  std::vector<Uuid> ids;
  const boost::json::value* value = body.find("jobs");
  if (value == nullptr) return ids;
  const boost::json::array* array = value->if_array();
  if (array == nullptr) return wrong_type("jobs", "an array of ids of jobs", *value);
  for (const boost::json::value& each : *array) {
    const boost::json::string* text = each.if_string();
    const std::optional<Uuid> id = text == nullptr ? std::nullopt : parse_uuid(std::string_view(*text));
    if (!id) return fail(ErrorCode::kInvalidInput, "\"jobs\" must be ids of jobs.", "jobs");
    ids.push_back(*id);
  }
  return ids;
}

void JobListener::watch_all(const std::string& queue) {
  if (queues_.contains(queue)) return;
  queues_.emplace(queue, service_.hub().watch_all(queue, caller_, loop_, [this](const store::Change& change) {
    heard(change, false);
  }));
}

Status JobListener::subscribe(const JsonBody& body) {
  if (Status known = body.check_fields({"type", "jobs", "queue", "all"}); !known) return known;
  Result<std::vector<Uuid>> ids = read_ids(body);
  if (!ids) return std::unexpected(std::move(ids.error()));
  const auto queue = body.text("queue");
  if (!queue) return std::unexpected(queue.error());
  const auto all = body.flag("all");
  if (!all) return std::unexpected(all.error());
  std::string members;
  if (all->value_or(false)) {
    watch_all({});
    members = R"("all":true)";
  } else if (*queue) {
    const std::string name(**queue);
    if (name.empty() || (name != jobs::kCallQueue && service_.queue(name) == nullptr))
      return fail(ErrorCode::kNotFound, fmt::format("There is no queue \"{}\".", name.substr(0, 100)),
                  "queue");
    watch_all(name);
    members = R"("queue":)";
    JsonWriter(members).string(name);
  } else if (!ids->empty()) {
    if (jobs_.size() + ids->size() > kMostJobs) {
      return fail(
          ErrorCode::kInvalidInput,
          fmt::format("A connection can listen to {} jobs by their ids; listen to a queue, or to all.",
                      kMostJobs),
          "jobs");
    }
    members = fmt::format(R"("jobs":{})", ids->size());
  } else {
    return missing_field("jobs", "what to listen to: \"jobs\", \"queue\" or \"all\"");
  }
  push({.kind = Item::Kind::kBegin, .text = std::move(members)});
  if (all->value_or(false) || *queue) return {};
  for (const Uuid& id : *ids) {
    // Before it is looked up: nothing that happens after that is missed.
    const auto [entry, added] = jobs_.try_emplace(id);
    if (added) {
      entry->second =
          service_.hub().watch(id, loop_, [this](const store::Change& change) { heard(change, true); });
    }
    push({.kind = Item::Kind::kState, .id = id});
  }
  return {};
}

Status JobListener::unsubscribe(const JsonBody& body) {
  if (Status known = body.check_fields({"type", "jobs", "queue", "all"}); !known) return known;
  const Result<std::vector<Uuid>> ids = read_ids(body);
  if (!ids) return std::unexpected(ids.error());
  const auto queue = body.text("queue");
  if (!queue) return std::unexpected(queue.error());
  const auto all = body.flag("all");
  if (!all) return std::unexpected(all.error());
  for (const Uuid& id : *ids) jobs_.erase(id);
  if (*queue) queues_.erase(std::string(**queue));
  if (all->value_or(false)) queues_.erase(std::string());
  push_text(R"({"type":"unsubscribed"})");
  return {};
}

void JobListener::heard(const store::Change& change, bool by_id) {
  if (change.events || change.removed || !may_hear(change.caller)) return;
  if (!by_id && !is_asked_for(change.queue)) return;
  if (!is_terminal(change.state)) {
    if (changed_.insert(change.id).second) push({.kind = Item::Kind::kChange, .id = change.id});
    return;
  }
  // They come in their order; one that is subscribed to twice comes twice.
  if (change.result <= heard_) return;
  heard_ = change.result;
  push({.kind = Item::Kind::kEnding, .id = change.id, .number = change.result, .by_id = by_id});
}

void JobListener::stop() {
  stopping_ = true;
  if (waiting_) loop_.post([waiting = waiting_] { waiting->set(true); });
}

http::Task<> JobListener::wait(Duration time) {
  auto waiting = std::make_shared<http::Pending<bool>>();
  waiting_ = waiting;
  {
    http::Deadline tick(loop_, [waiting] { waiting->set(false); });
    tick.set(std::chrono::steady_clock::now() + time);
    (void)co_await waiting->get();
  }
  waiting_ = nullptr;
}

http::Task<> JobListener::tell() {
  while (!is_over()) {
    if (items_.empty()) {
      co_await wait(kForEver);
      continue;
    }
    if (socket_.buffered() > kEnoughUntaken) {
      co_await wait(kLookForRoom);
      continue;
    }
    switch (items_.front().kind) {
      case Item::Kind::kText:
        socket_.send(items_.front().text);
        items_.pop_front();
        break;
      case Item::Kind::kBegin: {
        Item item = std::move(items_.front());
        items_.pop_front();
        co_await begin(std::move(item));
        break;
      }
      case Item::Kind::kResume: {
        const std::uint64_t after = items_.front().number;
        items_.pop_front();
        co_await resume(after);
        break;
      }
      default:
        co_await tell_jobs();
        break;
    }
  }
}

http::Task<Result<JobListener::Jobs>> JobListener::look_up(const std::vector<Uuid>& ids) {
  auto look = [&ids](store::Store& from) -> Result<Jobs> {
    Jobs found;
    for (const Uuid& id : ids) {
      Result<std::optional<store::Job>> job = from.find(id);
      if (!job) return std::unexpected(std::move(job.error()));
      found.push_back(std::move(*job));
    }
    return found;
  };
  Result<Jobs> found = co_await service_.read(loop_, look);
  co_return found;
}

http::Task<> JobListener::tell_jobs() {
  std::vector<Uuid> ids;
  for (const Item& item : items_) {
    const bool of_job = item.kind == Item::Kind::kState || item.kind == Item::Kind::kChange ||
                        item.kind == Item::Kind::kEnding;
    if (!of_job || ids.size() == kAtOnce) break;
    ids.push_back(item.id);
    // What changes from now on is news again.
    if (item.kind == Item::Kind::kChange) changed_.erase(item.id);
  }
  Result<Jobs> found = co_await look_up(ids);
  if (!found) {  // the items are still there
    co_await wait(kLookAgain);
    co_return;
  }
  for (const std::optional<store::Job>& job : *found) {
    const Item item = std::move(items_.front());
    items_.pop_front();
    tell_job(item, job);
  }
}

void JobListener::tell_job(const Item& item, const std::optional<store::Job>& job) {
  switch (item.kind) {
    case Item::Kind::kState:
      if (!jobs_.contains(item.id)) return;  // unsubscribed meanwhile
      if (!job || !may_hear(job->caller)) {
        jobs_.erase(item.id);
        std::string text;
        JsonWriter json(text);
        json.begin_object().key("type").string("error").key("code").string("not_found").key("message");
        json.string("There is no such job, or it is another caller's.").key("job").string(to_string(item.id));
        json.end_object();
        socket_.send(text);
        return;
      }
      if (is_terminal(job->state)) jobs_.erase(item.id);
      return send_job(*job);
    case Item::Kind::kChange:
      if (job && !is_terminal(job->state)) send_job(*job);
      return;
    case Item::Kind::kEnding:
      if (item.by_id ? !jobs_.contains(item.id) : item.number <= base_) return;  // told already
      told_ = std::max(told_, item.number);
      if (job) send_job(*job);
      if (!job || is_terminal(job->state)) jobs_.erase(item.id);
      return;
    default:
      return;
  }
}

void JobListener::send_job(const store::Job& job) {
  std::string text;
  JsonWriter json(text);
  json.begin_object()
      .key("type")
      .string("job")
      .key("cursor")
      .integer(static_cast<std::int64_t>(told_))
      .key("job");
  write_job(json, job);
  json.end_object();
  socket_.send(text);
}

http::Task<> JobListener::begin(Item item) {
  while (!began_ && !is_over()) {
    auto look = [](store::Store& from) { return from.stats(); };
    Result<store::StoreStats> stats = co_await service_.read(loop_, look);
    if (stats) {
      began_ = true;
      base_ = told_ = stats->last_ending;
    } else {
      co_await wait(kLookAgain);
    }
  }
  socket_.send(fmt::format(R"({{"type":"subscribed","cursor":{},{}}})", told_, item.text));
}

bool JobListener::listens_to(const store::Ending& ending) const {
  if (!may_hear(ending.caller)) return false;
  return jobs_.contains(ending.id) || queues_.contains(ending.queue) ||
         (queues_.contains("") && is_asked_for(ending.queue));
}

// All endings after that one which it listens to, up to the latest; those that come later are news.
http::Task<> JobListener::resume(std::uint64_t after) {
  struct Page {
    std::uint64_t last = 0;
    std::vector<store::Ending> endings;
  };
  std::uint64_t until = 0, kept = 0;
  for (std::uint64_t from = after;;) {
    auto look = [from, until](store::Store& store) -> Result<Page> {
      Page page;
      if (until == 0) {
        Result<store::StoreStats> stats = store.stats();
        if (!stats) return std::unexpected(std::move(stats.error()));
        page.last = stats->last_ending;
        if (page.last < from || page.last - from > kMostResumed) return page;
      }
      Result<std::vector<store::Ending>> endings = store.endings(from, kPage);
      if (!endings) return std::unexpected(std::move(endings.error()));
      page.endings = std::move(*endings);
      return page;
    };
    Result<Page> page = co_await service_.read(loop_, look);
    if (is_over()) co_return;
    if (!page) {
      co_await wait(kLookAgain);
      continue;
    }
    if (until == 0) {
      until = page->last;
      if (until < after) {
        push_error("unknown_cursor",
                   "The store has no ending of that number: it is not the one that the cursor is of.");
        co_return;
      }
      if (until - after > kMostResumed) {
        push_error(
            "cursor_too_old",
            "More than 100000 jobs have ended since; list them, and listen from the present cursor on.");
        co_return;
      }
    }
    std::erase_if(page->endings, [until](const store::Ending& each) { return each.number > until; });
    kept += page->endings.size();
    if (page->endings.empty()) break;
    from = page->endings.back().number;
    const bool goes_on = co_await resume_page(std::move(page->endings));
    if (!goes_on) co_return;
    if (from >= until) break;
  }
  began_ = true;
  base_ = std::max(base_, until);
  told_ = std::max(told_, until);
  socket_.send(fmt::format(R"({{"type":"resumed","cursor":{},"missing":{}}})", told_, until - after - kept));
}

http::Task<bool> JobListener::resume_page(std::vector<store::Ending> page) {
  std::erase_if(page, [this](const store::Ending& each) { return !listens_to(each); });
  for (std::size_t begin = 0; begin < page.size(); begin += kAtOnce) {
    std::vector<Uuid> ids;
    for (std::size_t i = begin; i < std::min(page.size(), begin + kAtOnce); ++i) ids.push_back(page[i].id);
    Result<Jobs> found = co_await look_up(ids);
    while (!found && !is_over()) {
      co_await wait(kLookAgain);
      found = co_await look_up(ids);
    }
    while (socket_.buffered() > kEnoughUntaken && !is_over()) co_await wait(kLookForRoom);
    if (is_over()) co_return false;
    for (std::size_t i = 0; i < found->size(); ++i) {
      told_ = std::max(told_, page[begin + i].number);
      const std::optional<store::Job>& job = (*found)[i];
      if (!job) continue;
      send_job(*job);
      if (is_terminal(job->state)) jobs_.erase(job->id);
    }
  }
  co_return true;
}

}  // namespace waybill::api
