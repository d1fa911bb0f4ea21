// The one thread that writes to a store, and makes one transaction of all that waits; and another that
// flushes what was written, while the first goes on with what has come meanwhile.
#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <span>
#include <utility>

#include "base/executor.h"
#include "base/result.h"
#include "store/store.h"

namespace waybill::store {

struct WriterOptions {
  std::size_t max_waiting = 20'000;  // commands
  std::size_t max_batch = 512;       // commands of one transaction
  std::function<Time()> now = {};    // not given: the system's clock
  // On the writer's thread, after each transaction and before its replies.
  std::function<void(std::span<const Change>)> on_changes = {};
  // For metrics; likewise, where something was written. `length`: of the transaction and its flush.
  std::function<void(std::size_t commands, std::chrono::nanoseconds length)> on_commit = {};
};

// A command goes in, its reply comes back through the caller's executor when the disk has it. Thread-safe.
// The store outlives it.
class Writer {
 public:
  Writer(Store& store, WriterOptions options);
  ~Writer();  // stop()
  Writer(const Writer&) = delete;
  Writer& operator=(const Writer&) = delete;

  // `done` is called exactly once on `executor`: with the reply, or kOverloaded (too much waits: at once),
  // kStoreUnavailable, kShuttingDown.
  template <class C>
  void commit(C command, Executor& executor, std::move_only_function<void(Result<typename C::Reply>)> done) {
    enqueue(std::move(command), executor, [done = std::move(done)](Result<Reply> reply) mutable {
      if (!reply) return done(std::unexpected(std::move(reply.error())));
      done(take_reply<C>(std::move(*reply)));
    });
  }

  // False while commits fail.
  [[nodiscard]] bool is_writable() const noexcept;
  [[nodiscard]] std::size_t waiting() const;

  // Commits what waits, then takes no more.
  void stop();

 private:
  using Done = std::move_only_function<void(Result<Reply>)>;
  void enqueue(Command command, Executor& executor, Done done);

  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace waybill::store
