// A table token -> vector, distilled from the encoder itself: embeddings without a forward pass.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <stop_token>
#include <string>
#include <vector>

#include "base/file.h"
#include "base/progress.h"
#include "base/result.h"
#include "embed/model.h"
#include "embed/tokenizer.h"

namespace waybill::embed {

// What a table holds: for each token of the vocabulary `dim` signed bytes and the factor that makes them
// numbers. Rows are padded with zeros to `stride`, a multiple of 64.
struct StaticRows {
  std::size_t dim = 0, stride = 0;
  std::vector<float> scales;        // [vocabulary]; zero where a token has no part in a text's vector
  std::vector<std::int8_t> values;  // [vocabulary, stride]
};

struct StaticTableReport {
  bool from_cache_file = false;
  std::string cache_note;  // why the cache file was not used or not written, or empty
  double seconds = 0;
};

// The model2vec recipe (github.com/MinishLab/model2vec, distill/): each vocabulary entry that is in use is
// run through the encoder alone; the vectors are reduced by PCA to 256 dimensions and weighted as Zipf's law
// would have it (log(1 + rank), rank = position among the entries, which are ordered by frequency). A text's
// vector is the mean of its tokens' vectors, of length 1. Immutable and thread-safe.
//
// The file FOLDER/.waybill/static-HASH.table (8 MB for 30,522 tokens) keeps it, mapped into memory at the
// next start; its format is in static_table.cc.
class StaticTable {
 public:
  // From the cache file beside the model when there is one for the model's hash that is whole; else distilled
  // (seconds) and written there. Works without a file where it cannot be written; the report says so.
  // threads: 0 for one per core. kCancelled soon after it is asked to stop.
  [[nodiscard]] static Result<StaticTable> load_or_distill(const Model& model, unsigned threads,
                                                           const Progress& progress = {},
                                                           StaticTableReport* report = nullptr,
                                                           const std::stop_token& stop = {});
  // Only if the cache file is there (kNotFound otherwise) and whole (kCorrupt).
  [[nodiscard]] static Result<StaticTable> load(const Model& model);
  [[nodiscard]] static std::filesystem::path cache_file(const Model& model);

  // From bytes as the cache file holds them, which must outlive the table and start at a multiple of 64.
  [[nodiscard]] static Result<StaticTable> parse(std::span<const std::byte> bytes, std::uint64_t model_hash);
  [[nodiscard]] static StaticTable of(StaticRows rows);

  [[nodiscard]] std::size_t dim() const noexcept { return dim_; }
  [[nodiscard]] std::size_t vocabulary() const noexcept { return scales_.size(); }

  // The vector of a sequence of ids ([CLS] and [SEP] are skipped); zeros where none of them has a vector. Any
  // number of ids, all in the vocabulary. out.size() == dim(). No allocation.
  void embed(std::span<const TokenId> ids, std::span<float> out) const noexcept;

 private:
  StaticTable() = default;

  std::size_t dim_ = 0, stride_ = 0;
  std::span<const float> scales_;  // into file_, rows_ or the caller's bytes
  std::span<const std::int8_t> values_;
  MappedFile file_;
  std::unique_ptr<StaticRows> rows_;
};

}  // namespace waybill::embed
