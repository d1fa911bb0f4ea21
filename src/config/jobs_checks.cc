#include "config/jobs_checks.h"

#include <algorithm>
#include <array>
#include <string_view>
#include <unordered_map>
#include <utility>

#include <fmt/format.h>

#include "config/reader.h"
#include "config/secret_checks.h"

namespace waybill::config {
namespace {

constexpr std::string_view kDefaultQueue = "default";
constexpr std::size_t kLongestQueueName = 64;
constexpr std::size_t kMostQueues = 1000;  // each has its own metrics
constexpr std::size_t kMostSecrets = 8;    // a delivery has a signature of each
constexpr std::size_t kLongestSchedule = 100;

bool is_letter_or_digit(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
}

// It stands in paths of URLs ("/v1/queues/nightly"), as it is and without dots that lead elsewhere.
bool is_queue_name(std::string_view name) {
  return name.size() <= kLongestQueueName && !name.empty() && is_letter_or_digit(name.front()) &&
         std::ranges::all_of(
             name, [](char c) { return is_letter_or_digit(c) || c == '-' || c == '_' || c == '.'; });
}

bool is_host_pattern(std::string_view host) {
  if (host.starts_with("*.")) host.remove_prefix(2);
  return !host.empty() && host.find_first_of(" /*:@?#[]") == std::string_view::npos;
}

class JobsChecker : CheckContext {
 public:
  explicit JobsChecker(const CheckContext& context) : CheckContext(context) {}

  void check_all() {
    if (config_.store.path.empty() && lines_.contains("jobs") && !is_wrong("store.path"))
      warn("jobs", "jobs has no effect without store.path; say where they are kept (store: {path: jobs.db})");
    check_queues();
    check_webhooks();
  }

 private:
  [[nodiscard]] std::string key(std::string_view name) const { return fmt::format("{}.{}", path_, name); }
  void wrong(std::string_view name, std::string message) {
    error(line_of(key(name), at_->position), key(name), std::move(message));
  }

  void check_queues() {
    const std::vector<JobQueue>& queues = config_.jobs.queues;
    if (queues.size() > kMostQueues) {
      error("jobs.queues",
            fmt::format("jobs.queues has {} queues, more than the {} allowed; put what is told apart by "
                        "metadata into one queue",
                        queues.size(), kMostQueues));
    }
    std::unordered_map<std::string_view, const JobQueue*> first;
    for (std::size_t i = 0; i < queues.size(); ++i) {
      at_ = &queues[i];
      path_ = fmt::format("jobs.queues[{}]", i);
      check_name(first);
      check_backoff();
      check_external();
    }
  }

  void check_name(std::unordered_map<std::string_view, const JobQueue*>& first) {
    const std::string& name = at_->name;
    if (name.empty()) return;  // told when it was read
    if (!is_queue_name(name)) {
      wrong("name", fmt::format("{} is \"{}\", which is not a name for a queue; write 1 to {} letters (a-z, "
                                "A-Z), digits, \"-\", \"_\" and \".\", the first a letter or a digit",
                                key("name"), shown(name), kLongestQueueName));
    }
    const auto [before, added] = first.emplace(name, at_);
    if (!added) {
      wrong("name", fmt::format("the queue \"{}\" is there twice (first at {}); rename one", shown(name),
                                before->second->position.text()));
    }
  }

  void check_backoff() {
    if (at_->backoff.first <= at_->backoff.most) return;
    wrong(lines_.contains(key("backoff.first")) ? "backoff.first" : "backoff.most",
          fmt::format("{} is longer than {}; raise one or lower the other", key("backoff.first"),
                      key("backoff.most")));
  }

  // What only this server's own workers heed.
  void check_external() {
    if (at_->workers != QueueWorkers::kExternal) return;
    static constexpr std::array<std::string_view, 5> kOwn = {"concurrency", "requests_per_minute", "lane",
                                                             "timeout", "backoff"};
    for (const std::string_view name : kOwn) {
      if (!lines_.contains(key(name))) continue;
      warn(line_of(key(name)), key(name),
           fmt::format("{} has no effect, as the workers of the queue are external", key(name)));
    }
  }

  void check_webhooks() {
    const JobWebhooks& webhooks = config_.jobs.webhooks;
    check_secrets(*this, webhooks.secrets, "jobs.webhooks.secrets", "WEBHOOK_SECRET");
    if (webhooks.secrets.size() > kMostSecrets) {
      error("jobs.webhooks.secrets",
            fmt::format("jobs.webhooks.secrets has {} keys, and each of them signs; keep {} at most",
                        webhooks.secrets.size(), kMostSecrets));
    }
    for (const std::string& host : webhooks.allow_hosts) {
      if (is_host_pattern(host)) continue;
      error("jobs.webhooks.allow_hosts",
            fmt::format("jobs.webhooks.allow_hosts: \"{}\" is not a host; write hooks.example.com, or "
                        "*.example.com for all below it, without scheme, port and path",
                        shown(host)));
    }
    if (webhooks.schedule.size() > kLongestSchedule) {
      error("jobs.webhooks.schedule", fmt::format("jobs.webhooks.schedule has {} waits; keep {} at most",
                                                  webhooks.schedule.size(), kLongestSchedule));
    }
  }

  const JobQueue* at_ = nullptr;  // what is being checked,
  std::string path_;              // "jobs.queues[0]"
};

}  // namespace

void check_jobs(const CheckContext& context) { JobsChecker(context).check_all(); }

void complete_jobs(Jobs& jobs) {
  if (std::ranges::find(jobs.queues, kDefaultQueue, &JobQueue::name) != jobs.queues.end()) return;
  JobQueue queue;
  queue.name = kDefaultQueue;
  jobs.queues.insert(jobs.queues.begin(), std::move(queue));
}

}  // namespace waybill::config
