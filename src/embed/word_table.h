// The word embeddings, of which a batch needs a row for each token.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "base/file.h"
#include "embed/safetensors.h"

namespace waybill::embed {

// Rows of a tensor, read from its file one at a time. The table is half of a small model, and traffic soon
// touches some row in each of its pages: mapped, all of it would be resident for the few rows that are in
// use. Immutable and thread-safe.
class WordTable {
 public:
  // rows: [vocabulary, hidden]. file: the one that rows.bytes are mapped from; null: they are in memory. Both
  // outlive the table.
  explicit WordTable(Tensor rows, const MappedFile* file = nullptr);

  // Row `id` as float32; out.size() is the width. Throws std::runtime_error when the file cannot be read any
  // more.
  void copy_row(std::size_t id, std::span<float> out) const;

  [[nodiscard]] bool in_memory() const noexcept { return file_ == nullptr; }
  [[nodiscard]] std::uint64_t number() const noexcept { return number_; }  // no other table's in this process

 private:
  Tensor rows_;
  const MappedFile* file_;
  std::size_t row_bytes_;
  std::uint64_t number_;
};

// Rows that were read lately, so that frequent words cost no system call. Used by one thread at a time.
class WordCache {
 public:
  // As WordTable::copy_row().
  void copy_row(const WordTable& table, std::size_t id, std::span<float> out);

 private:
  // Each where its id says, so one of several with the same place. A BERT vocabulary is sorted by frequency:
  // the thousand most frequent words have a place each.
  static constexpr std::size_t kRows = 1024;

  std::uint64_t table_ = 0;         // whose rows they are; 0: nobody's
  std::vector<std::size_t> owner_;  // [kRows]: id + 1 of the row that is there; 0: none
  std::unique_ptr<float[]> rows_;   // [kRows, width]; what no word has used is not resident
};

}  // namespace waybill::embed
