#include "route/engine_slot.h"

#include <utility>

namespace waybill::route {

// Destroys engines on its own thread, or in place once it has been closed.
struct EngineSlot::Graveyard {
  WorkerPool thread{{.name = "engine", .threads = 1, .max_waiting = 1024}};

  void take(const Engine* engine) {
    WorkerPool::Work work = [engine] { delete engine; };
    if (!thread.resume(std::move(work))) work();  // NOLINT(bugprone-use-after-move): refused, it is as it was
  }
};

namespace {

template <class Graveyard>
std::shared_ptr<const Engine> shared(std::unique_ptr<Engine> engine,
                                     const std::shared_ptr<Graveyard>& graveyard) {
  return {engine.release(), [graveyard](const Engine* gone) { graveyard->take(gone); }};
}

}  // namespace

EngineSlot::EngineSlot(std::unique_ptr<Engine> engine)
    : graveyard_(std::make_shared<Graveyard>()), engine_(shared(std::move(engine), graveyard_)) {}

EngineSlot::~EngineSlot() {
  engine_.reset();
  graveyard_->thread.stop();
}

std::shared_ptr<const Engine> EngineSlot::current() const {
  const std::lock_guard lock(mutex_);
  return engine_;
}

void EngineSlot::replace(std::unique_ptr<Engine> engine) {
  std::shared_ptr<const Engine> next = shared(std::move(engine), graveyard_);
  const std::lock_guard lock(mutex_);
  engine_.swap(next);
}

}  // namespace waybill::route
