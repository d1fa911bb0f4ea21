// Compiled without AVX2 (see CMakeLists.txt) and run before every other initialiser: on a CPU that
// cannot run the rest of the program, a sentence in place of an illegal instruction.
#include <cstring>

#include <unistd.h>

namespace {

[[gnu::constructor(101)]] void require_avx2() {
  __builtin_cpu_init();
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) return;
  static const char message[] =
      "waybill: this CPU has no AVX2 and FMA, which Waybill needs (any x86-64 server since 2013/2017 has "
      "them)\n";
  [[maybe_unused]] const auto written = write(STDERR_FILENO, message, std::strlen(message));
  _exit(70);
}

}  // namespace
