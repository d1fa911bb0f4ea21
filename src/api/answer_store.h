// Answers that calls have had, and calls that are under way, for those who ask the same again.
#pragma once

#include <cstddef>

#include "upstream/shared_calls.h"

namespace waybill::api {

// For all calls of the program. Thread-safe.
class AnswerStore {
 public:
  // Keys and the cache have half of it each, so that neither pushes out the other.
  void limit(std::size_t max_bytes) {
    keyed_.limit(max_bytes / 2);
    cached_.limit(max_bytes / 2);
  }
  [[nodiscard]] std::size_t bytes() const { return keyed_.bytes() + cached_.bytes(); }

  // By the Idempotency-Keys of callers.
  [[nodiscard]] upstream::SharedCalls& keyed() noexcept { return keyed_; }
  // The response cache.
  [[nodiscard]] upstream::SharedCalls& cached() noexcept { return cached_; }

 private:
  upstream::SharedCalls keyed_{upstream::ErrorPolicy::kKeep};
  upstream::SharedCalls cached_{upstream::ErrorPolicy::kForget};
};

}  // namespace waybill::api
