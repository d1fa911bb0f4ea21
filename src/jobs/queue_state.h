// How much of one queue may be claimed, and when. Time and chance are given.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "base/clock.h"
#include "base/token_bucket.h"
#include "config/jobs_config.h"

namespace waybill::jobs {

// Not thread-safe.
class QueueState {
 public:
  static constexpr std::size_t kMostOfAClaim = 32;
  // Jobs are there without news of them, too: a queue is no longer paused.
  static constexpr Duration kLook = std::chrono::seconds(1);

  explicit QueueState(std::shared_ptr<const config::JobQueue> queue);

  // Another configuration; what runs goes on.
  void configure(std::shared_ptr<const config::JobQueue> queue, TimePoint now);
  // Nothing of it is claimed any more, until it is configured again.
  void retire() noexcept { retired_ = true; }
  [[nodiscard]] const std::shared_ptr<const config::JobQueue>& queue() const noexcept { return queue_; }

  // Jobs may be there.
  void wake() noexcept { awake_ = true; }
  // How many are to be claimed now. Zero: none are thought to be there, or none may begin, or a claim is
  // under way.
  [[nodiscard]] std::size_t wanted(TimePoint now) const noexcept;
  // A claim of so many is under way, until it is told that it brought `got` of them.
  void claim(std::size_t asked, TimePoint now) noexcept;
  void claimed(std::size_t got, TimePoint now) noexcept;
  void claim_failed(TimePoint now) noexcept;

  // One that was claimed has ended. Where all that run end without a call, again and again, providers are
  // left alone for a while: else every job that waits would be claimed and given back in vain.
  void ended(bool released, TimePoint now, double random) noexcept;

  [[nodiscard]] std::size_t running() const noexcept { return running_; }
  [[nodiscard]] bool is_claiming() const noexcept { return asked_ > 0; }
  [[nodiscard]] std::uint32_t releases() const noexcept { return releases_; }  // in a row

 private:
  std::shared_ptr<const config::JobQueue> queue_;
  TokenBucket rate_;
  bool awake_ = true, retired_ = false;
  TimePoint look_at_{};     // then it is awake by itself
  TimePoint not_before_{};  // nothing is claimed until then
  std::size_t running_ = 0;
  std::size_t asked_ = 0;
  std::uint32_t releases_ = 0;
};

}  // namespace waybill::jobs
