// What a head is fitted on: the utterances of the routes, what belongs to no route, and their embeddings.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "base/progress.h"
#include "config/config.h"
#include "embed/model.h"
#include "embed/text.h"
#include "route/dataset.h"
#include "route/head.h"

namespace waybill::route {

// Utterances first, grouped by route, then the out-of-scope texts. A text stands once in each route that has
// it.
struct TrainingSet {
  std::size_t routes = 0;
  std::vector<std::string> texts;
  std::vector<std::uint32_t> labels;  // route of each utterance; shorter than texts by the out-of-scope ones
  std::size_t dim = 0;
  std::vector<float> embeddings;  // [texts.size(), dim]

  [[nodiscard]] std::size_t utterances() const noexcept { return labels.size(); }
  [[nodiscard]] std::size_t out_of_scope() const noexcept { return texts.size() - labels.size(); }
  // What a head is fitted on when `vectors` ([texts.size(), vector_dim]) stand for the texts; a view.
  [[nodiscard]] LabelledEmbeddings head_data(std::span<const float> vectors,
                                             std::size_t vector_dim) const noexcept;
  [[nodiscard]] LabelledEmbeddings head_data() const noexcept { return head_data(embeddings, dim); }
};

// The utterances of the configuration and the labelled examples of `waybill fit` (fit.h). Examples whose
// label is no route of the configuration are left out; `ignored` counts them.
[[nodiscard]] TrainingSet collect_training_set(const config::Config& config, const Dataset& examples,
                                               std::size_t& ignored);

struct EmbedReport {
  std::size_t embedded = 0;  // those that the cache did not have
  double seconds = 0;
  std::vector<std::string> notes;  // what the cache had to say
};

// Fills in the embeddings: from the cache file where it has them, else computed, and the file brought up to
// date.
EmbedReport embed_training_set(TrainingSet& set, const embed::Model& model, const embed::TextOptions& options,
                               unsigned threads, const std::filesystem::path& cache_file,
                               const Progress& progress);

// How a configuration wants long prompts cut, and long texts of which the embedding itself is asked for.
[[nodiscard]] embed::TextOptions text_options(const config::Config& config) noexcept;
[[nodiscard]] embed::TextOptions embedding_text_options(const config::Config& config) noexcept;

// Identifies everything that an embedding depends on besides the text.
[[nodiscard]] std::uint64_t embedding_hash(const embed::Model& model,
                                           const embed::TextOptions& options) noexcept;

}  // namespace waybill::route
