// Bodies of POST /v1/embeddings: whatever is read keeps its promises, whatever is refused has a message.
#include <cstdint>
#include <string_view>

#include "api/embedding_request.h"
#include "base/check.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace waybill;
  constexpr std::size_t kMostInputs = 8, kDim = 384;
  api::JsonBody body;
  api::EmbeddingRequest wanted;
  Status read = body.parse({reinterpret_cast<const char*>(data), size});
  if (read) read = api::read_embedding_request(body, "model", kDim, kMostInputs, wanted);
  if (!read) {
    WAYBILL_CHECK(read.error().code == ErrorCode::kInvalidInput || read.error().code == ErrorCode::kNotFound);
    WAYBILL_CHECK(!read.error().message.empty());
    return 0;
  }
  WAYBILL_CHECK(!wanted.inputs.empty() && wanted.inputs.size() <= kMostInputs);
  WAYBILL_CHECK(wanted.dimensions <= kDim);
  for (const auto& ids : wanted.ids) {
    for (const embed::TokenId id : ids) WAYBILL_CHECK(id >= 0);
  }
  return 0;
}
