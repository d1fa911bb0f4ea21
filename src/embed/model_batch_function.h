// The encoder as the batcher's function: one model, one workspace for each computing thread.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "embed/batcher.h"
#include "embed/distinct_forward.h"
#include "embed/model.h"

namespace waybill::embed {

class ModelBatchFunction final : public BatchFunction {
 public:
  // `model` must outlive the function. `threads`: as many as the batcher has (0: one per core).
  explicit ModelBatchFunction(const Model& model, unsigned threads = 0);

  [[nodiscard]] std::size_t dim() const noexcept override { return model_.dim(); }
  std::size_t run(unsigned thread, const PackedBatch& batch, std::span<void* const> contexts,
                  std::span<float> out) override;

 private:
  const Model& model_;
  struct Worker {
    Workspace workspace;
    DistinctForward forward;
  };
  std::vector<Worker> workers_;
};

}  // namespace waybill::embed
