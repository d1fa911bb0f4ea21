// The news of jobs, for those who wait for them: long polls, event streams, WebSockets.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "base/uuid.h"
#include "http/event_loop.h"
#include "store/command.h"

namespace waybill::jobs {

// Thread-safe. Must outlive its subscriptions.
class Hub {
 public:
  using Notify = std::move_only_function<void(const store::Change&)>;

  // While it lives, `notify` runs on its loop for each change. Made and destroyed on the thread of the loop;
  // nothing runs after the destructor.
  class Subscription {
   public:
    Subscription() = default;
    Subscription(Subscription&& other) noexcept;
    Subscription& operator=(Subscription&& other) noexcept;
    ~Subscription();

   private:
    friend class Hub;
    struct Entry;
    std::shared_ptr<Entry> entry_;  // shared with news on their way
    Hub* hub_ = nullptr;
  };

  Hub();
  ~Hub();

  [[nodiscard]] Subscription watch(const Uuid& id, http::EventLoop& loop, Notify notify);
  // All jobs of a queue (empty: of all queues) and of a caller (empty: of all callers).
  [[nodiscard]] Subscription watch_all(std::string_view queue, std::string_view caller, http::EventLoop& loop,
                                       Notify notify);

  // Tells them. One piece of work for each loop, however many it concerns. On the writer's thread.
  void publish(std::span<const store::Change> changes);

  [[nodiscard]] std::size_t subscriptions() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace waybill::jobs
