// One who listens to jobs on a WebSocket: what it asked for, and what of that is yet to be told.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "api/json_body.h"
#include "base/json_writer.h"
#include "base/uuid.h"
#include "http/event_loop.h"
#include "http/pending.h"
#include "http/task.h"
#include "http/websocket.h"
#include "jobs/service.h"

namespace waybill::api {

// Messages are taken at once; answers, and what happens to jobs, are told one after the other by tell(), so
// that whatever has the cursor N comes after all that was to be told of the endings up to N. A job is told as
// it stands when its turn comes: states that pass quickly may be left out, an ending never. On the thread of
// the loop.
class JobListener {
 public:
  static constexpr std::size_t kMostJobs = 10'000;  // subscribed to by their ids

  // `caller`: whose jobs it may hear of; null: all. The references outlive it.
  JobListener(jobs::Service& service, http::EventLoop& loop, http::WebSocket& socket,
              const std::string* caller);
  ~JobListener();
  JobListener(const JobListener&) = delete;
  JobListener& operator=(const JobListener&) = delete;

  // A message of the client.
  void take(const http::WebSocket::Message& message);
  // Until stop(); the socket must be there until it has returned.
  http::Task<> tell();
  void stop();

 private:
  struct IdHash {
    std::size_t operator()(const Uuid& id) const noexcept { return id.low(); }
  };
  struct Item {
    enum class Kind : std::uint8_t {
      kText,    // an answer as it is
      kBegin,   // a subscription's answer, with the cursor
      kState,   // a job as it stands, for who just subscribed to it
      kChange,  // it is in another state; an end is told by the next
      kEnding,
      kResume,
    } kind = Kind::kText;
    Uuid id{};
    std::uint64_t number = 0;  // kEnding: which; kResume: after which
    bool by_id = false;        // kEnding: it was subscribed to by its id
    std::string text{};        // kText; kBegin: the members after the cursor
  };
  using Jobs = std::vector<std::optional<store::Job>>;

  Status take_text(std::string_view text);
  Status subscribe(const JsonBody& body);
  Status unsubscribe(const JsonBody& body);
  Result<std::vector<Uuid>> read_ids(const JsonBody& body) const;
  void watch_all(const std::string& queue);
  void heard(const store::Change& change, bool by_id);
  void push(Item item);
  void push_text(std::string text);
  void push_error(std::string_view code, std::string_view message, std::string_view field = {});

  http::Task<> wait(Duration time);
  http::Task<Result<Jobs>> look_up(const std::vector<Uuid>& ids);
  http::Task<> tell_jobs();
  void tell_job(const Item& item, const std::optional<store::Job>& job);
  http::Task<> begin(Item item);
  http::Task<> resume(std::uint64_t after);
  http::Task<bool> resume_page(std::vector<store::Ending> page);
  void send_job(const store::Job& job);
  [[nodiscard]] bool may_hear(std::string_view owner) const noexcept { return sees_all_ || owner == caller_; }
  // "all" are the jobs; the records of calls are told of where their queue is named.
  [[nodiscard]] bool is_asked_for(const std::string& queue) const {
    return queue != jobs::kCallQueue || queues_.contains(queue);
  }
  [[nodiscard]] bool listens_to(const store::Ending& ending) const;
  [[nodiscard]] bool is_over() const noexcept { return stopping_ || !socket_.is_open(); }

  jobs::Service& service_;
  http::EventLoop& loop_;
  http::WebSocket& socket_;
  const bool sees_all_;
  const std::string caller_;

  std::unordered_map<Uuid, jobs::Hub::Subscription, IdHash> jobs_;
  std::map<std::string, jobs::Hub::Subscription, std::less<>> queues_;  // "": all of them
  std::deque<Item> items_;
  std::unordered_set<Uuid, IdHash> changed_;  // those of items_ that are kChange
  bool began_ = false;                        // base_ is known
  std::uint64_t base_ = 0;                    // endings up to here are told, or were before it listened
  std::uint64_t told_ = 0;                    // the cursor
  std::uint64_t heard_ = 0;                   // the latest ending in items_
  bool stopping_ = false;
  std::shared_ptr<http::Pending<bool>> waiting_;  // shared with what wakes it
};

}  // namespace waybill::api
