// One upstream model at one provider: what is known of how it does.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>

#include "base/clock.h"
#include "upstream/circuit.h"

namespace waybill::upstream {

class Provider;

// Calls under way, and how long they take: a moving average over about the last twenty. Thread-safe.
class LoadMeter {
 public:
  void begin() noexcept { in_flight_.fetch_add(1, std::memory_order_relaxed); }
  void end() noexcept { in_flight_.fetch_sub(1, std::memory_order_relaxed); }
  // Of a call that was answered: to the first token of a stream, else to the answer.
  void answered(Duration latency) noexcept;

  [[nodiscard]] unsigned in_flight() const noexcept { return in_flight_.load(std::memory_order_relaxed); }
  [[nodiscard]] Duration latency() const noexcept {
    return Duration(latency_.load(std::memory_order_relaxed));
  }
  // Smaller is better.
  [[nodiscard]] double cost() const noexcept;

 private:
  std::atomic<unsigned> in_flight_{0};
  std::atomic<Duration::rep> latency_{0};  // zero: none has been measured
};

// Shared: by the catalogs of configurations that have it, so that a reload forgets nothing. Thread-safe.
struct Target {
  Target(std::shared_ptr<Provider> p, std::string m, std::string n, const config::ProviderHealth& health)
      : provider(std::move(p)), model(std::move(m)), name(std::move(n)), circuit(health) {}

  const std::shared_ptr<Provider> provider;
  const std::string model;  // as the provider calls it; empty: what the call asks for
  const std::string name;   // "provider/model"
  Circuit circuit;
  LoadMeter load;
};

}  // namespace waybill::upstream
