// A Hugging Face model folder as it is published: config.json, model.safetensors, the sentence-transformers
// modules. Reads and checks; knows nothing of how the numbers will be laid out for computing.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/file.h"
#include "base/result.h"

namespace waybill::embed {

enum class Pooling : std::uint8_t { kMean, kCls };
enum class Activation : std::uint8_t { kGelu /* the erf form */, kGeluTanh, kRelu };

// The shape of a BERT-family encoder. Every size has been checked against the others and against sane bounds.
struct ModelConfig {
  std::size_t hidden = 0;        // 384
  std::size_t layers = 0;        // 6
  std::size_t heads = 0;         // 12; divides hidden
  std::size_t intermediate = 0;  // 1536
  std::size_t vocabulary = 0;    // 30522
  std::size_t positions = 0;     // 512 learnt positions
  std::size_t types = 0;         // 2 token types; type 0 is used
  float layer_norm_eps = 1e-12F;
  Activation activation = Activation::kGelu;
  Pooling pooling = Pooling::kMean;
  bool normalize = true;         // divide by the Euclidean norm
  std::size_t max_tokens = 0;    // longest sequence, [CLS] and [SEP] counted: sentence_bert_config.json, 256
  std::string query_prefix;      // prompts of config_sentence_transformers.json (not applied unless asked)

  [[nodiscard]] std::size_t head_dim() const noexcept { return hidden / heads; }
};

enum class DType : std::uint8_t { kF32, kF16, kBf16, kI64 /* read past, never used */ };

// One tensor of a safetensors file: a view into the mapped file, or a check's worth of reasons why not.
struct Tensor {
  DType dtype = DType::kF32;
  std::vector<std::size_t> shape;
  std::span<const std::byte> bytes;  // little-endian, row-major, as large as the shape says

  [[nodiscard]] std::size_t elements() const noexcept;
  // Converts to float32. out.size() == elements().
  void copy_to(std::span<float> out) const;
};

// The safetensors format (github.com/huggingface/safetensors, README): u64 header length, JSON header, data.
// Offsets, shapes and sizes are checked, overlaps refused; a damaged file gives kCorrupt.
class Safetensors {
 public:
  [[nodiscard]] static Result<Safetensors> open(const std::filesystem::path& path);
  // For bytes already in memory (fuzzing, tests); `bytes` must outlive the object.
  [[nodiscard]] static Result<Safetensors> parse(std::span<const std::byte> bytes, std::string_view name);

  // kNotFound names the tensor; kCorrupt when the shape is not the expected one.
  [[nodiscard]] Result<Tensor> tensor(std::string_view name, std::span<const std::size_t> shape) const;
  [[nodiscard]] bool contains(std::string_view name) const;
  [[nodiscard]] std::size_t size() const noexcept { return tensors_.size(); }

 private:
  MappedFile file_;
  std::string name_;
  std::unordered_map<std::string, Tensor> tensors_;
};

struct ModelFolder {
  std::filesystem::path path;
  ModelConfig config;
  Safetensors weights;
  std::string tensor_prefix;  // "", or "bert." where the checkpoint has a head around the encoder

  // Reads the JSON files, maps the weights and checks that every tensor the encoder needs is there with the
  // right shape. Does not touch the pages of the weights.
  [[nodiscard]] static Result<ModelFolder> open(const std::filesystem::path& path);

  // Changes whenever the content might have: sizes, times and names of the files that were read. For cache
  // files beside the model.
  [[nodiscard]] std::uint64_t fingerprint() const;
};

}  // namespace waybill::embed
