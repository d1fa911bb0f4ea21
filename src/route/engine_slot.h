// The engine that is in use, and how it is changed for another while calls are in flight.
#pragma once

#include <atomic>
#include <memory>
#include <mutex>

#include "base/worker_pool.h"
#include "route/engine.h"

namespace waybill::route {

// current() is what each call begins with; the pointer it gives keeps that engine alive until the call's
// answer has been used. An engine that nobody uses any more is destroyed on a thread of the slot (engine-0),
// never where the last pointer happened to go. Thread-safe.
class EngineSlot {
 public:
  explicit EngineSlot(std::unique_ptr<Engine> engine);
  // Returns when the current engine has gone, if nobody else holds it. One that is still held is destroyed
  // where it is let go.
  ~EngineSlot();
  EngineSlot(const EngineSlot&) = delete;
  EngineSlot& operator=(const EngineSlot&) = delete;

  [[nodiscard]] std::shared_ptr<const Engine> current() const;
  void replace(std::unique_ptr<Engine> engine);

 private:
  struct Graveyard;
  std::shared_ptr<Graveyard> graveyard_;  // shared: by the engines that are still to come to it
  mutable std::mutex mutex_;
  std::shared_ptr<const Engine> engine_;  // guarded by mutex_; shared: by the calls in flight
};

}  // namespace waybill::route
