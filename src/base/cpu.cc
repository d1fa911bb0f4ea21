#include "base/cpu.h"

#include <cstdint>
#include <cstring>

#include <cpuid.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace waybill {
namespace {

struct Leaf {
  std::uint32_t eax = 0, ebx = 0, ecx = 0, edx = 0;
};

Leaf cpuid(std::uint32_t leaf, std::uint32_t subleaf) {
  Leaf out;
  __get_cpuid_count(leaf, subleaf, &out.eax, &out.ebx, &out.ecx, &out.edx);
  return out;
}

constexpr bool bit(std::uint32_t word, int index) { return ((word >> index) & 1U) != 0; }

// Which register states the operating system saves (Intel SDM vol. 1, 13.3).
std::uint64_t saved_states() {
  if (!bit(cpuid(1, 0).ecx, 27)) return 0;  // OSXSAVE
  std::uint32_t low = 0;
  std::uint32_t high = 0;
  __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
  return (std::uint64_t{high} << 32) | low;
}

// Linux gives AMX tile data to a process only on request (kernel documentation, x86/xstate).
bool request_amx() {
  constexpr long kArchReqXcompPerm = 0x1023;
  constexpr long kXfeatureTileData = 18;
  return syscall(SYS_arch_prctl, kArchReqXcompPerm, kXfeatureTileData) == 0;
}

CpuFeatures detect() {
  const Leaf one = cpuid(1, 0);
  const Leaf seven = cpuid(7, 0);
  const Leaf seven_one = cpuid(7, 1);
  const std::uint64_t states = saved_states();
  const bool ymm = (states & 0x6) == 0x6;
  const bool zmm = (states & 0xE6) == 0xE6;
  const bool tiles = (states & 0x60000) == 0x60000;

  CpuFeatures out;
  out.avx2_fma = ymm && bit(seven.ebx, 5) && bit(one.ecx, 12) && bit(one.ecx, 29);
  out.avx512 = zmm && bit(seven.ebx, 16) && bit(seven.ebx, 17) && bit(seven.ebx, 30) && bit(seven.ebx, 31);
  out.avx512_vnni = out.avx512 && bit(seven.ecx, 11);
  out.avx512_bf16 = out.avx512 && bit(seven_one.eax, 5);
  out.avx_vnni = out.avx2_fma && bit(seven_one.eax, 4);
  const bool amx = tiles && out.avx512 && bit(seven.edx, 24) && (bit(seven.edx, 22) || bit(seven.edx, 25)) &&
                   request_amx();
  out.amx_bf16 = amx && bit(seven.edx, 22);
  out.amx_int8 = amx && bit(seven.edx, 25);
  return out;
}

}  // namespace

const CpuFeatures& cpu_features() {
  static const CpuFeatures features = detect();
  return features;
}

std::string cpu_name() {
  char brand[49] = {};
  for (std::uint32_t i = 0; i < 3; ++i) {
    const Leaf part = cpuid(0x80000002U + i, 0);
    std::memcpy(brand + 16 * i, &part, sizeof part);
  }
  std::string name = brand;
  name.erase(0, name.find_first_not_of(' '));
  return name;
}

}  // namespace waybill
