#include "embed/distinct_forward.h"

#include <algorithm>

#include "base/hash.h"

namespace waybill::embed {
namespace {

std::span<const TokenId> sequence(const PackedBatch& batch, std::size_t i) {
  return batch.ids.subspan(batch.offsets[i], batch.offsets[i + 1] - batch.offsets[i]);
}

}  // namespace

bool DistinctForward::find_equal(const PackedBatch& batch) {
  hashes_.clear();
  first_.clear();
  bool any = false;
  for (std::uint32_t i = 0; i < batch.sequences(); ++i) {
    const std::span<const TokenId> ids = sequence(batch, i);
    const std::uint64_t hash = hash64(std::as_bytes(ids));
    std::uint32_t j = 0;
    while (j < i && !(hashes_[j] == hash && std::ranges::equal(sequence(batch, j), ids))) ++j;
    any = any || j < i;
    hashes_.push_back(hash);
    first_.push_back(j);
  }
  return any;
}

std::size_t DistinctForward::run(const Model& model, const PackedBatch& batch, std::span<float> out,
                                 Workspace& workspace) {
  if (!find_equal(batch)) {
    model.forward(batch, out, workspace);
    return batch.ids.size();
  }
  ids_.clear();
  offsets_.assign(1, 0);
  for (std::size_t i = 0; i < batch.sequences(); ++i) {
    if (first_[i] != i) continue;
    const std::span<const TokenId> ids = sequence(batch, i);
    ids_.insert(ids_.end(), ids.begin(), ids.end());
    offsets_.push_back(static_cast<std::uint32_t>(ids_.size()));
  }
  const std::size_t dim = model.dim();
  model.forward({.ids = ids_, .offsets = offsets_}, out.first((offsets_.size() - 1) * dim), workspace);
  const auto copy = [&](std::size_t from, std::size_t to) {
    std::ranges::copy(out.subspan(from * dim, dim), out.begin() + static_cast<std::ptrdiff_t>(to * dim));
  };
  // Each to its place, the last one first: it moves away from the front, where the others still lie.
  std::size_t row = offsets_.size() - 1;
  for (std::size_t i = batch.sequences(); i-- > 0;) {
    if (first_[i] == i && --row != i) copy(row, i);
  }
  for (std::size_t i = 0; i < batch.sequences(); ++i) {
    if (first_[i] != i) copy(first_[i], i);
  }
  return ids_.size();
}

}  // namespace waybill::embed
