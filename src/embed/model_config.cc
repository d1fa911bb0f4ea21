#include "embed/model_config.h"

#include <algorithm>
#include <array>
#include <cmath>

#include <boost/json/array.hpp>
#include <fmt/format.h>

#include "embed/json.h"

namespace waybill::embed {
namespace {

namespace json = boost::json;

// Far above every published BERT; what keeps products of sizes within 64 bits and memory within reason.
constexpr std::size_t kMaxHidden = 1 << 14;
constexpr std::size_t kMaxLayers = 1 << 10;
constexpr std::size_t kMaxIntermediate = 1 << 17;
constexpr std::size_t kMaxVocabulary = 1 << 22;
constexpr std::size_t kMaxPositions = 1 << 20;
constexpr std::size_t kMaxTypes = 1 << 10;
constexpr std::size_t kMinTokens = 3;  // [CLS], one piece, [SEP]

std::unexpected<Error> unsupported(std::string message, std::string field) {
  return fail(ErrorCode::kUnsupported, std::move(message), std::move(field));
}

// A folder that modules.json names: inside the model folder, whatever the file says.
bool is_inside(const std::filesystem::path& path) {
  return !path.is_absolute() && std::ranges::none_of(path, [](const auto& part) { return part == ".."; });
}

// "sentence_transformers.models.Pooling" -> "Pooling"; the packages before the last dot have changed over
// time.
std::string_view class_name(std::string_view type) { return type.substr(type.rfind('.') + 1); }

Status read_sizes(JsonFields& fields, ModelConfig& config) {
  struct Size {
    std::string_view key;
    std::size_t max;
    std::size_t ModelConfig::* member;
  };
  static constexpr std::array kSizes = {
      Size{"hidden_size", kMaxHidden, &ModelConfig::hidden},
      Size{"num_hidden_layers", kMaxLayers, &ModelConfig::layers},
      Size{"num_attention_heads", kMaxHidden, &ModelConfig::heads},
      Size{"intermediate_size", kMaxIntermediate, &ModelConfig::intermediate},
      Size{"vocab_size", kMaxVocabulary, &ModelConfig::vocabulary},
      Size{"max_position_embeddings", kMaxPositions, &ModelConfig::positions},
      Size{"type_vocab_size", kMaxTypes, &ModelConfig::types},
  };
  for (const Size& size : kSizes) config.*size.member = fields.required_size(size.key, 1, size.max);
  const double epsilon = fields.number("layer_norm_eps", 1e-12);  // the default of transformers' BertConfig
  if (!fields.status()) return fields.status();
  if (config.hidden % config.heads != 0) {
    return fail(ErrorCode::kCorrupt,
                fmt::format("config.json: hidden_size {} is not a multiple of num_attention_heads {}",
                            config.hidden, config.heads),
                "num_attention_heads");
  }
  if (config.positions < kMinTokens) {
    return fail(ErrorCode::kCorrupt,
                fmt::format("config.json: max_position_embeddings must be at least {}", kMinTokens),
                "max_position_embeddings");
  }
  if (!(static_cast<float>(epsilon) > 0 && epsilon <= 0.1)) {
    return fail(ErrorCode::kCorrupt, "config.json: layer_norm_eps must be above 0 and at most 0.1",
                "layer_norm_eps");
  }
  config.layer_norm_eps = static_cast<float>(epsilon);
  return {};
}

Status read_kind(JsonFields& fields, ModelConfig& config) {
  const std::string_view type = fields.text("model_type", "(none)");
  const std::string_view positions = fields.text("position_embedding_type", "absolute");
  const std::string_view activation = fields.text("hidden_act", "gelu");
  const bool decoder = fields.boolean("is_decoder", false);
  if (!fields.status()) return fields.status();
  if (type != "bert") {
    return unsupported(
        fmt::format("config.json: model_type {} is not supported; use a model of type \"bert\", such as "
                    "all-MiniLM-L6-v2, bge-small-en-v1.5 or e5-small-v2",
                    quoted(type)),
        "model_type");
  }
  if (positions != "absolute") {
    return unsupported(
        fmt::format("config.json: position_embedding_type {} is not supported, only \"absolute\"",
                    quoted(positions)),
        "position_embedding_type");
  }
  if (decoder)
    return unsupported("config.json: is_decoder is true; only encoders are supported", "is_decoder");
  if (activation == "gelu") {
    config.activation = Activation::kGelu;
  } else if (activation == "gelu_new" || activation == "gelu_pytorch_tanh") {
    config.activation = Activation::kGeluTanh;
  } else if (activation == "relu") {
    config.activation = Activation::kRelu;
  } else {
    return unsupported(
        fmt::format("config.json: hidden_act {} is not supported, only gelu, gelu_new, gelu_pytorch_tanh "
                    "and relu",
                    quoted(activation)),
        "hidden_act");
  }
  return {};
}

Result<Pooling> pooling_of(std::string_view name) {
  if (name == "mean") return Pooling::kMean;
  if (name == "cls") return Pooling::kCls;
  return unsupported(fmt::format("the pooling {} is not supported, only mean and cls", quoted(name)),
                     "pooling_mode");
}

// Two spellings: {"pooling_mode": "mean"} and, before sentence-transformers 5.3, one flag for each mode.
Result<Pooling> read_pooling(JsonFields& fields, const ModelConfig& config) {
  for (const std::string_view key : {"word_embedding_dimension", "embedding_dimension"}) {
    const std::size_t dimension = fields.size(key, 1, kMaxHidden, config.hidden);
    if (dimension != config.hidden) {
      return fail(ErrorCode::kCorrupt,
                  fmt::format("the pooling config says {} is {}, but config.json has hidden_size {}", key,
                              dimension, config.hidden),
                  std::string(key));
    }
  }
  if (const json::value* mode = fields.object().if_contains("pooling_mode")) {
    if (const json::array* list = mode->if_array(); list != nullptr && list->size() == 1) mode = list->data();
    if (!mode->is_string())
      return unsupported("several poolings at once are not supported, only mean or cls", "pooling_mode");
    return pooling_of({mode->get_string().data(), mode->get_string().size()});
  }
  struct Flag {
    std::string_view key, mode;
    bool by_default;
  };
  static constexpr std::array kFlags = {
      Flag{"pooling_mode_cls_token", "cls", false},
      Flag{"pooling_mode_mean_tokens", "mean", true},
      Flag{"pooling_mode_max_tokens", "max", false},
      Flag{"pooling_mode_mean_sqrt_len_tokens", "mean_sqrt_len", false},
      Flag{"pooling_mode_weightedmean_tokens", "weightedmean", false},
      Flag{"pooling_mode_lasttoken", "lasttoken", false},
  };
  std::string modes;
  for (const Flag& flag : kFlags) {
    if (fields.boolean(flag.key, flag.by_default))
      modes += fmt::format("{}{}", modes.empty() ? "" : " + ", flag.mode);
  }
  if (!fields.status()) return std::unexpected(fields.status().error());
  return pooling_of(modes);
}

// How long a sequence may be: max_seq_length, else what the tokenizer says, never more than there are
// positions.
Result<std::size_t> read_max_tokens(const ModelFiles& files, const ModelConfig& config) {
  if (!files.sentence_bert_config.empty()) {
    const auto document = parse_json(files.sentence_bert_config, "sentence_bert_config.json");
    if (!document) return std::unexpected(document.error());
    auto fields = JsonFields::of(*document, "sentence_bert_config.json");
    if (!fields) return std::unexpected(fields.error());
    const std::size_t length = fields->size("max_seq_length", kMinTokens, kMaxPositions, 0);
    if (!fields->status()) return std::unexpected(fields->status().error());
    if (length != 0) return std::min(length, config.positions);
  }
  if (!files.tokenizer_config.empty()) {
    const auto document = parse_json(files.tokenizer_config, "tokenizer_config.json");
    if (!document) return std::unexpected(document.error());
    auto fields = JsonFields::of(*document, "tokenizer_config.json");
    if (!fields) return std::unexpected(fields.error());
    const double length = fields->number("model_max_length", 0);  // 1e30 where there is no limit
    if (!fields->status()) return std::unexpected(fields->status().error());
    if (length >= static_cast<double>(kMinTokens) && length < static_cast<double>(config.positions)) {
      return static_cast<std::size_t>(length);
    }
  }
  return config.positions;
}

Result<std::string> read_query_prefix(std::string_view text) {
  if (text.empty()) return std::string();
  const auto document = parse_json(text, "config_sentence_transformers.json");
  if (!document) return std::unexpected(document.error());
  const json::object* object = document->if_object();
  const json::value* prompts = object != nullptr ? object->if_contains("prompts") : nullptr;
  const json::object* by_name = prompts != nullptr ? prompts->if_object() : nullptr;
  const json::value* query = by_name != nullptr ? by_name->if_contains("query") : nullptr;
  const json::string* prefix = query != nullptr ? query->if_string() : nullptr;
  return prefix != nullptr ? std::string(prefix->data(), prefix->size()) : std::string();
}

}  // namespace

Result<ModuleList> read_modules(std::string_view modules_json) {
  if (modules_json.empty()) return ModuleList{};
  const auto document = parse_json(modules_json, "modules.json");
  if (!document) return std::unexpected(document.error());
  const json::array* list = document->if_array();
  if (list == nullptr) return fail(ErrorCode::kCorrupt, "modules.json must hold a list of modules");
  ModuleList modules;
  modules.normalize = false;
  static constexpr std::array<std::string_view, 3> kOrder = {"Transformer", "Pooling", "Normalize"};
  for (std::size_t i = 0; i < list->size(); ++i) {
    const std::string entry = fmt::format("modules.json, entry {}", i);
    auto fields = JsonFields::of((*list)[i], entry);
    if (!fields) return std::unexpected(fields.error());
    const std::string_view type = fields->text("type", "(none)");
    const std::string_view path = fields->text("path");
    if (!fields->status()) return std::unexpected(fields->status().error());
    if (i >= kOrder.size() || class_name(type) != kOrder[i]) {
      return unsupported(
          fmt::format("modules.json: module {} of type {} is not supported; a model is a Transformer, a "
                      "Pooling and perhaps a Normalize, in this order",
                      i, quoted(type)),
          "type");
    }
    const std::filesystem::path folder = path;
    if (!is_inside(folder)) {
      return fail(ErrorCode::kCorrupt,
                  fmt::format("modules.json: the path {} leads out of the model folder", quoted(path)),
                  "path");
    }
    if (i == 0) modules.transformer = folder;
    if (i == 1) modules.pooling = folder;
    if (i == 2) modules.normalize = true;
  }
  if (list->size() < 2 || modules.pooling.empty()) {
    return fail(ErrorCode::kCorrupt,
                "modules.json must list a Transformer and a Pooling module with its path");
  }
  return modules;
}

Result<ModelConfig> read_model_config(const ModelFiles& files) {
  const auto modules = read_modules(files.modules);
  if (!modules) return std::unexpected(modules.error());
  const auto document = parse_json(files.config, "config.json");
  if (!document) return std::unexpected(document.error());
  auto fields = JsonFields::of(*document, "config.json");
  if (!fields) return std::unexpected(fields.error());

  ModelConfig config;
  if (const Status kind = read_kind(*fields, config); !kind) return std::unexpected(kind.error());
  if (const Status sizes = read_sizes(*fields, config); !sizes) return std::unexpected(sizes.error());
  config.normalize = modules->normalize;
  if (!files.pooling.empty()) {
    const auto pooling_document = parse_json(files.pooling, "the pooling config.json");
    if (!pooling_document) return std::unexpected(pooling_document.error());
    auto pooling_fields = JsonFields::of(*pooling_document, "the pooling config.json");
    if (!pooling_fields) return std::unexpected(pooling_fields.error());
    const auto pooling = read_pooling(*pooling_fields, config);
    if (!pooling) return std::unexpected(pooling.error());
    config.pooling = *pooling;
  }
  const auto max_tokens = read_max_tokens(files, config);
  if (!max_tokens) return std::unexpected(max_tokens.error());
  config.max_tokens = *max_tokens;
  Result<std::string> prefix = read_query_prefix(files.prompts);
  if (!prefix) return std::unexpected(prefix.error());
  config.query_prefix = std::move(*prefix);
  return config;
}

}  // namespace waybill::embed
