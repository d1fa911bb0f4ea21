// What the body of POST /v1/embeddings asks for.
#pragma once

#include <cstddef>
#include <string_view>
#include <vector>

#include "api/json_body.h"
#include "embed/embedding_service.h"

namespace waybill::api {

// Texts point into the JsonBody, ids into `ids`.
struct EmbeddingRequest {
  std::vector<embed::EmbeddingInput> inputs;
  std::vector<std::vector<embed::TokenId>> ids;
  std::size_t dimensions = 0;  // 0: all
  bool base64 = false;
};

// `dim`: of the model, which bounds the dimensions that may be asked for. kInvalidInput with the field that
// is wrong; kNotFound for another model.
[[nodiscard]] Status read_embedding_request(const JsonBody& body, std::string_view model_name,
                                            std::size_t dim, std::size_t max_inputs,
                                            EmbeddingRequest& wanted);

}  // namespace waybill::api
