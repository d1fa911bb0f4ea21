#include "base/check.h"

#include <cstdio>
#include <cstdlib>

namespace waybill {

void check_failed(const char* condition, const char* file, int line) noexcept {
  std::fprintf(stderr, "waybill: internal error: check failed: %s (%s:%d); please report this\n", condition,
               file, line);
  std::abort();
}

}  // namespace waybill
