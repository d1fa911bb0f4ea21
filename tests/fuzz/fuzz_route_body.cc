// Bodies of POST /route: whatever is read keeps its promises, whatever is refused has a message.
#include <cstdint>
#include <string_view>

#include "api/question.h"
#include "base/check.h"
#include "base/utf8.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace waybill;
  constexpr std::size_t kMostInputs = 8;
  api::JsonBody body;
  api::Question question;
  Status read = body.parse({reinterpret_cast<const char*>(data), size});
  if (read) read = api::read_question(body, kMostInputs, question);
  if (!read) {
    WAYBILL_CHECK(read.error().code == ErrorCode::kInvalidInput && !read.error().message.empty());
    return 0;
  }
  WAYBILL_CHECK(question.prompt.has_value() == question.inputs.empty());
  WAYBILL_CHECK(question.inputs.size() <= kMostInputs);
  WAYBILL_CHECK(!question.explain || question.prompt);
  WAYBILL_CHECK(!question.timeout_ms || (*question.timeout_ms >= 1 && *question.timeout_ms <= 86'400'000));
  if (question.prompt) WAYBILL_CHECK(is_valid_utf8(*question.prompt));
  for (const std::string_view input : question.inputs) WAYBILL_CHECK(is_valid_utf8(input));
  return 0;
}
