// A table token -> vector, distilled from the encoder itself: embeddings without a forward pass.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "base/progress.h"
#include "base/result.h"
#include "embed/model.h"

namespace waybill::embed {

// The model2vec recipe (github.com/MinishLab/model2vec): each vocabulary entry is run through the encoder alone,
// the vectors are reduced by PCA to 256 dimensions and weighted as Zipf's law would have it
// (log(1 + rank), rank = position in the vocabulary). A text's vector is the mean of its tokens' vectors, of length 1.
// Immutable and thread-safe.
class StaticTable {
 public:
  // From the cache file beside the model when it fits the model's hash; else distilled (seconds) and cached.
  [[nodiscard]] static Result<StaticTable> load_or_distill(const Model& model, unsigned threads, const Progress& progress = {});
  // Only if the cache file is there and fits; kNotFound otherwise.
  [[nodiscard]] static Result<StaticTable> load(const Model& model);

  StaticTable(StaticTable&&) noexcept;
  StaticTable& operator=(StaticTable&&) noexcept;
  ~StaticTable();

  [[nodiscard]] std::size_t dim() const noexcept;

  // The vector of a sequence of ids ([CLS] and [SEP] are skipped); zeros for no ids. No allocation.
  void embed(std::span<const TokenId> ids, std::span<float> out) const noexcept;

 private:
  struct Impl;
  explicit StaticTable(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace waybill::embed
