#include "embed/model_folder.h"

#include <array>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/file.h"
#include "base/hash.h"

namespace waybill::embed {
namespace {

constexpr std::size_t kMaxJsonBytes = 4 << 20;

bool is_there(const std::filesystem::path& path) {
  std::error_code ignored;
  return std::filesystem::exists(path, ignored);
}

// A file's text, or "" when it is not there.
Result<std::string> read_optional(const std::filesystem::path& path) {
  Result<std::string> text = read_file(path, kMaxJsonBytes);
  if (!text && text.error().code == ErrorCode::kNotFound) return std::string();
  if (text && text->empty()) {
    return fail(ErrorCode::kCorrupt, fmt::format("{} is empty; fetch the model again", path.string()));
  }
  return text;
}

Result<std::string> read_required(const std::filesystem::path& folder, const std::filesystem::path& name) {
  Result<std::string> text = read_optional(folder / name);
  if (text && text->empty()) {
    return fail(ErrorCode::kNotFound,
                fmt::format("{} has no {}; copy the whole model folder as it is published", folder.string(),
                            name.string()));
  }
  return text;
}

// Errors of the JSON readers name the file; this adds whose it is.
std::unexpected<Error> in_folder(const std::filesystem::path& folder, Error error) {
  error.message = fmt::format("{}: {}", folder.string(), error.message);
  return std::unexpected(std::move(error));
}

Error no_weights(const std::filesystem::path& folder) {
  if (is_there(folder / "model.safetensors.index.json")) {
    return {ErrorCode::kUnsupported,
            fmt::format(
                "{}: the weights are in several files (model.safetensors.index.json); save the model as one: "
                "AutoModel.from_pretrained(\".\").save_pretrained(\".\", max_shard_size=\"100GB\")",
                folder.string()),
            {}};
  }
  if (is_there(folder / "pytorch_model.bin")) {
    return {ErrorCode::kUnsupported,
            fmt::format("{}: the weights are in pytorch_model.bin only; convert them to safetensors: python3 "
                        "-c \"from transformers "
                        "import AutoModel; AutoModel.from_pretrained('.').save_pretrained('.', "
                        "safe_serialization=True)\"",
                        folder.string()),
            {}};
  }
  return {ErrorCode::kNotFound,
          fmt::format("{} has no model.safetensors; copy the whole model folder as it is published",
                      folder.string()),
          {}};
}

using Shape = std::vector<std::size_t>;

std::vector<std::pair<std::string, Shape>> needed_tensors(const ModelConfig& c) {
  std::vector<std::pair<std::string, Shape>> out = {
      {"embeddings.word_embeddings.weight", {c.vocabulary, c.hidden}},
      {"embeddings.position_embeddings.weight", {c.positions, c.hidden}},
      {"embeddings.token_type_embeddings.weight", {c.types, c.hidden}},
      {"embeddings.LayerNorm.weight", {c.hidden}},
      {"embeddings.LayerNorm.bias", {c.hidden}},
  };
  for (std::size_t layer = 0; layer < c.layers; ++layer) {
    const auto add = [&](std::string_view name, Shape weight) {
      const std::size_t outputs = weight.front();
      out.emplace_back(fmt::format("encoder.layer.{}.{}.weight", layer, name), std::move(weight));
      out.emplace_back(fmt::format("encoder.layer.{}.{}.bias", layer, name), Shape{outputs});
    };
    add("attention.self.query", {c.hidden, c.hidden});
    add("attention.self.key", {c.hidden, c.hidden});
    add("attention.self.value", {c.hidden, c.hidden});
    add("attention.output.dense", {c.hidden, c.hidden});
    add("attention.output.LayerNorm", {c.hidden});
    add("intermediate.dense", {c.intermediate, c.hidden});
    add("output.dense", {c.hidden, c.intermediate});
    add("output.LayerNorm", {c.hidden});
  }
  return out;
}

// The name before TensorFlow's LayerNorm variables were renamed, or "".
std::string old_name(std::string_view name) {
  constexpr std::array kRenamed = {
      std::pair{std::string_view("LayerNorm.weight"), std::string_view("LayerNorm.gamma")},
      std::pair{std::string_view("LayerNorm.bias"), std::string_view("LayerNorm.beta")}};
  for (const auto& [now, then] : kRenamed) {
    if (name.ends_with(now)) return fmt::format("{}{}", name.substr(0, name.size() - now.size()), then);
  }
  return {};
}

Result<ModelConfig> read_config(ModelFolder& folder) {
  ModelFiles files;
  Result<std::string> modules = read_optional(folder.path / "modules.json");
  if (!modules) return std::unexpected(modules.error());
  files.modules = std::move(*modules);
  const Result<ModuleList> list = read_modules(files.modules);
  if (!list) return in_folder(folder.path, list.error());
  folder.transformer = list->transformer.empty() ? folder.path : folder.path / list->transformer;

  Result<std::string> config = read_required(folder.transformer, "config.json");
  if (!config) return std::unexpected(config.error());
  files.config = std::move(*config);
  if (!list->pooling.empty()) {
    Result<std::string> pooling = read_required(folder.path, list->pooling / "config.json");
    if (!pooling) return std::unexpected(pooling.error());
    files.pooling = std::move(*pooling);
  }
  const std::array optional = {
      std::pair{folder.transformer / "sentence_bert_config.json", &files.sentence_bert_config},
      std::pair{folder.transformer / "tokenizer_config.json", &files.tokenizer_config},
      std::pair{folder.path / "config_sentence_transformers.json", &files.prompts},
  };
  for (const auto& [path, text] : optional) {
    Result<std::string> read = read_optional(path);
    if (!read) return std::unexpected(read.error());
    *text = std::move(*read);
  }
  Result<ModelConfig> read = read_model_config(files);
  if (!read) return in_folder(folder.path, read.error());
  return read;
}

std::uint64_t stamp_files(const ModelFolder& folder) {
  std::string stamps;
  for (const std::string_view name :
       {"modules.json", "config.json", "1_Pooling/config.json", "sentence_bert_config.json",
        "config_sentence_transformers.json", "tokenizer.json", "tokenizer_config.json", "vocab.txt",
        "model.safetensors"}) {
    for (const auto& path : {folder.path / name, folder.transformer / name}) {
      std::error_code size_error;
      std::error_code time_error;
      const auto size = std::filesystem::file_size(path, size_error);
      const auto time = std::filesystem::last_write_time(path, time_error);
      if (size_error || time_error) continue;
      stamps += fmt::format("{} {} {}\n", name, size, time.time_since_epoch().count());
    }
  }
  return hash64(stamps);
}

}  // namespace

Result<ModelFolder> ModelFolder::open(const std::filesystem::path& path) {
  std::error_code ignored;
  if (!std::filesystem::is_directory(path, ignored)) {
    return fail(ErrorCode::kNotFound,
                fmt::format("there is no model folder at {}; give the folder that holds config.json and "
                            "model.safetensors, or fetch all-MiniLM-L6-v2 with tools/fetch-model",
                            path.string()));
  }
  ModelFolder folder;
  folder.path = path;
  Result<ModelConfig> config = read_config(folder);
  if (!config) return std::unexpected(config.error());
  folder.config = std::move(*config);
  folder.stamp = stamp_files(folder);

  Result<Safetensors> weights = Safetensors::open(folder.transformer / "model.safetensors");
  if (!weights && weights.error().code == ErrorCode::kNotFound)
    return std::unexpected(no_weights(folder.transformer));
  if (!weights) return std::unexpected(weights.error());
  folder.weights = std::move(*weights);

  constexpr std::string_view kFirst = "embeddings.word_embeddings.weight";
  if (!folder.weights.contains(kFirst) && folder.weights.contains(fmt::format("bert.{}", kFirst)))
    folder.tensor_prefix = "bert.";
  for (const auto& [name, shape] : needed_tensors(folder.config)) {
    if (const Result<Tensor> tensor = folder.tensor(name, shape); !tensor)
      return std::unexpected(tensor.error());
  }
  return folder;
}

Result<Tensor> ModelFolder::tensor(std::string_view name, std::span<const std::size_t> shape) const {
  std::string full = tensor_prefix + std::string(name);
  if (!weights.contains(full)) {
    const std::string old = old_name(full);
    if (!old.empty() && weights.contains(old)) full = old;
  }
  return weights.tensor(full, shape);
}

}  // namespace waybill::embed
