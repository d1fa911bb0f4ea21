#include "embed/word_table.h"

#include <algorithm>
#include <atomic>
#include <stdexcept>
#include <utility>

namespace waybill::embed {
namespace {

std::uint64_t next_number() noexcept {
  static std::atomic<std::uint64_t> last{0};
  return ++last;
}

}  // namespace

WordTable::WordTable(Tensor rows, const MappedFile* file)
    : rows_(std::move(rows)),
      file_(file),
      row_bytes_(rows_.bytes.size() / rows_.shape.front()),
      number_(next_number()) {}

void WordTable::copy_row(std::size_t id, std::span<float> out) const {
  const std::span<const std::byte> row = rows_.bytes.subspan(id * row_bytes_, row_bytes_);
  if (file_ == nullptr) return convert_to_f32(rows_.dtype, row, out);
  static thread_local std::vector<std::byte> read;
  read.resize(row_bytes_);
  if (!file_->read_at(static_cast<std::size_t>(row.data() - file_->bytes().data()), read))
    throw std::runtime_error("the model's weights cannot be read any more");
  convert_to_f32(rows_.dtype, read, out);
}

void WordCache::copy_row(const WordTable& table, std::size_t id, std::span<float> out) {
  if (table.in_memory()) return table.copy_row(id, out);
  if (table_ != table.number()) {
    table_ = table.number();
    owner_.assign(kRows, 0);
    rows_ = std::make_unique_for_overwrite<float[]>(kRows * out.size());
  }
  const std::size_t place = id % kRows;
  const std::span<float> row(rows_.get() + place * out.size(), out.size());
  if (owner_[place] != id + 1) {
    owner_[place] = 0;
    table.copy_row(id, row);
    owner_[place] = id + 1;
  }
  std::ranges::copy(row, out.begin());
}

}  // namespace waybill::embed
