#include "embed/model_batch_function.h"

#include <algorithm>
#include <thread>

namespace waybill::embed {

ModelBatchFunction::ModelBatchFunction(const Model& model, unsigned threads)
    : model_(model),
      workspaces_(threads != 0 ? threads : std::max(1U, std::thread::hardware_concurrency())) {}

void ModelBatchFunction::run(unsigned thread, const PackedBatch& batch, std::span<void* const> /*contexts*/,
                             std::span<float> out) {
  model_.forward(batch, out, workspaces_[thread]);
}

}  // namespace waybill::embed
