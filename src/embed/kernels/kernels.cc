#include "embed/kernels/kernels.h"

#include "embed/kernels/families.h"

namespace waybill::embed::kernels {
namespace {

struct Entry {
  Precision precision;
  Isa isa;
  KernelTable table;
};

}  // namespace

const KernelTable* find_kernels(Precision precision, Isa isa) noexcept {
  static const Entry kEntries[] = {
      {Precision::kBf16, Isa::kAmx, {kAmxBf16, kAvx512Rows}},
      {Precision::kBf16, Isa::kAvx512Bf16, {kAvx512Bf16, kAvx512Rows}},
      {Precision::kF32, Isa::kAvx512, {kAvx512F32, kAvx512Rows}},
      {Precision::kF32, Isa::kAvx2, {kAvx2F32, kAvx2Rows}},
      {Precision::kInt16, Isa::kAvx512Vnni, {kAvx512VnniInt16, kAvx512Rows}},
      {Precision::kInt16, Isa::kAvxVnni, {kAvxVnniInt16, kAvx2Rows}},
      {Precision::kInt16, Isa::kAvx2, {kAvx2Int16, kAvx2Rows}},
      {Precision::kInt8, Isa::kAmx, {kAmxInt8, kAvx512Rows}},
      {Precision::kInt8, Isa::kAvx512Vnni, {kAvx512VnniInt8, kAvx512Rows}},
      {Precision::kInt8, Isa::kAvxVnni, {kAvxVnniInt8, kAvx2Rows}},
      {Precision::kInt8, Isa::kAvx2, {kAvx2Int8, kAvx2Rows}},
  };
  for (const Entry& entry : kEntries) {
    if (entry.precision == precision && entry.isa == isa) return &entry.table;
  }
  return nullptr;
}

}  // namespace waybill::embed::kernels
