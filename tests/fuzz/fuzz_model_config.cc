// The JSON files of a model folder, separated by bytes 0x1E: config.json, modules.json, the pooling config,
// sentence_bert_config.json, tokenizer_config.json, config_sentence_transformers.json.
#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/check.h"
#include "embed/model_config.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace waybill::embed;
  std::string_view input(reinterpret_cast<const char*>(data), size);
  ModelFiles files;
  for (std::string* file : {&files.config, &files.modules, &files.pooling, &files.sentence_bert_config,
                            &files.tokenizer_config, &files.prompts}) {
    const std::size_t cut = std::min(input.find('\x1E'), input.size());
    *file = input.substr(0, cut);
    input.remove_prefix(std::min(cut + 1, input.size()));
  }
  if (const auto modules = read_modules(files.modules)) {
    for (const auto& path : {modules->transformer, modules->pooling}) {
      WAYBILL_CHECK(!path.is_absolute() && std::ranges::find(path, "..") == path.end());
    }
  }
  const auto config = read_model_config(files);
  if (!config) {
    WAYBILL_CHECK(!config.error().message.empty());
    return 0;
  }
  WAYBILL_CHECK(config->heads > 0 && config->hidden % config->heads == 0);
  WAYBILL_CHECK(config->max_tokens >= 3 && config->max_tokens <= config->positions);
  WAYBILL_CHECK(config->layer_norm_eps > 0);
  return 0;
}
