// The news that nobody waits for an answer any more.
#pragma once

#include <functional>
#include <utility>

namespace waybill::http {

// Requested once, listened to by one at a time. The loop's thread only.
class Cancellation {
 public:
  void request() {
    if (std::exchange(requested_, true)) return;
    if (listener_) std::exchange(listener_, nullptr)();
  }
  [[nodiscard]] bool requested() const noexcept { return requested_; }

  // Listens while it lives; called at most once, at once when it was requested before.
  class Listener {
   public:
    Listener(Cancellation& cancellation, std::move_only_function<void()> listener)
        : cancellation_(cancellation) {
      if (cancellation_.requested_) {
        listener();
      } else {
        cancellation_.listener_ = std::move(listener);
      }
    }
    ~Listener() { cancellation_.listener_ = nullptr; }
    Listener(const Listener&) = delete;
    Listener& operator=(const Listener&) = delete;

   private:
    Cancellation& cancellation_;
  };

 private:
  std::move_only_function<void()> listener_;
  bool requested_ = false;
};

}  // namespace waybill::http
