#include "embed/tokenizer_files.h"

#include <algorithm>
#include <array>
#include <optional>
#include <utility>

#include <boost/json/array.hpp>
#include <fmt/format.h>

#include "base/utf8.h"
#include "embed/json.h"

namespace waybill::embed {
namespace {

namespace json = boost::json;

constexpr std::string_view kFile = "tokenizer.json";
constexpr std::size_t kMaxId = (1 << 22) - 1;

std::string_view view(const json::string& s) { return {s.data(), s.size()}; }
std::string_view view(json::string_view s) { return {s.data(), s.size()}; }

std::unexpected<Error> corrupt(std::string message) { return fail(ErrorCode::kCorrupt, std::move(message)); }

std::unexpected<Error> unsupported(std::string_view part, std::string_view found,
                                   std::string_view supported) {
  return fail(ErrorCode::kUnsupported,
              fmt::format("{}: a {} of type {} is not supported, only {}; use a BERT model (WordPiece)",
                          kFile, part, found.empty() ? "(none)" : quoted(found), supported),
              std::string(part));
}

// The object under `key`, which must be there and have the "type" asked for.
Result<JsonFields> typed_object(const JsonFields& root, std::string_view key, std::string_view type) {
  const json::value* value = root.object().if_contains(json::string_view(key.data(), key.size()));
  if (value == nullptr || value->is_null()) return unsupported(key, "", type);
  auto fields = JsonFields::of(*value, kFile);
  if (!fields) return fields;
  const std::string_view found = fields->text("type");
  if (found != type) return unsupported(key, found, type);
  return fields;
}

std::optional<TokenId> token_id(const json::value& value) {
  json::error_code ec;
  const auto id = value.is_number() ? value.to_number<std::uint64_t>(ec) : 0;
  if (!value.is_number() || ec || id > kMaxId) return std::nullopt;
  return static_cast<TokenId>(id);
}

Status read_normalizer(const JsonFields& root, TokenizerDefinition& out) {
  auto fields = typed_object(root, "normalizer", "BertNormalizer");
  if (!fields) return std::unexpected(fields.error());
  out.lowercase = fields->boolean("lowercase", true);
  out.strip_accents = fields->boolean("strip_accents", out.lowercase);  // null: as lowercase
  out.clean_text = fields->boolean("clean_text", true);
  out.handle_chinese_chars = fields->boolean("handle_chinese_chars", true);
  return fields->status();
}

Status read_model(const JsonFields& root, TokenizerDefinition& out) {
  auto model = typed_object(root, "model", "WordPiece");
  if (!model) return std::unexpected(model.error());
  out.continuing_prefix = model->text("continuing_subword_prefix", "##");
  out.max_word_chars = model->size("max_input_chars_per_word", 1, kMaxWordChars, 100);
  const std::string_view unk = model->text("unk_token", "[UNK]");
  if (!model->status()) return model->status();
  const json::value* vocab = model->object().if_contains("vocab");
  const json::object* pieces = vocab != nullptr ? vocab->if_object() : nullptr;
  if (pieces == nullptr || pieces->empty()) return corrupt(fmt::format("{}: the model has no vocab", kFile));
  out.vocabulary.reserve(pieces->size());
  std::vector<bool> taken(kMaxId + 1);
  for (const json::key_value_pair& piece : *pieces) {
    const auto id = token_id(piece.value());
    if (!id)
      return corrupt(fmt::format("{}: the id of {} is not a whole number up to {}", kFile,
                                 quoted(view(piece.key())), kMaxId));
    if (taken[static_cast<std::size_t>(*id)])
      return corrupt(fmt::format("{}: two pieces have the id {}", kFile, *id));
    taken[static_cast<std::size_t>(*id)] = true;
    out.vocabulary.push_back({std::string(view(piece.key())), *id});
  }
  const json::value* unk_value = pieces->if_contains(json::string_view(unk.data(), unk.size()));
  const auto unk_id = unk_value != nullptr ? token_id(*unk_value) : std::nullopt;
  if (!unk_id)
    return corrupt(fmt::format("{}: the unknown token {} is not in the vocab", kFile, quoted(unk)));
  out.unk = *unk_id;
  return {};
}

Status read_added_tokens(const JsonFields& root, TokenizerDefinition& out) {
  const json::value* added = root.object().if_contains("added_tokens");
  if (added == nullptr || added->is_null()) return {};
  const json::array* list = added->if_array();
  if (list == nullptr) return corrupt(fmt::format("{}: added_tokens must be a list", kFile));
  for (const json::value& token : *list) {
    auto fields = JsonFields::of(token, "tokenizer.json, added_tokens");
    if (!fields) return std::unexpected(fields.error());
    const std::string_view content = fields->text("content");
    const std::size_t id = fields->required_size("id", 0, kMaxId);
    // (lstrip and rstrip take the white space beside a token, which is nothing but a border here.)
    const bool normalized = fields->boolean("normalized", false);
    const bool single_word = fields->boolean("single_word", false);
    if (!fields->status()) return fields->status();
    if (content.empty()) return corrupt(fmt::format("{}: an added token has no content", kFile));
    if (normalized || single_word) {
      return fail(ErrorCode::kUnsupported,
                  fmt::format("{}: the added token {} is \"{}\", which is not supported", kFile,
                              quoted(content), normalized ? "normalized" : "single_word"),
                  "added_tokens");
    }
    out.special_tokens.push_back({std::string(content), static_cast<TokenId>(id)});
  }
  return {};
}

// {"type": "BertProcessing", "sep": ["[SEP]", 102], "cls": ["[CLS]", 101]}
std::optional<TokenId> bert_processing_id(const json::object& processor, std::string_view key) {
  const json::value* value = processor.if_contains(json::string_view(key.data(), key.size()));
  const json::array* pair = value != nullptr ? value->if_array() : nullptr;
  return pair != nullptr && pair->size() == 2 ? token_id((*pair)[1]) : std::nullopt;
}

// One item of {"type": "TemplateProcessing", "single": [{"SpecialToken": {"id": "[CLS]"}}, {"Sequence":
// {"id": "A"}}, ...], "special_tokens": {"[CLS]": {"ids": [101]}, ...}}.
std::optional<TokenId> template_id(const json::object& processor, const json::value& item) {
  const json::object* object = item.if_object();
  const json::value* token = object != nullptr ? object->if_contains("SpecialToken") : nullptr;
  const json::object* fields = token != nullptr ? token->if_object() : nullptr;
  const json::value* name = fields != nullptr ? fields->if_contains("id") : nullptr;
  const json::value* tokens = processor.if_contains("special_tokens");
  if (name == nullptr || !name->is_string() || tokens == nullptr || !tokens->is_object()) return std::nullopt;
  const json::value* entry = tokens->get_object().if_contains(name->get_string());
  const json::value* ids =
      entry != nullptr && entry->is_object() ? entry->get_object().if_contains("ids") : nullptr;
  const json::array* list = ids != nullptr ? ids->if_array() : nullptr;
  return list != nullptr && list->size() == 1 ? token_id((*list)[0]) : std::nullopt;
}

Status read_post_processor(const JsonFields& root, TokenizerDefinition& out) {
  const json::value* value = root.object().if_contains("post_processor");
  const json::object* processor = value != nullptr ? value->if_object() : nullptr;
  if (processor == nullptr) return unsupported("post_processor", "", "TemplateProcessing and BertProcessing");
  auto fields = JsonFields::of(*value, kFile);
  if (!fields) return std::unexpected(fields.error());
  const std::string_view type = fields->text("type");
  std::optional<TokenId> cls;
  std::optional<TokenId> sep;
  if (type == "BertProcessing") {
    cls = bert_processing_id(*processor, "cls");
    sep = bert_processing_id(*processor, "sep");
  } else if (type == "TemplateProcessing") {
    const json::value* single = processor->if_contains("single");
    const json::array* items = single != nullptr ? single->if_array() : nullptr;
    const bool three = items != nullptr && items->size() == 3;
    if (three && (*items)[1].is_object() && (*items)[1].get_object().contains("Sequence")) {
      cls = template_id(*processor, (*items)[0]);
      sep = template_id(*processor, (*items)[2]);
    }
  } else {
    return unsupported("post_processor", type, "TemplateProcessing and BertProcessing");
  }
  if (!cls || !sep) {
    return fail(
        ErrorCode::kUnsupported,
        fmt::format(
            "{}: the post_processor must put one token before the text and one after it ([CLS] text [SEP])",
            kFile),
        "post_processor");
  }
  out.cls = *cls;
  out.sep = *sep;
  return {};
}

// [CLS] and [SEP] are ids of the vocabulary or of added tokens; anything else would lead out of the model's
// table.
Status check_ids(const TokenizerDefinition& definition) {
  for (const auto& [id, what] : {std::pair{definition.cls, "first"}, std::pair{definition.sep, "last"}}) {
    const auto is_it = [id](const Piece& piece) { return piece.id == id; };
    if (std::ranges::none_of(definition.vocabulary, is_it) &&
        std::ranges::none_of(definition.special_tokens, is_it)) {
      return corrupt(
          fmt::format("{}: the {} token of a text has the id {}, which no piece has", kFile, what, id));
    }
  }
  return {};
}

// "[CLS]" or {"content": "[CLS]", ...}
std::string token_name(const json::object& config, std::string_view key, std::string_view by_default) {
  const json::value* value = config.if_contains(json::string_view(key.data(), key.size()));
  if (value != nullptr && value->is_object()) value = value->get_object().if_contains("content");
  return value != nullptr && value->is_string() ? std::string(view(value->get_string()))
                                                : std::string(by_default);
}

Status read_config(JsonFields& fields, TokenizerDefinition& out) {
  out.lowercase = fields.boolean("do_lower_case", true);
  out.strip_accents = fields.boolean("strip_accents", out.lowercase);
  out.handle_chinese_chars = fields.boolean("tokenize_chinese_chars", true);
  const std::string_view name = fields.text("tokenizer_class", "BertTokenizer");
  if (name != "BertTokenizer" && name != "BertTokenizerFast") {
    return fail(ErrorCode::kUnsupported,
                fmt::format("tokenizer_config.json: the tokenizer {} is not supported, only BertTokenizer",
                            quoted(name)),
                "tokenizer_class");
  }
  return fields.status();
}

}  // namespace

Result<TokenizerDefinition> read_tokenizer_json(std::string_view tokenizer_json) {
  const auto document = parse_json(tokenizer_json, kFile);
  if (!document) return std::unexpected(document.error());
  const auto root = JsonFields::of(*document, kFile);
  if (!root) return std::unexpected(root.error());
  TokenizerDefinition out;
  // The model first: its type is what a foreign tokenizer differs in.
  if (const Status read = read_model(*root, out); !read) return std::unexpected(read.error());
  if (const Status read = read_normalizer(*root, out); !read) return std::unexpected(read.error());
  const auto pre_tokenizer = typed_object(*root, "pre_tokenizer", "BertPreTokenizer");
  if (!pre_tokenizer) return std::unexpected(pre_tokenizer.error());
  if (const Status read = read_added_tokens(*root, out); !read) return std::unexpected(read.error());
  if (const Status read = read_post_processor(*root, out); !read) return std::unexpected(read.error());
  if (const Status checked = check_ids(out); !checked) return std::unexpected(checked.error());
  return out;
}

Result<TokenizerDefinition> read_vocabulary(std::string_view vocab_txt,
                                            std::string_view tokenizer_config_json) {
  TokenizerDefinition out;
  std::array<std::string, 5> names = {"[UNK]", "[CLS]", "[SEP]", "[PAD]", "[MASK]"};
  if (!tokenizer_config_json.empty()) {
    constexpr std::array<std::string_view, 5> kKeys = {"unk_token", "cls_token", "sep_token", "pad_token",
                                                       "mask_token"};
    const auto document = parse_json(tokenizer_config_json, "tokenizer_config.json");
    if (!document) return std::unexpected(document.error());
    auto fields = JsonFields::of(*document, "tokenizer_config.json");
    if (!fields) return std::unexpected(fields.error());
    if (const Status read = read_config(*fields, out); !read) return std::unexpected(read.error());
    for (std::size_t i = 0; i < names.size(); ++i)
      names[i] = token_name(fields->object(), kKeys[i], names[i]);
  }
  if (!is_valid_utf8(vocab_txt)) return corrupt("vocab.txt is not valid UTF-8; fetch the file again");
  std::array<TokenId, 5> ids = {};
  ids.fill(Vocabulary::kNone);
  for (TokenId id = 0; !vocab_txt.empty(); ++id) {
    if (static_cast<std::size_t>(id) > kMaxId)
      return corrupt(fmt::format("vocab.txt has more than {} lines", kMaxId + 1));
    const std::size_t end = std::min(vocab_txt.find('\n'), vocab_txt.size());
    std::string_view line = vocab_txt.substr(0, end);
    if (line.ends_with('\r')) line.remove_suffix(1);
    for (std::size_t i = 0; i < names.size(); ++i) {
      if (!line.empty() && line == names[i]) ids[i] = id;
    }
    out.vocabulary.push_back({std::string(line), id});
    vocab_txt.remove_prefix(std::min(end + 1, vocab_txt.size()));
  }
  for (std::size_t i = 0; i < names.size(); ++i) {
    if (ids[i] != Vocabulary::kNone) out.special_tokens.push_back({names[i], ids[i]});
    if (i < 3 && ids[i] == Vocabulary::kNone)
      return corrupt(fmt::format("vocab.txt has no line {}", quoted(names[i])));
  }
  out.unk = ids[0];
  out.cls = ids[1];
  out.sep = ids[2];
  return out;
}

}  // namespace waybill::embed
