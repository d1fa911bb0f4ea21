// The static tier: decisions from token vectors alone, without a forward pass.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "embed/model.h"
#include "embed/static_table.h"
#include "embed/text.h"
#include "route/agreement_gate.h"
#include "route/fitted_head.h"
#include "route/head.h"
#include "route/training_set.h"

namespace waybill::route {

// A table, a head of its own fitted on the table's vectors of the same utterances, and a gate calibrated to
// where two leave-one-out decisions, this one and the encoder's, are the same: data that is always there.
// Where the gate opens it may decide alone; it never rejects a prompt, but passes it on. Immutable and
// thread-safe.
class StaticTier {
 public:
  struct Sources {
    const embed::Model& model;
    const embed::TextOptions& text;
    const TrainingSet& set;
    std::span<const HeadDecision> encoder;  // what the encoder's head says of each utterance, left out
    const HeadOptions& head;
    double agreement = 0;                       // see AgreementGate
    const std::filesystem::path& cache_folder;  // for the head of this tier
  };

  [[nodiscard]] static Result<std::unique_ptr<StaticTier>> make(embed::StaticTable table,
                                                                const Sources& sources,
                                                                FitMode mode = FitMode::kFit);

  [[nodiscard]] std::size_t dim() const noexcept { return table_.dim(); }
  [[nodiscard]] const AgreementGate& gate() const noexcept { return gate_; }
  [[nodiscard]] std::span<const float> thresholds() const noexcept {
    return head_.thresholds();
  }  // of its own head
  [[nodiscard]] const std::string& note() const noexcept { return note_; }

  // `ids`: of all sequences of one prompt. `embedding` and `probabilities` grow on the first call and are
  // reused.
  [[nodiscard]] HeadDecision score(std::span<const embed::TokenId> ids, std::vector<float>& embedding,
                                   std::vector<float>& probabilities, Head::Scratch& scratch) const;

 private:
  StaticTier(embed::StaticTable table, FittedHead fitted, AgreementGate gate);

  embed::StaticTable table_;
  Head head_;
  AgreementGate gate_;
  std::string note_;
};

}  // namespace waybill::route
