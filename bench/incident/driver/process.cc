#include "process.h"

#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <map>
#include <set>
#include <string>

#include <sys/resource.h>
#include <unistd.h>

namespace burst {
namespace {

struct ProcessTimes {
  int parent = 0;
  double cpu_s = 0;
};

double ticks_per_s() { return static_cast<double>(sysconf(_SC_CLK_TCK)); }

std::map<int, ProcessTimes> processes() {
  std::map<int, ProcessTimes> all;
  std::error_code ignored;
  for (const auto& entry : std::filesystem::directory_iterator("/proc", ignored)) {
    const int pid = std::atoi(entry.path().filename().c_str());
    if (pid <= 0) continue;
    std::ifstream file(entry.path() / "stat");
    std::string line;
    std::getline(file, line);
    const std::size_t name_end = line.rfind(')');  // the name before it may hold blanks
    if (name_end == line.npos) continue;           // it has ended
    int parent = 0;
    unsigned long user = 0;
    unsigned long kernel = 0;
    if (std::sscanf(line.c_str() + name_end + 1, " %*c %d %*d %*d %*d %*d %*u %*u %*u %*u %*u %lu %lu",
                    &parent, &user, &kernel) == 3) {
      all[pid] = {parent, static_cast<double>(user + kernel) / ticks_per_s()};
    }
  }
  return all;
}

std::set<int> family(const std::map<int, ProcessTimes>& all, int root) {
  std::set<int> members{root};
  for (bool grew = true; grew;) {
    grew = false;
    for (const auto& [pid, times] : all) {
      if (members.contains(times.parent) && members.insert(pid).second) grew = true;
    }
  }
  return members;
}

double seconds(const timeval& t) {
  return static_cast<double>(t.tv_sec) + 1e-6 * static_cast<double>(t.tv_usec);
}

}  // namespace

double monotonic_s() {
  timespec t{};
  clock_gettime(CLOCK_MONOTONIC, &t);
  return static_cast<double>(t.tv_sec) + 1e-9 * static_cast<double>(t.tv_nsec);
}

CpuUse cpu_use(int server_pid) {
  CpuUse use;
  use.wall_s = monotonic_s();
  rusage self{};
  getrusage(RUSAGE_SELF, &self);
  use.driver_s = seconds(self.ru_utime) + seconds(self.ru_stime);
  if (server_pid > 0) {
    auto all = processes();
    for (const int pid : family(all, server_pid)) use.server_s += all[pid].cpu_s;
  }
  std::ifstream stat("/proc/stat");
  std::string word;
  double user = 0, nice = 0, kernel = 0, idle = 0, iowait = 0, irq = 0, softirq = 0, steal = 0;
  stat >> word >> user >> nice >> kernel >> idle >> iowait >> irq >> softirq >> steal;
  use.machine_s = (user + nice + kernel + irq + softirq) / ticks_per_s();
  use.steal_s = steal / ticks_per_s();
  return use;
}

void add_cpu(const CpuUse& before, const CpuUse& after, Metrics& m) {
  const double wall_s = after.wall_s - before.wall_s;
  const double driver = (after.driver_s - before.driver_s) / wall_s;
  const double server = (after.server_s - before.server_s) / wall_s;
  m.set("driver_cores", driver);
  m.set("server_cores", server);
  m.set("other_cores", (after.machine_s - before.machine_s) / wall_s - driver - server);
  m.set("stolen_cores", (after.steal_s - before.steal_s) / wall_s);
}

Memory server_memory(int server_pid) {
  Memory memory;
  if (server_pid <= 0) return memory;
  for (const int pid : family(processes(), server_pid)) {
    std::ifstream file("/proc/" + std::to_string(pid) + "/status");
    for (std::string line; std::getline(file, line);) {
      if (line.starts_with("VmRSS:")) memory.now_mb += std::atof(line.c_str() + 6) / 1024;
      if (line.starts_with("VmHWM:")) memory.peak_mb += std::atof(line.c_str() + 6) / 1024;
    }
  }
  return memory;
}

}  // namespace burst
