// Where a completion runs. The batcher computes on its own threads and hands results back through the
// executor its caller named (an event loop, a test's queue), never on a thread of its own choosing.
#pragma once

#include <functional>

namespace waybill {

class Executor {
 public:
  virtual ~Executor() = default;
  // Runs `work` soon, on a thread of the executor. Thread-safe; must not run it inside the call unless
  // it is the inline executor.
  virtual void post(std::move_only_function<void()> work) = 0;
};

// Runs the work where it is posted, for callers that are content with the computing thread.
class InlineExecutor final : public Executor {
 public:
  void post(std::move_only_function<void()> work) override { work(); }
};

}  // namespace waybill
