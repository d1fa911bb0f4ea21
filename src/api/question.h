// What the body of POST /route asks for.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "api/json_body.h"

namespace waybill::api {

// The views point into the JsonBody. Either `prompt` or `inputs`.
struct Question {
  std::optional<std::string_view> prompt;
  std::vector<std::string_view> inputs;  // a batch, instead of a prompt
  bool explain = false;
  bool allow_degraded = true;
  std::optional<std::int64_t> timeout_ms;
};

// kInvalidInput with the field that is wrong.
[[nodiscard]] Status read_question(const JsonBody& body, std::size_t max_inputs, Question& question);

}  // namespace waybill::api
