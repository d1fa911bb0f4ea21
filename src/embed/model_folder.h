// A Hugging Face model folder as it is published: config.json, model.safetensors, the sentence-transformers
// modules. Reads and checks; knows nothing of how the numbers will be laid out for computing.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>

#include "base/result.h"
#include "embed/model_config.h"
#include "embed/safetensors.h"

namespace waybill::embed {

struct ModelFolder {
  std::filesystem::path path;
  std::filesystem::path
      transformer;  // where weights and tokenizer are: `path`, or a folder in it that modules.json names
  ModelConfig config;
  Safetensors weights;
  std::string tensor_prefix;  // "", or "bert." where the checkpoint has a head around the encoder
  std::uint64_t stamp = 0;    // of the files' names, sizes and times when they were opened

  // Reads the JSON files, maps the weights and checks that every tensor the encoder needs is there with the
  // right shape. Does not touch the pages of the weights. Fails with kNotFound, kCorrupt, kUnsupported or
  // kIo.
  [[nodiscard]] static Result<ModelFolder> open(const std::filesystem::path& path);

  // A tensor by its name in transformers' BertModel ("encoder.layer.0.output.LayerNorm.weight"), with the
  // prefix added, under its old name too (LayerNorm.gamma and LayerNorm.beta).
  [[nodiscard]] Result<Tensor> tensor(std::string_view name, std::span<const std::size_t> shape) const;

  // Changes whenever the content might have: sizes, times and names of the files that were read. For cache
  // files beside the model.
  [[nodiscard]] std::uint64_t fingerprint() const { return stamp; }
};

}  // namespace waybill::embed
