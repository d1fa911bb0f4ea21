// What the batcher computes for decisions: encode, score, recheck close calls. Internal to the decision
// service.
#pragma once

#include <cstddef>
#include <functional>
#include <span>
#include <vector>

#include "base/clock.h"
#include "embed/batcher.h"
#include "embed/distinct_forward.h"
#include "embed/model.h"
#include "route/decision_call.h"
#include "route/router.h"

namespace waybill::route {

// The context of a sequence is its Part, or null for one whose embedding alone is wanted.
class DecisionFunction final : public embed::BatchFunction {
 public:
  // All must outlive the function. `threads`: of the batcher.
  DecisionFunction(const Router& router, const embed::Model& model, unsigned threads, const Clock& clock,
                   std::function<void(const ComputedBatch&)> observer);

  [[nodiscard]] std::size_t dim() const noexcept override { return model_.dim(); }
  std::size_t run(unsigned thread, const embed::PackedBatch& batch, std::span<void* const> contexts,
                  std::span<float> out) override;

 private:
  struct Worker {
    DecideScratch scratch;
    embed::Workspace workspace, exact_workspace;
    embed::DistinctForward forward;
    std::vector<Call*> close;         // calls that the exact model has to decide
    std::vector<embed::TokenId> ids;  // their sequences, packed
    std::vector<std::uint32_t> offsets;
    std::vector<std::uint32_t> lengths;
    std::vector<float> embeddings, average;
  };

  // The embedding of one part has come; whoever brings the last decides.
  void part_computed(Worker& worker, Part& part, std::span<const embed::TokenId> ids,
                     std::span<const float> embedding);
  void decide(Worker& worker, Call& call, std::span<const embed::TokenId> ids,
              std::span<const float> embedding);
  void recheck(Worker& worker);
  // windows: [call.parts, dim]
  std::span<const float> average(Worker& worker, const Call& call, std::span<const float> windows);

  const Router& router_;
  const embed::Model& model_;
  const Clock& clock_;
  const std::function<void(const ComputedBatch&)> observer_;
  std::vector<Worker> workers_;  // one for each computing thread
};

}  // namespace waybill::route
