// What a run is judged by.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "client.h"

namespace burst {

// Flat and ordered, so that runs can be merged key by key and printed as they are.
class Metrics {
 public:
  void set(const std::string& key, double value);
  [[nodiscard]] double get(const std::string& key) const;  // 0 where there is none
  [[nodiscard]] const std::vector<std::pair<std::string, double>>& all() const { return values_; }

 private:
  std::vector<std::pair<std::string, double>> values_;
};

// Counts, percentiles (ms) and rates of the outcomes. A dropped request counts as a latency of the timeout,
// so that giving up on slow requests cannot make a server look fast; an answer other than 2xx counts by its
// status only; a request that this side gave up counts as hung up only. Shares of tiers and of degraded
// decisions are of the 2xx. Rates are over the time to the last answer, or `at_least_s` if that is longer.
[[nodiscard]] Metrics summarise(const std::vector<Outcome>& outcomes, double at_least_s);

// The smallest value with at least this share of the values at or below it; 0 where there are none.
[[nodiscard]] double percentile(std::vector<double> values, double share);

// Key by key; a key that a run lacks counts as 0. Of an even number of runs, the lower middle one.
[[nodiscard]] Metrics median_of(const std::vector<Metrics>& runs);

}  // namespace burst
