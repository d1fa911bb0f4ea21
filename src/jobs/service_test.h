// What tests of the service stand on: the real store in a folder of its own, a disk that fails when it is
// told to, loops, and work that does what the body of its job says.
#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <functional>
#include <future>
#include <map>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "base/temporary_folder_test.h"
#include "jobs/service.h"
#include "store/sqlite/sqlite_store.h"

namespace waybill::jobs {

// Hands on what the real store does, but for commits while it is broken, or those that renew leases.
class BreakableStore final : public store::Store {
 public:
  explicit BreakableStore(store::Store& to) : to_(to) {}

  std::atomic<bool> broken{false}, refuses_renewals{false};
  std::atomic<int> refused_renewals{0};

  Result<store::Committed> apply(std::span<const store::Command> commands, store::Time now) override {
    const auto renews = [](const store::Command& each) { return std::holds_alternative<store::Renew>(each); };
    if (refuses_renewals && std::ranges::any_of(commands, renews)) {
      ++refused_renewals;
      return fail(ErrorCode::kStoreUnavailable, "no renewals");
    }
    if (broken) return fail(ErrorCode::kStoreUnavailable, "the disk is full");
    return to_.apply(commands, now);
  }
  Status flush() override { return to_.flush(); }
  Result<std::optional<store::Job>> find(const Uuid& id) override { return to_.find(id); }
  Result<std::optional<std::string>> body(const Uuid& id) override { return to_.body(id); }
  Result<std::optional<store::JobResult>> result(const Uuid& id) override { return to_.result(id); }
  Result<store::Events> events(const Uuid& id, std::uint64_t from, std::size_t max) override {
    return to_.events(id, from, max);
  }
  Result<std::vector<store::Job>> list(const store::JobFilter& filter) override { return to_.list(filter); }
  Result<std::vector<store::Ending>> endings(std::uint64_t after, std::size_t limit) override {
    return to_.endings(after, limit);
  }
  Result<std::vector<store::Depth>> depths() override { return to_.depths(); }
  Result<std::vector<std::pair<std::string, std::string>>> remembered(std::string_view prefix) override {
    return to_.remembered(prefix);
  }
  Result<std::vector<store::QueueState>> queues() override { return to_.queues(); }
  Result<std::vector<store::DeliveryRecord>> deliveries(std::optional<Uuid> job, bool dead_only,
                                                        std::size_t limit) override {
    return to_.deliveries(job, dead_only, limit);
  }
  Result<store::StoreStats> stats() override { return to_.stats(); }

 private:
  store::Store& to_;
};

// Does what the body says, word by word: "begin" its call; "say WORD" as an event; "events TEXT"; "hold"
// until let_go(), or until it is cancelled; "linger" until let_go() whatever comes; "throw"; a number: the
// status to answer with.
class ScriptedPerformer final : public Performer {
 public:
  // How a job's work went, by its place among all: the order of their beginnings.
  struct Seen {
    Uuid id;
    std::string body;
    bool cancelled = false, refused = false, ended = false;
  };

  Duration retry_after{};

  http::Task<Performed> perform(Performance& performance) override;

  void let_go(const Uuid& id);
  [[nodiscard]] std::vector<Seen> seen() const {
    const std::lock_guard lock(mutex_);
    return seen_;
  }
  [[nodiscard]] std::size_t most_at_a_time() const {
    const std::lock_guard lock(mutex_);
    return most_;
  }
  [[nodiscard]] std::size_t running() const {
    const std::lock_guard lock(mutex_);
    return running_;
  }

 private:
  struct Held {
    http::EventLoop* loop;
    http::Pending<bool>* pending;
  };
  std::size_t enter(Performance& performance);
  void leave(std::size_t place, bool cancelled, bool refused);
  http::Task<> hold(Performance& performance, bool until_cancelled);

  mutable std::mutex mutex_;
  std::vector<Seen> seen_;
  std::multimap<Uuid, Held> held_;
  std::size_t running_ = 0, most_ = 0;
};

inline std::size_t ScriptedPerformer::enter(Performance& performance) {
  const std::lock_guard lock(mutex_);
  seen_.push_back({.id = performance.job().id, .body = std::string(performance.body())});
  most_ = std::max(most_, ++running_);
  return seen_.size() - 1;
}

inline void ScriptedPerformer::leave(std::size_t place, bool cancelled, bool refused) {
  const std::lock_guard lock(mutex_);
  --running_;
  seen_[place].cancelled = cancelled;
  seen_[place].refused = refused;
  seen_[place].ended = true;
}

inline http::Task<> ScriptedPerformer::hold(Performance& performance, bool until_cancelled) {
  http::Pending<bool> pending;
  {
    const std::lock_guard lock(mutex_);
    held_.emplace(performance.job().id, Held{&performance.loop(), &pending});
  }
  http::Cancellation unheard;
  http::Cancellation& heard = until_cancelled ? performance.cancellation() : unheard;
  const http::Cancellation::Listener listener(heard, [&pending] { pending.set(false); });
  (void)co_await pending.get();
  const std::lock_guard lock(mutex_);
  std::erase_if(held_, [&pending](const auto& each) { return each.second.pending == &pending; });
}

inline void ScriptedPerformer::let_go(const Uuid& id) {
  for (int i = 0; i < 30'000; ++i) {
    {
      const std::lock_guard lock(mutex_);
      const auto found = held_.find(id);
      if (found != held_.end()) {
        found->second.loop->post([pending = found->second.pending] { pending->set(true); });
        held_.erase(found);
        return;
      }
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  ADD_FAILURE() << "the job does not hold";
}

inline http::Task<Performed> ScriptedPerformer::perform(Performance& performance) {
  const std::size_t place = enter(performance);
  Performed performed;
  bool refused = false;
  std::string script(performance.body());
  while (!script.empty() && !refused) {
    const std::size_t end = std::min(script.find(' '), script.size());
    const std::string word = script.substr(0, end);
    script.erase(0, end + 1);
    if (word == "begin") {
      const Status began = co_await performance.call_begins();
      refused = !began;
      performed.called = began.has_value();
    } else if (word == "say") {
      const std::size_t after = std::min(script.find(' '), script.size());
      performance.events(script.substr(0, after));
      script.erase(0, after + 1);
    } else if (word == "events") {
      performance.events(script);
      script.clear();
      performed.status = 200;
    } else if (word == "hold" || word == "linger") {
      co_await hold(performance, word == "hold");
      if (word == "hold" && performance.cancellation().requested()) refused = true;
    } else if (word == "throw") {
      leave(place, false, false);
      throw std::runtime_error("told to");
    } else {
      performed.status = static_cast<unsigned>(std::stoul(word));
      performed.content_type = "application/json";
      performed.body = "{\"said\":" + word + "}";
      performed.facts = "{\"model\":\"m\"}";
      performed.retry_after = retry_after;
    }
  }
  leave(place, performance.cancellation().requested(), refused);
  if (refused) {
    performed.status = performed.called ? 499 : 503;
    performed.body.clear();
  }
  co_return performed;
}

class ServiceTest : public testing::Test {
 protected:
  ServiceTest() {
    queue_.name = "q";
    queue_.backoff = {.first = std::chrono::milliseconds(1), .most = std::chrono::milliseconds(2)};
    auto telemetry = telemetry::Telemetry::start({.log = {.level = telemetry::Level::kOff}}, clock_);
    EXPECT_TRUE(telemetry);
    telemetry_ = std::move(*telemetry);
    for (unsigned i = 0; i < 2; ++i) {
      loops_.push_back(std::make_unique<http::EventLoop>(i, http::EventLoopHooks{}));
      loops_.back()->start();
    }
  }
  ~ServiceTest() override {
    close();
    for (const auto& loop : loops_) loop->stop();
  }

  // With `queue_`, and what else there is in `jobs_`.
  void open() {
    store::sqlite::SqliteOptions options;
    options.path = folder_.path() / "jobs.db";
    auto opened = store::sqlite::open_sqlite_store(options);
    ASSERT_TRUE(opened) << opened.error().message;
    real_ = std::move(*opened);
    store_ = std::make_unique<BreakableStore>(*real_);
    config::Jobs jobs = jobs_;
    jobs.queues.push_back(queue_);
    service_ = std::make_unique<Service>(*store_, config::Store{}, jobs, *telemetry_);
  }
  void start() {
    std::vector<http::EventLoop*> loops;
    for (const auto& loop : loops_) loops.push_back(loop.get());
    service_->start(performer_, loops);
  }
  void open_and_start() {
    open();
    start();
  }
  // As a process does that is killed: what runs is not settled. Its work must not be waiting.
  void close() {
    if (service_ != nullptr) service_->stop();
    service_.reset();
    store_.reset();
    real_.reset();
  }

  template <class C>
  Result<typename C::Reply> commit(C command) {
    std::promise<Result<typename C::Reply>> promise;
    service_->writer().commit(std::move(command), inline_, [&promise](Result<typename C::Reply> reply) {
      promise.set_value(std::move(reply));
    });
    return promise.get_future().get();
  }
  Uuid submit(std::string body, std::function<void(store::Submit&)> change = {}) {
    store::Submit submit;
    submit.queue = "q";
    submit.endpoint = "/v1/chat/completions";
    submit.body = std::move(body);
    if (change) change(submit);
    const auto reply = commit(std::move(submit));
    EXPECT_TRUE(reply) << reply.error().message;
    return reply ? reply->id : Uuid{};
  }
  store::Job job(const Uuid& id) {
    auto found = store_->find(id);
    EXPECT_TRUE(found && *found);
    return found && *found ? std::move(**found) : store::Job{};
  }
  // False, and a failure, when it does not come to be in a time that is far longer than it takes.
  bool eventually(const std::function<bool()>& is_so) {
    for (int i = 0; i < 6000; ++i) {
      if (is_so()) return true;
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
    ADD_FAILURE() << "it never came to be";
    return false;
  }
  bool becomes(const Uuid& id, store::State state) {
    const bool became = eventually([&] { return job(id).state == state; });
    EXPECT_TRUE(became) << to_string(job(id).state) << " and not " << to_string(state);
    return became;
  }
  // On the first loop, to its end.
  void on_loop(const std::function<void()>& work) {
    std::promise<void> done;
    loops_[0]->post([&] {
      work();
      done.set_value();
    });
    done.get_future().wait();
  }
  // The value of a series; not there: -1.
  double metric(const std::string& series) {
    const std::string all = "\n" + telemetry_->registry().expose(telemetry::Exposition::kPrometheusText);
    const std::size_t at = all.find("\n" + series + " ");
    return at == std::string::npos ? -1 : std::stod(all.substr(at + series.size() + 2));
  }

  TemporaryFolder folder_;
  SteadyClock clock_;
  InlineExecutor inline_;
  std::unique_ptr<telemetry::Telemetry> telemetry_;
  std::vector<std::unique_ptr<http::EventLoop>> loops_;
  ScriptedPerformer performer_;
  config::JobQueue queue_;
  config::Jobs jobs_;
  std::unique_ptr<store::Store> real_;
  std::unique_ptr<BreakableStore> store_;
  std::unique_ptr<Service> service_;
};

}  // namespace waybill::jobs
