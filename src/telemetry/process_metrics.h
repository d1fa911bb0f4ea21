// The process as Linux sees it, under the names that Prometheus' own clients use.
#pragma once

#include "telemetry/metrics.h"

namespace waybill::telemetry {

// Read from /proc/self before each scrape, until the hook is destroyed.
[[nodiscard]] Registry::Hook add_process_metrics(Registry& registry);

}  // namespace waybill::telemetry
