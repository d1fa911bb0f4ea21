// An encoder's weights as one block of bytes, laid out for one kernel family, and views into it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <vector>

#include "base/file.h"
#include "base/result.h"
#include "embed/kernels/kernels.h"
#include "embed/model_folder.h"
#include "embed/precision.h"

namespace waybill::embed {

// The four linear layers of a transformer layer, in the order in which they are computed (and lie in memory).
enum class LinearKind : std::uint8_t { kQkv, kAttentionOut, kFeedForwardIn, kFeedForwardOut };
inline constexpr std::size_t kLinearKinds = 4;

// The numbers of a LayerNorm, padded with zeros.
struct NormView {
  const float* gamma = nullptr;
  const float* beta = nullptr;
};

struct LayerView {
  kernels::PackedLinear linear[kLinearKinds];
  NormView attention_norm;
  NormView output_norm;
};

// Where everything is in the block.
struct WeightsView {
  const float* positions = nullptr;  // [positions][hidden_stride]: position and type-0 embeddings, added
  std::size_t hidden_stride = 0;     // floats from one row to the next: hidden, padded
  NormView embedding_norm;
  std::vector<LayerView> layers;
};

// Which input channels of each linear layer are multiplied in f32, [layer * kLinearKinds + kind]. Empty:
// none.
using OutlierChannels = std::vector<std::vector<std::uint32_t>>;
inline constexpr std::size_t kMaxOutliers = 12;

// The block, in memory or mapped from a cache file. Immutable and thread-safe; movable, the bytes stay where
// they are.
class PackedWeights {
 public:
  // Of the block's layout and of what the numbers are rounded to. Files of another version are packed again.
  static constexpr std::uint32_t kVersion = 1;

  struct Target {
    Precision precision;
    Isa isa;
    std::uint64_t fingerprint;  // of the model folder
  };

  // Reads the folder's tensors and packs them.
  [[nodiscard]] static Result<PackedWeights> pack(const ModelFolder& folder, const Target& target,
                                                  const OutlierChannels& outliers);

  // Maps a cache file. kNotFound when it is not there; kCorrupt when it is damaged, of another version, model
  // or target, with a sentence: pack again then.
  [[nodiscard]] static Result<PackedWeights> open(const std::filesystem::path& path,
                                                  const ModelConfig& config, const Target& target);

  // Writes a cache file, so that others see the old one or the whole new one.
  [[nodiscard]] Status save(const std::filesystem::path& path) const;

  // Lets go of the pages of a cache file; they come back when they are used.
  void drop_pages() const noexcept { file_.drop_pages(); }

  [[nodiscard]] const WeightsView& view() const noexcept { return view_; }
  [[nodiscard]] std::size_t bytes() const noexcept { return block().size(); }

 private:
  struct Free {
    void operator()(std::byte* bytes) const noexcept;
  };

  [[nodiscard]] std::span<const std::byte> block() const noexcept;

  std::unique_ptr<std::byte[], Free> memory_;
  std::size_t memory_size_ = 0;
  MappedFile file_;
  WeightsView view_;
};

}  // namespace waybill::embed
