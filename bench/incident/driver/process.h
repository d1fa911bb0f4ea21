// Time, CPU use and memory, of this process, of the server and of the machine; from /proc.
#pragma once

#include "measure.h"

namespace burst {

[[nodiscard]] double monotonic_s();

// Seconds of CPU used so far, by the server with its children (pid 0: none), this process and the whole
// machine.
struct CpuUse {
  double wall_s = 0, driver_s = 0, server_s = 0, machine_s = 0, steal_s = 0;
};
[[nodiscard]] CpuUse cpu_use(int server_pid);

// Sets driver_cores, server_cores, other_cores and stolen_cores: the mean number of cores in use.
void add_cpu(const CpuUse& before, const CpuUse& after, Metrics& m);

// Resident memory of the server and its children.
struct Memory {
  double now_mb = 0, peak_mb = 0;
};
[[nodiscard]] Memory server_memory(int server_pid);

}  // namespace burst
