#include "base/process.h"

#include <malloc.h>
#include <sys/resource.h>

namespace waybill {

void release_free_memory() noexcept { ::malloc_trim(0); }

void run_at_low_priority() noexcept {
  constexpr int kNice = 10;
  // On Linux a thread has a priority of its own, and 0 is the calling one (sched(7)).
  ::setpriority(PRIO_PROCESS, 0, kNice);
}

}  // namespace waybill
