// Jobs: accepted when they are on disk, run by workers here or elsewhere, kept until somebody has their
// answer.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "config/jobs_config.h"
#include "http/event_loop.h"
#include "http/pending.h"
#include "http/task.h"
#include "jobs/hub.h"
#include "jobs/performer.h"
#include "store/store.h"
#include "store/writer.h"
#include "telemetry/telemetry.h"

namespace waybill::jobs {

// The queue of calls that their own connections make (store::Submit::running_until): their records stand here
// for who comes with the same Idempotency-Key. No worker takes from it, no configuration can name it, and
// what has ended in it is kept as long as keys are (jobs.idempotency_ttl).
inline constexpr std::string_view kCallQueue = "(calls)";

// The store's thread and readers, the hub, the workers of the queues that this server works on, and the sweep
// that does what time brings. Thread-safe. Coroutines are awaited on the loop that they are given.
class Service {
 public:
  // The references outlive it.
  Service(store::Store& store, const config::Store& settings, const config::Jobs& jobs,
          telemetry::Telemetry& telemetry);
  ~Service();

  // From then on jobs are run, on these loops. `performer` outlives stop().
  void start(Performer& performer, std::vector<http::EventLoop*> loops);
  // Other queues and limits from now on; what runs goes on.
  void configure(const config::Jobs& jobs);
  // Claims nothing more; waits until the deadline for what runs; takes back the rest, so that others can have
  // it. Returns whether nothing was left.
  bool drain(TimePoint deadline);
  // The first part of drain(), for whoever waits in turns: claims nothing more. Whether all has ended.
  void stop_claiming();
  [[nodiscard]] bool is_idle() const;
  // After drain() and while the loops still run.
  void stop();

  // A change of the store; done when the disk has it. kOverloaded, kStoreUnavailable, kShuttingDown.
  template <class C>
  [[nodiscard]] http::Task<Result<typename C::Reply>> commit(C command, http::EventLoop& loop) {
    http::Pending<Result<typename C::Reply>> pending;
    writer().commit(std::move(command), loop,
                    [&pending](Result<typename C::Reply> reply) { pending.set(std::move(reply)); });
    Result<typename C::Reply> reply = co_await pending.get();
    if (!reply) failed(reply.error());
    co_return reply;
  }
  // For who commits by writer(): the log says it, once.
  void failed(const Error& error);
  // `look(store)` on a thread for reading: `read(loop, [id](store::Store& from) { return from.find(id); })`.
  // kOverloaded when too much waits for these threads.
  template <class Look>
  [[nodiscard]] http::Task<std::invoke_result_t<Look&, store::Store&>> read(http::EventLoop& loop,
                                                                            Look look) {
    using Found = std::invoke_result_t<Look&, store::Store&>;
    http::Pending<Found> pending;
    auto work = [&pending, &loop, &look](store::Store& from) {
      Found found = look(from);
      loop.post([&pending, found = std::move(found)]() mutable { pending.set(std::move(found)); });
    };
    if (Status posted = on_reader(std::move(work)); !posted)
      co_return std::unexpected(std::move(posted.error()));
    Found found = co_await pending.get();
    co_return found;
  }

  // The queue of this name, as configured; null: there is none. Valid while it is held.
  [[nodiscard]] std::shared_ptr<const config::JobQueue> queue(std::string_view name) const;
  [[nodiscard]] std::vector<std::shared_ptr<const config::JobQueue>> queues() const;
  [[nodiscard]] std::shared_ptr<const config::Jobs> settings() const;

  [[nodiscard]] Hub& hub() noexcept;
  [[nodiscard]] store::Writer& writer() noexcept;
  // False while nothing can be written: /ready says so.
  [[nodiscard]] bool is_writable() const noexcept;

 private:
  [[nodiscard]] Status on_reader(std::move_only_function<void(store::Store&)> work);

  struct Impl;
  std::unique_ptr<Impl> impl_;
};

// Now, as the store counts time.
[[nodiscard]] store::Time store_now() noexcept;

}  // namespace waybill::jobs
