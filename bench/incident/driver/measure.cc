#include "measure.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <map>

namespace burst {

void Metrics::set(const std::string& key, double value) {
  for (auto& [name, old] : values_) {
    if (name == key) {
      old = value;
      return;
    }
  }
  values_.emplace_back(key, value);
}

double Metrics::get(const std::string& key) const {
  for (const auto& [name, value] : values_) {
    if (name == key) return value;
  }
  return 0;
}

double percentile(std::vector<double> values, double share) {
  if (values.empty()) return 0;
  const auto rank = static_cast<std::size_t>(std::ceil(share * static_cast<double>(values.size())));
  const std::size_t at = std::clamp<std::size_t>(rank, 1, values.size()) - 1;
  std::nth_element(values.begin(), values.begin() + static_cast<std::ptrdiff_t>(at), values.end());
  return values[at];
}

Metrics summarise(const std::vector<Outcome>& outcomes, double at_least_s) {
  struct Share {
    int of = 0, hits = 0;
    void add(bool hit) { ++of, hits += hit ? 1 : 0; }
    [[nodiscard]] double value() const { return of > 0 ? static_cast<double>(hits) / of : 0; }
  };
  std::vector<double> served_or_lost_ms, served_ms, refused_ms, lags_ms;
  std::map<int, int> by_status;
  std::map<std::string, int> by_tier;
  int dropped = 0, broken = 0, hung_up = 0;
  Share right, degraded, degraded_right;
  double last_answer_s = at_least_s;
  for (const Outcome& o : outcomes) {
    const double latency_ms = o.latency_s * 1e3;
    lags_ms.push_back(o.lag_s * 1e3);
    switch (o.fate) {
      case Fate::broken:
        ++broken;
        break;
      case Fate::hung_up:
        ++hung_up;
        break;
      case Fate::dropped:
        ++dropped;
        served_or_lost_ms.push_back(latency_ms);
        break;
      case Fate::answered:
        ++by_status[o.status];
        if (o.status / 100 != 2) {
          refused_ms.push_back(latency_ms);
          break;
        }
        served_ms.push_back(latency_ms);
        served_or_lost_ms.push_back(latency_ms);
        last_answer_s = std::max(last_answer_s, o.done_s);
        if (!o.tier.empty()) ++by_tier[o.tier];
        degraded.add(o.degraded);
        if (o.route_checked) right.add(o.route_right);
        if (o.route_checked && o.degraded) degraded_right.add(o.route_right);
    }
  }
  const auto served = static_cast<double>(served_ms.size());
  Metrics m;
  m.set("sent", static_cast<double>(outcomes.size()));
  m.set("answered_2xx", served);
  for (const auto& [status, count] : by_status) {
    if (status != 200) m.set("status_" + std::to_string(status), count);
  }
  m.set("refused", static_cast<double>(refused_ms.size()));
  m.set("dropped", dropped);
  m.set("broken", broken);
  m.set("hung_up", hung_up);
  m.set("p50_ms", percentile(served_or_lost_ms, 0.50));
  m.set("p95_ms", percentile(served_or_lost_ms, 0.95));
  m.set("p99_ms", percentile(served_or_lost_ms, 0.99));
  m.set("max_ms", percentile(served_or_lost_ms, 1));
  m.set("p95_2xx_ms", percentile(served_ms, 0.95));
  m.set("p95_refused_ms", percentile(refused_ms, 0.95));
  m.set("answers_per_s", last_answer_s > 0 ? served / last_answer_s : 0);
  m.set("right_share", right.value());
  m.set("degraded", degraded.hits);
  m.set("degraded_share", degraded.value());
  m.set("degraded_right_share", degraded_right.value());
  for (const auto& [tier, count] : by_tier) m.set("tier_" + tier + "_share", count / served);
  m.set("driver_lag_p99_ms", percentile(lags_ms, 0.99));
  return m;
}

Metrics median_of(const std::vector<Metrics>& runs) {
  Metrics m;
  for (const Metrics& each : runs) {
    for (const auto& [key, ignored] : each.all()) {
      std::vector<double> values;
      values.reserve(runs.size());
      for (const Metrics& run : runs) values.push_back(run.get(key));
      m.set(key, percentile(std::move(values), 0.5));
    }
  }
  return m;
}

}  // namespace burst
