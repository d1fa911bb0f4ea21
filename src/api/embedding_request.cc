#include "api/embedding_request.h"

#include <boost/json/array.hpp>
#include <fmt/format.h>

namespace waybill::api {
namespace {

namespace json = boost::json;
using embed::TokenId;

Status read_ids(const json::array& array, const std::string& field, EmbeddingRequest& wanted) {
  std::vector<TokenId>& ids = wanted.ids.emplace_back();
  ids.reserve(array.size());
  for (const json::value& each : array) {
    boost::system::error_code error;
    const auto id = each.is_number() ? each.to_number<TokenId>(error) : TokenId{-1};
    if (error || id < 0) return wrong_type(field, "an array of token ids (whole numbers)", each);
    ids.push_back(id);
  }
  wanted.inputs.emplace_back(std::span<const TokenId>(ids));
  return {};
}

// OpenAI takes a string, an array of strings, an array of token ids, or an array of such arrays.
Status read_inputs(const json::value& value, std::size_t most, EmbeddingRequest& wanted) {
  if (const json::string* text = value.if_string()) {
    wanted.inputs.emplace_back(std::string_view(text->data(), text->size()));
    return {};
  }
  const json::array* array = value.if_array();
  if (array == nullptr) return wrong_type("input", "a string, or an array of strings or of token ids", value);
  if (array->empty())
    return fail(ErrorCode::kInvalidInput, "\"input\" is empty; give at least one text.", "input");
  if (array->front().is_number()) return read_ids(*array, "input", wanted);
  if (array->size() > most) {
    return fail(ErrorCode::kInvalidInput,
                fmt::format("\"input\" has {} entries; at most {} are taken at once (server.max_inputs).",
                            array->size(), most),
                "input");
  }
  wanted.ids.reserve(array->size());  // inputs point into its elements
  for (std::size_t i = 0; i < array->size(); ++i) {
    const json::value& each = (*array)[i];
    const std::string field = fmt::format("input[{}]", i);
    if (const json::string* text = each.if_string()) {
      wanted.inputs.emplace_back(std::string_view(text->data(), text->size()));
    } else if (const json::array* ids = each.if_array()) {
      if (Status read = read_ids(*ids, field, wanted); !read) return read;
    } else {
      return wrong_type(field, "a string or an array of token ids", each);
    }
  }
  return {};
}

}  // namespace

Status read_embedding_request(const JsonBody& body, std::string_view model_name, std::size_t dim,
                              std::size_t max_inputs, EmbeddingRequest& wanted) {
  const auto model = body.text("model");
  if (!model) return std::unexpected(model.error());
  if (*model && **model != model_name) {
    return fail(ErrorCode::kNotFound,
                fmt::format("There is no embedding model \"{}\" here; use \"{}\".",
                            model->value().substr(0, 100), model_name),
                "model");
  }
  const auto format = body.text("encoding_format");
  if (!format) return std::unexpected(format.error());
  if (*format && **format != "float" && **format != "base64") {
    return fail(ErrorCode::kInvalidInput, "\"encoding_format\" must be \"float\" or \"base64\".",
                "encoding_format");
  }
  wanted.base64 = *format && **format == "base64";
  const auto dimensions = body.integer("dimensions", 1, static_cast<std::int64_t>(dim));
  if (!dimensions) return std::unexpected(dimensions.error());
  wanted.dimensions = static_cast<std::size_t>(dimensions->value_or(0));
  const json::value* input = body.find("input");
  if (input == nullptr) return missing_field("input", "the text or texts to embed");
  return read_inputs(*input, max_inputs, wanted);
}

}  // namespace waybill::api
