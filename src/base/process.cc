#include "base/process.h"

#include <algorithm>

#include <malloc.h>
#include <sys/resource.h>

// Of gperftools (malloc_extension_c.h), where its allocator is linked in: the program has it, tests and users
// of the library need not.
// NOLINTBEGIN(readability-identifier-naming): the names are gperftools'
extern "C" {
__attribute__((weak)) void MallocExtension_ReleaseFreeMemory();
__attribute__((weak)) void MallocExtension_ReleaseToSystem(std::size_t bytes);
__attribute__((weak)) int MallocExtension_GetNumericProperty(const char* property, std::size_t* value);
}
// NOLINTEND(readability-identifier-naming)

namespace waybill {

void release_free_memory() noexcept {
  if (MallocExtension_ReleaseFreeMemory != nullptr) {
    MallocExtension_ReleaseFreeMemory();
  } else {
    ::malloc_trim(0);
  }
}

void release_memory_beyond(std::size_t kept, std::size_t most) noexcept {
  if (MallocExtension_GetNumericProperty == nullptr || MallocExtension_ReleaseToSystem == nullptr) return;
  std::size_t free = 0;
  if (MallocExtension_GetNumericProperty("tcmalloc.pageheap_free_bytes", &free) == 0 || free <= kept) return;
  MallocExtension_ReleaseToSystem(std::min(free - kept, most));
}

void keep_no_large_free_blocks() noexcept {
  constexpr int kLarge = 1 << 20;
  ::mallopt(M_MMAP_THRESHOLD, kLarge);
  ::mallopt(M_TRIM_THRESHOLD, kLarge);
}

void run_at_low_priority() noexcept {
  constexpr int kNice = 10;
  // On Linux a thread has a priority of its own, and 0 is the calling one (sched(7)).
  ::setpriority(PRIO_PROCESS, 0, kNice);
}

std::uint64_t raise_descriptor_limit(std::uint64_t wanted) noexcept {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return 0;
  if (limit.rlim_cur >= wanted) return limit.rlim_cur;
  rlimit raised = {.rlim_cur = wanted, .rlim_max = std::max<rlim_t>(limit.rlim_max, wanted)};
  if (::setrlimit(RLIMIT_NOFILE, &raised) == 0) return wanted;
  raised = {.rlim_cur = std::min<rlim_t>(limit.rlim_max, wanted), .rlim_max = limit.rlim_max};
  return ::setrlimit(RLIMIT_NOFILE, &raised) == 0 ? raised.rlim_cur : limit.rlim_cur;
}

}  // namespace waybill
