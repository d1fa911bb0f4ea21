// Model folders made up for tests: small, valid, and easy to damage.
#pragma once

#include <cstdint>
#include <cstring>
#include <filesystem>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include "base/file.h"
#include "base/temporary_folder_test.h"

namespace waybill::embed::testing {

using waybill::TemporaryFolder;

// A safetensors file from its two halves.
inline std::string safetensors_file(std::string_view header, std::string_view data) {
  const std::uint64_t length = header.size();
  std::string out(sizeof length, '\0');
  std::memcpy(out.data(), &length, sizeof length);
  return out.append(header).append(data);
}

struct TestTensor {
  std::string name;
  std::vector<std::size_t> shape;
};

// Float32 tensors with the values 0, 1/64, 2/64, ..., laid one after the other.
inline std::string safetensors_of(const std::vector<TestTensor>& tensors) {
  std::string header = R"({"__metadata__":{"format":"pt"})";
  std::string data;
  float value = 0;
  for (const TestTensor& tensor : tensors) {
    const std::size_t begin = data.size();
    std::size_t elements = 1;
    for (const std::size_t n : tensor.shape) elements *= n;
    for (std::size_t i = 0; i < elements; ++i, value += 1.0F / 64) {
      data.append(reinterpret_cast<const char*>(&value), sizeof value);
    }
    header += fmt::format(R"(,"{}":{{"dtype":"F32","shape":[{}],"data_offsets":[{},{}]}})", tensor.name,
                          fmt::join(tensor.shape, ","), begin, data.size());
  }
  return safetensors_file(header + "}", data);
}

// The tensors of a BERT with hidden size 4, 1 layer, intermediate size 8, 6 words, 5 positions, 2 types.
inline std::vector<TestTensor> tiny_bert_tensors(std::string_view prefix = "", bool old_names = false) {
  const std::string_view gain = old_names ? "gamma" : "weight";
  const std::string_view shift = old_names ? "beta" : "bias";
  std::vector<TestTensor> out;
  const auto add = [&](std::string_view name, std::vector<std::size_t> shape) {
    out.push_back({fmt::format("{}{}", prefix, name), std::move(shape)});
  };
  add("embeddings.word_embeddings.weight", {6, 4});
  add("embeddings.position_embeddings.weight", {5, 4});
  add("embeddings.token_type_embeddings.weight", {2, 4});
  add(fmt::format("embeddings.LayerNorm.{}", gain), {4});
  add(fmt::format("embeddings.LayerNorm.{}", shift), {4});
  for (const auto& [name, outputs, inputs] : {std::tuple{"attention.self.query", 4UL, 4UL},
                                              {"attention.self.key", 4UL, 4UL},
                                              {"attention.self.value", 4UL, 4UL},
                                              {"attention.output.dense", 4UL, 4UL},
                                              {"intermediate.dense", 8UL, 4UL},
                                              {"output.dense", 4UL, 8UL}}) {
    add(fmt::format("encoder.layer.0.{}.weight", name), {outputs, inputs});
    add(fmt::format("encoder.layer.0.{}.bias", name), {outputs});
  }
  for (const std::string_view name : {"attention.output.LayerNorm", "output.LayerNorm"}) {
    add(fmt::format("encoder.layer.0.{}.{}", name, gain), {4});
    add(fmt::format("encoder.layer.0.{}.{}", name, shift), {4});
  }
  return out;
}

inline constexpr std::string_view kTinyConfig =
    R"({"model_type": "bert", "hidden_size": 4, "num_hidden_layers": 1,
  "num_attention_heads": 2, "intermediate_size": 8, "vocab_size": 6, "max_position_embeddings": 5,
  "type_vocab_size": 2, "layer_norm_eps": 1e-12, "hidden_act": "gelu"})";

inline constexpr std::string_view kModules = R"([
  {"idx": 0, "name": "0", "path": "", "type": "sentence_transformers.models.Transformer"},
  {"idx": 1, "name": "1", "path": "1_Pooling", "type": "sentence_transformers.models.Pooling"},
  {"idx": 2, "name": "2", "path": "2_Normalize", "type": "sentence_transformers.models.Normalize"}])";

inline constexpr std::string_view kMeanPooling =
    R"({"word_embedding_dimension": 4, "pooling_mode_cls_token": false,
  "pooling_mode_mean_tokens": true, "pooling_mode_max_tokens": false})";

// `text` with the first `from` replaced by `to`; throws when it is not there.
inline std::string with(std::string_view text, std::string_view from, std::string_view to) {
  std::string out(text);
  return out.replace(out.find(from), from.size(), to);
}

}  // namespace waybill::embed::testing
