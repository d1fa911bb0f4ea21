// Model folders with random weights for tests, and what they should compute, in double and one number at a
// time.
#pragma once

#include <cmath>
#include <random>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "embed/model_config.h"
#include "embed/test_model.h"
#include "embed/tokenizer.h"

namespace waybill::embed::testing {

// Written to `folder` at once; the tensors stay here for the reference.
class RandomModel {
 public:
  RandomModel(const TemporaryFolder& folder, const ModelConfig& config, unsigned seed)
      : config_(config), random_(seed) {
    const std::size_t h = config.hidden;
    std::string vocabulary = "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\n";
    for (std::size_t i = 5; i < config.vocabulary; ++i) vocabulary += fmt::format("w{}\n", i);
    add("embeddings.word_embeddings.weight", {config.vocabulary, h}, 1.0F);
    add("embeddings.position_embeddings.weight", {config.positions, h}, 0.5F);
    add("embeddings.token_type_embeddings.weight", {config.types, h}, 0.5F);
    add_norm("embeddings.LayerNorm");
    for (std::size_t layer = 0; layer < config.layers; ++layer) {
      const std::string prefix = fmt::format("encoder.layer.{}.", layer);
      for (const std::string_view name : {"query", "key", "value"})
        add_linear(prefix + fmt::format("attention.self.{}", name), h, h);
      add_linear(prefix + "attention.output.dense", h, h);
      add_norm(prefix + "attention.output.LayerNorm");
      add_linear(prefix + "intermediate.dense", config.intermediate, h);
      add_linear(prefix + "output.dense", h, config.intermediate);
      add_norm(prefix + "output.LayerNorm");
    }
    folder.write("model.safetensors", safetensors_file(header_ + "}", data_));
    folder.write("vocab.txt", vocabulary);
    folder.write("config.json", config_json());
    folder.write("modules.json", config.normalize ? std::string(kModules) : without_normalize());
    folder.write("1_Pooling/config.json",
                 fmt::format(R"({{"word_embedding_dimension": {}, "pooling_mode_cls_token": {},
                     "pooling_mode_mean_tokens": {}, "pooling_mode_max_tokens": false}})",
                             h, config.pooling == Pooling::kCls, config.pooling == Pooling::kMean));
  }

  // The embedding of one sequence.
  [[nodiscard]] std::vector<double> reference(const std::vector<TokenId>& ids) const {
    Rows x;
    for (std::size_t t = 0; t < ids.size(); ++t) {
      std::vector<double> row(config_.hidden);
      for (std::size_t i = 0; i < row.size(); ++i) {
        row[i] =
            at("embeddings.word_embeddings.weight", static_cast<std::size_t>(ids[t]) * config_.hidden + i) +
            at("embeddings.position_embeddings.weight", t * config_.hidden + i) +
            at("embeddings.token_type_embeddings.weight", i);
      }
      x.push_back(std::move(row));
    }
    x = norm(x, "embeddings.LayerNorm");
    for (std::size_t layer = 0; layer < config_.layers; ++layer) {
      const std::string prefix = fmt::format("encoder.layer.{}.", layer);
      x = norm(sum(x, linear(attend(x, prefix), prefix + "attention.output.dense")),
               prefix + "attention.output.LayerNorm");
      Rows wide = linear(x, prefix + "intermediate.dense");
      for (std::vector<double>& row : wide) {
        for (double& value : row) value = activate(value);
      }
      x = norm(sum(x, linear(wide, prefix + "output.dense")), prefix + "output.LayerNorm");
    }
    return pool(x);
  }

 private:
  using Rows = std::vector<std::vector<double>>;

  void add(const std::string& name, std::vector<std::size_t> shape, float scale, float mean = 0) {
    std::size_t elements = 1;
    for (const std::size_t n : shape) elements *= n;
    std::normal_distribution<float> normal(mean, scale);
    std::vector<float>& values = tensors_[name];
    for (std::size_t i = 0; i < elements; ++i) values.push_back(normal(random_));
    const std::size_t begin = data_.size();
    data_.append(reinterpret_cast<const char*>(values.data()), elements * sizeof(float));
    header_ += fmt::format(R"({}"{}":{{"dtype":"F32","shape":[{}],"data_offsets":[{},{}]}})",
                           begin == 0 ? "" : ",", name, fmt::join(shape, ","), begin, data_.size());
  }
  void add_norm(const std::string& name) {
    add(name + ".weight", {config_.hidden}, 0.2F, 1.0F);
    add(name + ".bias", {config_.hidden}, 0.2F);
  }
  void add_linear(const std::string& name, std::size_t outputs, std::size_t inputs) {
    add(name + ".weight", {outputs, inputs}, 1.0F / std::sqrt(static_cast<float>(inputs)));
    add(name + ".bias", {outputs}, 0.2F);
  }

  [[nodiscard]] std::string config_json() const {
    const char* const activation = config_.activation == Activation::kGelu       ? "gelu"
                                   : config_.activation == Activation::kGeluTanh ? "gelu_new"
                                                                                 : "relu";
    return fmt::format(
        R"({{"model_type": "bert", "hidden_size": {}, "num_hidden_layers": {}, "num_attention_heads": {},
        "intermediate_size": {}, "vocab_size": {}, "max_position_embeddings": {}, "type_vocab_size": {},
        "layer_norm_eps": 1e-12, "hidden_act": "{}"}})",
        config_.hidden, config_.layers, config_.heads, config_.intermediate, config_.vocabulary,
        config_.positions, config_.types, activation);
  }
  static std::string without_normalize() {
    return R"([{"idx": 0, "name": "0", "path": "", "type": "sentence_transformers.models.Transformer"},
               {"idx": 1, "name": "1", "path": "1_Pooling", "type": "sentence_transformers.models.Pooling"}])";
  }

  [[nodiscard]] double at(const std::string& name, std::size_t i) const {
    return double{tensors_.at(name)[i]};
  }

  [[nodiscard]] Rows linear(const Rows& x, const std::string& name) const {
    const std::vector<float>& weight = tensors_.at(name + ".weight");
    const std::vector<float>& bias = tensors_.at(name + ".bias");
    Rows out;
    for (const std::vector<double>& row : x) {
      std::vector<double> y(bias.begin(), bias.end());
      for (std::size_t o = 0; o < y.size(); ++o) {
        for (std::size_t i = 0; i < row.size(); ++i) y[o] += double{weight[o * row.size() + i]} * row[i];
      }
      out.push_back(std::move(y));
    }
    return out;
  }

  static Rows sum(Rows a, const Rows& b) {
    for (std::size_t t = 0; t < a.size(); ++t) {
      for (std::size_t i = 0; i < a[t].size(); ++i) a[t][i] += b[t][i];
    }
    return a;
  }

  [[nodiscard]] Rows norm(Rows x, const std::string& name) const {
    for (std::vector<double>& row : x) {
      const auto n = static_cast<double>(row.size());
      double mean = 0;
      double variance = 0;
      for (const double v : row) mean += v / n;
      for (const double v : row) variance += (v - mean) * (v - mean) / n;
      for (std::size_t i = 0; i < row.size(); ++i) {
        row[i] =
            (row[i] - mean) / std::sqrt(variance + 1e-12) * at(name + ".weight", i) + at(name + ".bias", i);
      }
    }
    return x;
  }

  [[nodiscard]] Rows attend(const Rows& x, const std::string& prefix) const {
    const Rows q = linear(x, prefix + "attention.self.query");
    const Rows k = linear(x, prefix + "attention.self.key");
    const Rows v = linear(x, prefix + "attention.self.value");
    const std::size_t d = config_.head_dim();
    Rows out(x.size(), std::vector<double>(config_.hidden));
    for (std::size_t t = 0; t < x.size(); ++t) {
      for (std::size_t h = 0; h < config_.heads; ++h) {
        std::vector<double> score(x.size());
        double total = 0;
        for (std::size_t s = 0; s < x.size(); ++s) {
          for (std::size_t i = h * d; i < (h + 1) * d; ++i) score[s] += q[t][i] * k[s][i];
          score[s] = std::exp(score[s] / std::sqrt(static_cast<double>(d)));
          total += score[s];
        }
        for (std::size_t s = 0; s < x.size(); ++s) {
          for (std::size_t i = h * d; i < (h + 1) * d; ++i) out[t][i] += score[s] / total * v[s][i];
        }
      }
    }
    return out;
  }

  [[nodiscard]] double activate(double x) const {
    switch (config_.activation) {
      case Activation::kGelu:
        return 0.5 * x * (1 + std::erf(x / std::sqrt(2.0)));
      case Activation::kGeluTanh:
        return 0.5 * x * (1 + std::tanh(0.7978845608028654 * (x + 0.044715 * x * x * x)));
      case Activation::kRelu:
        break;
    }
    return std::max(x, 0.0);
  }

  [[nodiscard]] std::vector<double> pool(const Rows& x) const {
    std::vector<double> out(config_.hidden);
    const std::size_t rows = config_.pooling == Pooling::kCls ? 1 : x.size();
    double squares = 0;
    for (std::size_t i = 0; i < out.size(); ++i) {
      for (std::size_t t = 0; t < rows; ++t) out[i] += x[t][i] / static_cast<double>(rows);
      squares += out[i] * out[i];
    }
    if (config_.normalize) {
      for (double& value : out) value /= std::sqrt(squares);
    }
    return out;
  }

  ModelConfig config_;
  std::mt19937 random_;
  std::string header_ = "{";
  std::string data_;
  std::unordered_map<std::string, std::vector<float>> tensors_;
};

// A small shape that a test then changes.
inline ModelConfig small_shape() {
  ModelConfig c;
  c.hidden = 48;
  c.layers = 2;
  c.heads = 3;
  c.intermediate = 100;
  c.vocabulary = 60;
  c.positions = 70;
  c.types = 2;
  return c;
}

}  // namespace waybill::embed::testing
