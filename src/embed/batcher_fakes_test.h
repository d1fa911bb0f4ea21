// Fakes for the tests of the batcher.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <deque>
#include <functional>
#include <mutex>
#include <numeric>
#include <span>
#include <stdexcept>
#include <thread>
#include <vector>

#include "base/executor.h"
#include "embed/batcher.h"

namespace waybill::embed {

// What a fake "embedding" holds: the sum of the ids and their number, so that a mix-up between items shows.
inline std::vector<float> fake_embedding(std::span<const TokenId> ids) {
  return {static_cast<float>(std::accumulate(ids.begin(), ids.end(), 0)), static_cast<float>(ids.size())};
}

inline void fake_embeddings(const PackedBatch& batch, std::span<float> out) {
  for (std::size_t i = 0; i < batch.sequences(); ++i) {
    const auto ids = batch.ids.subspan(batch.offsets[i], batch.offsets[i + 1] - batch.offsets[i]);
    out[2 * i] = static_cast<float>(std::accumulate(ids.begin(), ids.end(), 0));
    out[2 * i + 1] = static_cast<float>(ids.size());
  }
}

// Calls a function of the test's choice, then answers with fake embeddings.
class FakeFunction final : public BatchFunction {
 public:
  explicit FakeFunction(std::function<void(unsigned, const PackedBatch&)> before = {})
      : before_(std::move(before)) {}
  [[nodiscard]] std::size_t dim() const noexcept override { return 2; }
  std::size_t run(unsigned thread, const PackedBatch& batch, std::span<void* const>,
                  std::span<float> out) override {
    if (before_) before_(thread, batch);
    fake_embeddings(batch, out);
    return batch.ids.size();
  }

 private:
  std::function<void(unsigned, const PackedBatch&)> before_;
};

// A function whose batches stay inside until the test lets them go, and which remembers what it was given.
class GatedFunction final : public BatchFunction {
 public:
  ~GatedFunction() override { open(); }
  [[nodiscard]] std::size_t dim() const noexcept override { return 2; }
  std::size_t run(unsigned, const PackedBatch& batch, std::span<void* const>, std::span<float> out) override {
    std::unique_lock lock(mutex_);
    std::vector<std::size_t> lengths;
    for (std::size_t i = 0; i < batch.sequences(); ++i)
      lengths.push_back(batch.offsets[i + 1] - batch.offsets[i]);
    batches_.push_back(std::move(lengths));
    changed_.notify_all();
    const std::size_t number = batches_.size();
    changed_.wait(lock, [&] { return open_ || passes_ >= number; });
    fake_embeddings(batch, out);
    return batch.ids.size();
  }

  // Returns when `count` batches have come in since the beginning.
  void wait_for_batches(std::size_t count) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return batches_.size() >= count; });
  }
  // Lets the oldest batch that is still held go on.
  void pass() {
    const std::lock_guard lock(mutex_);
    ++passes_;
    changed_.notify_all();
  }
  void open() {
    const std::lock_guard lock(mutex_);
    open_ = true;
    changed_.notify_all();
  }
  // The lengths of the sequences of each batch so far.
  [[nodiscard]] std::vector<std::vector<std::size_t>> batches() const {
    const std::lock_guard lock(mutex_);
    return batches_;
  }

 private:
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<std::vector<std::size_t>> batches_;
  std::size_t passes_ = 0;
  bool open_ = false;
};

// Keeps what is posted until the test runs it, or drops it.
class QueueExecutor final : public Executor {
 public:
  void post(std::move_only_function<void()> work) override {
    const std::lock_guard lock(mutex_);
    if (closed_) throw std::runtime_error("closed");
    queue_.push_back(std::move(work));
  }
  std::size_t run() {
    std::deque<std::move_only_function<void()>> work;
    {
      const std::lock_guard lock(mutex_);
      work.swap(queue_);
    }
    for (auto& w : work) w();
    return work.size();
  }
  void drop() {
    const std::lock_guard lock(mutex_);
    queue_.clear();
  }
  void close() {
    const std::lock_guard lock(mutex_);
    closed_ = true;
  }

 private:
  std::mutex mutex_;
  std::deque<std::move_only_function<void()>> queue_;
  bool closed_ = false;
};

template <class Condition>
void wait_until(Condition condition) {
  while (!condition()) std::this_thread::yield();
}

}  // namespace waybill::embed
