#include "embed/model_batch_function.h"

#include <algorithm>
#include <thread>

namespace waybill::embed {

ModelBatchFunction::ModelBatchFunction(const Model& model, unsigned threads)
    : model_(model), workers_(threads != 0 ? threads : std::max(1U, std::thread::hardware_concurrency())) {}

std::size_t ModelBatchFunction::run(unsigned thread, const PackedBatch& batch,
                                    std::span<void* const> /*contexts*/, std::span<float> out) {
  Worker& worker = workers_[thread];
  return worker.forward.run(model_, batch, out, worker.workspace);
}

}  // namespace waybill::embed
