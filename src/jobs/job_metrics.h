// What the metrics say of jobs.
#pragma once

#include <map>
#include <mutex>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "base/clock.h"
#include "base/result.h"
#include "store/store.h"
#include "telemetry/program_metrics.h"

namespace waybill::jobs {

// Thread-safe.
class JobMetrics {
 public:
  explicit JobMetrics(telemetry::ProgramMetrics& metrics) : metrics_(metrics) {}

  void count(std::span<const store::Change> changes);
  void committed(std::size_t commands, Duration length);

  void claimed(const store::Job& job, store::Time now);
  void ran(std::string_view queue, Duration length);
  void attempt_failed(std::string_view queue, std::string_view code);
  void set_unsettled(std::size_t jobs);

  // What waits now, as the store counts it; a queue that has nothing any more is 0 from then on.
  void set_depths(std::span<const store::Depth> depths, std::span<const store::QueueState> queues,
                  store::Time now);

 private:
  telemetry::ProgramMetrics& metrics_;
  std::mutex mutex_;
  std::map<std::pair<std::string, store::State>, double> depths_;  // told last
  std::map<std::string, double, std::less<>> oldest_;
};

}  // namespace waybill::jobs
