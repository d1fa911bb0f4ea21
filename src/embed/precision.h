// Which arithmetic the encoder's linear layers use, and on which instructions.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "base/cpu.h"

namespace waybill::embed {

enum class Precision : std::uint8_t {
  kF32,    // the reference
  kBf16,   // bf16 inputs, f32 accumulation
  kInt16,  // 12-bit activations and weights in 16-bit integers: near-lossless
  kInt8,   // u8 activations with a zero point per token, s8 weights per output channel, outlier channels in
           // f32
};
inline constexpr std::array kAllPrecisions = {Precision::kF32, Precision::kBf16, Precision::kInt16,
                                              Precision::kInt8};

// Kernel families, slowest first. Each names the least instruction set that it needs.
enum class Isa : std::uint8_t { kAvx2, kAvxVnni, kAvx512, kAvx512Vnni, kAvx512Bf16, kAmx };

[[nodiscard]] std::string_view to_string(Precision precision) noexcept;  // "f32", "bf16", "int16", "int8"
[[nodiscard]] std::string_view to_string(Isa isa) noexcept;              // "avx2", "avx512-vnni", ...
[[nodiscard]] std::optional<Precision> parse_precision(std::string_view name) noexcept;
[[nodiscard]] std::optional<Isa> parse_isa(std::string_view name) noexcept;

// The kernel families that can compute `precision` on this CPU, fastest first; empty if none can.
[[nodiscard]] std::vector<Isa> available(Precision precision, const CpuFeatures& cpu = cpu_features());

// Which precisions serve decisions: a fast one for every prompt, and the one that embeds the utterances and
// decides the close calls once more (route/recheck.h).
struct PrecisionPlan {
  Precision first = Precision::kF32, recheck = Precision::kF32;
};

// The fastest plan on this CPU whose decisions agree with float32 on at least 99.9 % of the validation texts
// (docs/decisions/0005; a test measures it): float32 is asked again after bf16 with AMX, after int8 where
// there are 8-bit dot products, after int16 otherwise (without them int8 is no faster).
[[nodiscard]] PrecisionPlan decision_plan(const CpuFeatures& cpu = cpu_features());

// For those who want the embedding itself: the fastest precision that is near float32 in every vector.
[[nodiscard]] Precision default_precision(const CpuFeatures& cpu = cpu_features());

}  // namespace waybill::embed
