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
      {Precision::kF32, Isa::kAvx512, {kAvx512F32, kAvx512Rows}},
      {Precision::kF32, Isa::kAvx2, {kAvx2F32, kAvx2Rows}},
  };
  for (const Entry& entry : kEntries) {
    if (entry.precision == precision && entry.isa == isa) return &entry.table;
  }
  return nullptr;
}

}  // namespace waybill::embed::kernels
