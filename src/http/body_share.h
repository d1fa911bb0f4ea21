// What the bodies of all requests may take of the memory together, and what one of them has of it.
#pragma once

#include <algorithm>
#include <atomic>
#include <bit>
#include <cstdint>

namespace waybill::http {

// A request's share. Used by the thread of its connection; `all` is shared by all connections of a server.
class BodyShare {
 public:
  // Bodies up to this size are not counted: they cost no shared write, and the number of connections bounds
  // them.
  static constexpr std::uint64_t kUncounted = 64U << 10;

  // `all`: bytes that all requests have, never more than `most`. It outlives the share.
  BodyShare(std::atomic<std::uint64_t>& all, std::uint64_t most) noexcept : all_(all), most_(most) {}
  ~BodyShare() { give_back(); }
  BodyShare(const BodyShare&) = delete;
  BodyShare& operator=(const BodyShare&) = delete;

  // Whether a body of `announced` bytes would fit now. Nothing is set aside for it: a client that announces
  // much and sends nothing keeps nobody out.
  [[nodiscard]] bool has_room_for(std::uint64_t announced) const noexcept {
    return announced <= kUncounted || announced <= most_ - all_.load(std::memory_order_relaxed);
  }

  // For a body of which `size` bytes have come and that may become `largest`. The share grows by doubling, as
  // the memory does: at least `size`, less than twice that. False: there is no room, and nothing has changed.
  [[nodiscard]] bool grow(std::uint64_t size, std::uint64_t largest) noexcept {
    if (size <= std::max(kUncounted, taken_)) return true;
    const std::uint64_t wanted = std::max(size, std::min(std::bit_ceil(size), largest));
    std::uint64_t all = all_.load(std::memory_order_relaxed);
    do {
      if (wanted - taken_ > most_ - all) return false;
    } while (!all_.compare_exchange_weak(all, all + wanted - taken_, std::memory_order_relaxed));
    taken_ = wanted;
    return true;
  }

  void give_back() noexcept {
    if (taken_ == 0) return;
    all_.fetch_sub(taken_, std::memory_order_relaxed);
    taken_ = 0;
  }

 private:
  std::atomic<std::uint64_t>& all_;
  const std::uint64_t most_;
  std::uint64_t taken_ = 0;
};

}  // namespace waybill::http
