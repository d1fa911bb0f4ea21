#include "embed/precision.h"

#include <algorithm>

namespace waybill::embed {
namespace {

constexpr std::array kIsaNames = {"avx2", "avx-vnni", "avx512", "avx512-vnni", "avx512-bf16", "amx"};
constexpr std::array kPrecisionNames = {"f32", "bf16", "int16", "int8"};

template <class Enum, std::size_t N>
std::optional<Enum> parse(std::string_view name, const std::array<const char*, N>& names) {
  const auto* const found = std::find(names.begin(), names.end(), name);
  if (found == names.end()) return std::nullopt;
  return static_cast<Enum>(found - names.begin());
}

}  // namespace

std::string_view to_string(Precision precision) noexcept {
  return kPrecisionNames[static_cast<std::size_t>(precision)];
}
std::string_view to_string(Isa isa) noexcept { return kIsaNames[static_cast<std::size_t>(isa)]; }
std::optional<Precision> parse_precision(std::string_view name) noexcept {
  return parse<Precision>(name, kPrecisionNames);
}
std::optional<Isa> parse_isa(std::string_view name) noexcept { return parse<Isa>(name, kIsaNames); }

std::vector<Isa> available(Precision precision, const CpuFeatures& cpu) {
  std::vector<Isa> out;
  const auto add = [&out](bool there, Isa isa) {
    if (there) out.push_back(isa);
  };
  switch (precision) {
    case Precision::kF32:
      add(cpu.avx512, Isa::kAvx512);
      add(cpu.avx2_fma, Isa::kAvx2);
      break;
    case Precision::kBf16:
      add(cpu.amx_bf16 && cpu.avx512_bf16, Isa::kAmx);  // AVX512-BF16 converts the inputs
      add(cpu.avx512_bf16, Isa::kAvx512Bf16);
      break;
    case Precision::kInt16:
      add(cpu.avx512_vnni, Isa::kAvx512Vnni);
      add(cpu.avx_vnni, Isa::kAvxVnni);
      add(cpu.avx2_fma, Isa::kAvx2);
      break;
    case Precision::kInt8:
      add(cpu.amx_int8, Isa::kAmx);
      add(cpu.avx512_vnni, Isa::kAvx512Vnni);
      add(cpu.avx_vnni, Isa::kAvxVnni);
      add(cpu.avx2_fma, Isa::kAvx2);
      break;
  }
  return out;
}

PrecisionPlan decision_plan(const CpuFeatures& cpu) {
  const Precision near = default_precision(cpu);
  const bool byte_products = cpu.avx512_vnni || cpu.avx_vnni;
  return {.first = near == Precision::kInt16 && byte_products ? Precision::kInt8 : near,
          .recheck = Precision::kF32};
}

Precision default_precision(const CpuFeatures& cpu) {
  if (cpu.amx_bf16 && cpu.avx512_bf16) return Precision::kBf16;
  return Precision::kInt16;
}

}  // namespace waybill::embed
