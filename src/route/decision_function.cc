#include "route/decision_function.h"

#include <algorithm>
#include <utility>

#include "embed/text.h"

namespace waybill::route {

DecisionFunction::DecisionFunction(const Router& router, const embed::Model& model, unsigned threads,
                                   const Clock& clock, std::function<void(const ComputedBatch&)> observer)
    : router_(router), model_(model), clock_(clock), observer_(std::move(observer)), workers_(threads) {}

std::size_t DecisionFunction::run(unsigned thread, const embed::PackedBatch& batch,
                                  std::span<void* const> contexts, std::span<float> out) {
  const TimePoint started = clock_.now();
  Worker& worker = workers_[thread];
  const std::size_t dim = model_.dim();
  worker.close.clear();
  worker.ids.clear();
  worker.offsets.assign(1, 0);
  const std::size_t computed = worker.forward.run(model_, batch, out, worker.workspace);
  for (std::size_t i = 0; i < batch.sequences(); ++i) {
    if (contexts[i] == nullptr) continue;
    const auto ids = batch.ids.subspan(batch.offsets[i], batch.offsets[i + 1] - batch.offsets[i]);
    part_computed(worker, *static_cast<Part*>(contexts[i]), ids, out.subspan(i * dim, dim));
  }
  const std::size_t rechecked = worker.offsets.size() - 1;
  if (rechecked != 0) recheck(worker);
  if (observer_) {
    observer_({.sequences = batch.sequences(),
               .tokens = batch.ids.size(),
               .rechecked = rechecked,
               .seconds = seconds(clock_.now() - started)});
  }
  return computed;
}

void DecisionFunction::part_computed(Worker& worker, Part& part, std::span<const embed::TokenId> ids,
                                     std::span<const float> embedding) {
  Call& call = *part.call;
  if (call.explained) {  // encodes for itself, by the model that the reasons need
    if (call.to_compute.fetch_sub(1, std::memory_order_acq_rel) != 1) return;
    call.explanation = router_.explain(call.prompt, worker.scratch, call.explain.tier, call.explain.nearest,
                                       call.explain.runners_up);
    return;
  }
  if (call.parts.size() == 1) return decide(worker, call, ids, embedding);
  std::ranges::copy(embedding,
                    call.windows.begin() + static_cast<std::ptrdiff_t>(part.index * embedding.size()));
  if (call.to_compute.fetch_sub(1, std::memory_order_acq_rel) != 1) return;
  decide(worker, call, call.ids, average(worker, call, call.windows));
}

void DecisionFunction::decide(Worker& worker, Call& call, std::span<const embed::TokenId> ids,
                              std::span<const float> embedding) {
  call.decision = router_.decide_embedding(call.prompt, embedding, worker.scratch);
  if (call.decision) return;
  worker.close.push_back(&call);
  const auto base = static_cast<std::uint32_t>(worker.ids.size());
  worker.ids.insert(worker.ids.end(), ids.begin(), ids.end());
  if (call.parts.size() == 1) {
    worker.offsets.push_back(base + static_cast<std::uint32_t>(ids.size()));
  } else {
    for (std::size_t i = 1; i < call.offsets.size(); ++i) worker.offsets.push_back(base + call.offsets[i]);
  }
}

void DecisionFunction::recheck(Worker& worker) {
  const std::size_t dim = model_.dim();
  const embed::PackedBatch batch{.ids = worker.ids, .offsets = worker.offsets};
  worker.embeddings.resize(batch.sequences() * dim);
  worker.forward.run(*router_.exact_model(), batch, worker.embeddings, worker.exact_workspace);
  std::span<const float> rest = worker.embeddings;
  for (Call* const call : worker.close) {
    const std::span<const float> windows = rest.first(call->parts.size() * dim);
    rest = rest.subspan(windows.size());
    call->decision = router_.decide_exact_embedding(
        call->prompt, call->parts.size() == 1 ? windows : average(worker, *call, windows), worker.scratch);
  }
}

std::span<const float> DecisionFunction::average(Worker& worker, const Call& call,
                                                 std::span<const float> windows) {
  worker.average.resize(model_.dim());
  worker.lengths.clear();
  for (std::size_t i = 0; i + 1 < call.offsets.size(); ++i)
    worker.lengths.push_back(call.offsets[i + 1] - call.offsets[i] - 2);
  embed::average_windows(windows, worker.lengths, worker.average);
  return worker.average;
}

}  // namespace waybill::route
