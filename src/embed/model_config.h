// The shape of an encoder, from the JSON files of its folder.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace waybill::embed {

enum class Pooling : std::uint8_t { kMean, kCls };
enum class Activation : std::uint8_t { kGelu /* the erf form */, kGeluTanh, kRelu };

// A BERT-family encoder. Every size has been checked against the others and against sane bounds.
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
  bool normalize = true;       // divide by the Euclidean norm
  std::size_t max_tokens = 0;  // longest sequence, [CLS] and [SEP] counted: sentence_bert_config.json, 256
  std::string query_prefix;    // prompts of config_sentence_transformers.json (not applied unless asked)

  [[nodiscard]] std::size_t head_dim() const noexcept { return hidden / heads; }
};

// The texts of the JSON files that decide how a model computes; an empty text stands for a file that is not
// there.
struct ModelFiles {
  std::string config;                // config.json
  std::string modules;               // modules.json
  std::string pooling;               // config.json of the pooling module
  std::string sentence_bert_config;  // sentence_bert_config.json
  std::string tokenizer_config;      // tokenizer_config.json
  std::string prompts;               // config_sentence_transformers.json
};

// What modules.json lists. A folder without it is a plain transformers checkpoint: mean pooling and
// normalised, the choice of most sentence encoders.
struct ModuleList {
  std::filesystem::path
      transformer;  // folder of config.json, weights and tokenizer, relative to the model folder
  std::filesystem::path pooling;  // folder of the pooling config; empty without modules.json
  bool normalize = true;
};

// Fails with kUnsupported (a module other than Transformer, Pooling and Normalize) or kCorrupt.
[[nodiscard]] Result<ModuleList> read_modules(std::string_view modules_json);

// Fails with kUnsupported (another family, pooling, activation or kind of positions) or kCorrupt and a
// sentence.
[[nodiscard]] Result<ModelConfig> read_model_config(const ModelFiles& files);

}  // namespace waybill::embed
