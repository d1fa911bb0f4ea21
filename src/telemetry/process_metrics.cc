#include "telemetry/process_metrics.h"

#include <array>
#include <charconv>
#include <filesystem>
#include <optional>

#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "base/file.h"

namespace waybill::telemetry {
namespace {

// The fields of /proc/self/stat after the program's name, which may hold anything: proc(5), field 3 is the
// first.
struct ProcStat {
  std::uint64_t user_ticks = 0, system_ticks = 0, threads = 0, start_ticks = 0, virtual_bytes = 0,
                resident_pages = 0;
};

std::optional<ProcStat> read_stat() {
  const Result<std::string> text = read_file("/proc/self/stat");
  if (!text) return std::nullopt;
  std::string_view rest = *text;
  const std::size_t name_end = rest.rfind(')');
  if (name_end == std::string_view::npos) return std::nullopt;
  rest.remove_prefix(name_end + 1);
  ProcStat stat;
  for (int field = 3; field <= 24; ++field) {
    rest.remove_prefix(std::min(rest.find_first_not_of(' '), rest.size()));
    const std::string_view word = rest.substr(0, rest.find(' '));
    std::uint64_t value = 0;
    std::from_chars(word.data(), word.data() + word.size(), value);
    switch (field) {
      case 14:
        stat.user_ticks = value;
        break;
      case 15:
        stat.system_ticks = value;
        break;
      case 20:
        stat.threads = value;
        break;
      case 22:
        stat.start_ticks = value;
        break;
      case 23:
        stat.virtual_bytes = value;
        break;
      case 24:
        stat.resident_pages = value;
        break;
      default:
        break;
    }
    rest.remove_prefix(word.size());
  }
  return stat;
}

std::uint64_t open_descriptors() {
  std::error_code error;
  std::uint64_t n = 0;
  for (std::filesystem::directory_iterator i("/proc/self/fd", error), end; !error && i != end;
       i.increment(error))
    ++n;
  return n > 0 ? n - 1 : 0;  // one is the iterator's own
}

double boot_time_s() {
  std::array<timespec, 2> now{};
  ::clock_gettime(CLOCK_REALTIME, &now[0]);
  ::clock_gettime(CLOCK_BOOTTIME, &now[1]);
  const auto to_s = [](const timespec& t) {
    return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_nsec) * 1e-9;
  };
  return to_s(now[0]) - to_s(now[1]);
}

}  // namespace

Registry::Hook add_process_metrics(Registry& registry) {
  Counter& cpu = registry.counters("process_cpu_seconds_total").with({});
  Gauge& resident = registry.gauges("process_resident_memory_bytes").with({});
  Gauge& virtual_memory = registry.gauges("process_virtual_memory_bytes").with({});
  Gauge& open = registry.gauges("process_open_fds").with({});
  Gauge& threads = registry.gauges("process_threads").with({});
  const auto ticks = static_cast<std::uint64_t>(::sysconf(_SC_CLK_TCK));
  const auto page = static_cast<double>(::sysconf(_SC_PAGESIZE));

  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) == 0)
    registry.gauges("process_max_fds").with({}).set(static_cast<double>(limit.rlim_cur));
  if (const auto stat = read_stat()) {
    const double started =
        boot_time_s() + static_cast<double>(stat->start_ticks) / static_cast<double>(ticks);
    registry.gauges("process_start_time_seconds").with({}).set(started);
  }
  return registry.on_scrape([&cpu, &resident, &virtual_memory, &open, &threads, ticks, page] {
    if (const auto stat = read_stat()) {
      constexpr std::uint64_t kMicroseconds = 1'000'000;
      cpu.set((stat->user_ticks + stat->system_ticks) * (kMicroseconds / ticks));
      resident.set(static_cast<double>(stat->resident_pages) * page);
      virtual_memory.set(static_cast<double>(stat->virtual_bytes));
      threads.set(static_cast<double>(stat->threads));
    }
    open.set(static_cast<double>(open_descriptors()));
  });
}

}  // namespace waybill::telemetry
