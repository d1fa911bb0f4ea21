// The transformer encoder: token ids in, sentence embeddings out.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "embed/encoder.h"
#include "embed/model_config.h"
#include "embed/precision.h"
#include "embed/tokenizer.h"

namespace waybill::embed {

// Scratch memory of one computing thread. Grows to the largest batch it has seen and is then reused: no
// allocation per call after warm-up. Not thread-safe; use one per thread.
class Workspace {
 public:
  Workspace();
  Workspace(Workspace&&) noexcept;
  Workspace& operator=(Workspace&&) noexcept;
  ~Workspace();

 private:
  friend class Model;
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

struct ModelOptions {
  std::filesystem::path folder;
  std::optional<Precision> precision;  // default_precision() when not given
  std::optional<Isa> isa;              // the fastest available for the precision when not given
  bool use_cache_file = true;          // packed weights beside the model, memory-mapped at the next start
};

// What loading did, for the start-up line and `waybill model info`.
struct LoadReport {
  bool from_cache_file = false;
  std::string
      cache_note;  // why the cache file was not used or not written ("no space left on device"), or empty
  std::size_t weight_bytes = 0;
};

// An encoder's weights, packed for this CPU, shared by all threads. Immutable after load and thread-safe.
//
// A sequence's embedding does not depend on the batch it is in or on its place there (bit-equal).
class Model {
 public:
  // Fails with a sentence: folder missing or damaged, precision not available on this CPU.
  [[nodiscard]] static Result<Model> load(const ModelOptions& options, LoadReport* report = nullptr);

  Model(Model&&) noexcept;
  Model& operator=(Model&&) noexcept;
  ~Model();

  // Computes out[i * dim() .. (i + 1) * dim()) for each sequence i. Every id must be in the vocabulary and
  // every sequence have 1 to config().max_tokens ids (our own bugs otherwise). Runs on the calling thread
  // alone.
  void forward(const PackedBatch& batch, std::span<float> out, Workspace& workspace) const;

  [[nodiscard]] std::size_t dim() const noexcept { return config().hidden; }
  [[nodiscard]] const ModelConfig& config() const noexcept;
  [[nodiscard]] const Tokenizer& tokenizer() const noexcept;
  // What forward() reads; for measuring.
  [[nodiscard]] const EncoderParts& parts() const noexcept;
  [[nodiscard]] Precision precision() const noexcept;
  [[nodiscard]] Isa isa() const noexcept;
  [[nodiscard]] const std::filesystem::path& folder() const noexcept;
  // Identifies weights, tokenizer and precision: embeddings cached under another hash are not reused.
  [[nodiscard]] std::uint64_t hash() const noexcept;

  // After work that is not done again soon: the weights' pages leave memory where they are mapped from the
  // cache file, and come back as they are used. Thread-safe.
  void drop_pages() const noexcept;

 private:
  struct Impl;
  explicit Model(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace waybill::embed
