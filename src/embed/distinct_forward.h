// A forward pass that computes equal sequences once. Internal to the batch functions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "embed/model.h"

namespace waybill::embed {

// Many clients that ask the same at the same time wait in one batch, before any of their answers could be
// cached. Reused from batch to batch; one for each thread.
class DistinctForward {
 public:
  // As model.forward(): the same rows in `out`. Returns how many tokens were computed.
  std::size_t run(const Model& model, const PackedBatch& batch, std::span<float> out, Workspace& workspace);

 private:
  // Fills first_; true when a sequence comes twice.
  bool find_equal(const PackedBatch& batch);

  std::vector<std::uint64_t> hashes_;
  std::vector<std::uint32_t> first_;  // of each sequence, which one of the batch is the first that equals it
  std::vector<TokenId> ids_;          // the different ones, packed
  std::vector<std::uint32_t> offsets_;
};

}  // namespace waybill::embed
