// A whole model that loads in a millisecond, for tests of what is built on models.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <optional>
#include <random>
#include <stdexcept>
#include <string>
#include <utility>

#include "embed/model.h"
#include "embed/test_model.h"

namespace waybill::embed::testing {

// Hidden size 4, one layer, 500 words ("hello", "world", "w7" to "w499"), sequences of at most 5 ids, random
// weights.
class SmallModel {
 public:
  static constexpr std::size_t kWords = 500;

  SmallModel() {
    auto tensors = tiny_bert_tensors();
    tensors.front().shape = {kWords, 4};
    std::string weights = safetensors_of(tensors);
    std::uint64_t header = 0;
    std::memcpy(&header, weights.data(), sizeof header);
    std::mt19937 random(7);
    for (std::size_t at = sizeof header + header; at < weights.size(); at += sizeof(float)) {
      const float value = static_cast<float>(random() % 2001) / 1000 - 1;
      std::memcpy(&weights[at], &value, sizeof value);
    }
    std::string words = "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[unused0]\nhello\nworld\n";
    for (std::size_t i = 7; i < kWords; ++i) words += "w" + std::to_string(i) + "\n";
    folder_.write("model.safetensors", weights);
    folder_.write("config.json", with(kTinyConfig, R"("vocab_size": 6)", R"("vocab_size": 500)"));
    folder_.write("vocab.txt", words);
    folder_.write("modules.json", kModules);
    folder_.write("1_Pooling/config.json", kMeanPooling);
    Result<Model> model = Model::load(
        {.folder = folder_.path(), .precision = Precision::kF32, .isa = {}, .use_cache_file = false});
    if (!model) throw std::runtime_error(model.error().message);
    model_.emplace(std::move(*model));
  }

  [[nodiscard]] const Model& model() const { return *model_; }
  [[nodiscard]] const std::filesystem::path& folder() const { return folder_.path(); }

 private:
  TemporaryFolder folder_;
  std::optional<Model> model_;
};

}  // namespace waybill::embed::testing
