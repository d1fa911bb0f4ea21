#include "api/question.h"

#include <boost/json/array.hpp>
#include <fmt/format.h>

namespace waybill::api {
namespace {

Status read_inputs(const boost::json::value& value, std::size_t most, std::vector<std::string_view>& inputs) {
  const boost::json::array* array = value.if_array();
  if (array == nullptr) return wrong_type("inputs", "an array of strings", value);
  if (array->empty() || array->size() > most) {
    return fail(
        ErrorCode::kInvalidInput,
        fmt::format("\"inputs\" has {} prompts; it takes 1 to {} (server.max_inputs).", array->size(), most),
        "inputs");
  }
  for (std::size_t i = 0; i < array->size(); ++i) {
    const boost::json::string* text = (*array)[i].if_string();
    if (text == nullptr) return wrong_type(fmt::format("inputs[{}]", i), "a string", (*array)[i]);
    inputs.emplace_back(text->data(), text->size());
  }
  return {};
}

}  // namespace

Status read_question(const JsonBody& body, std::size_t max_inputs, Question& question) {
  if (Status known = body.check_fields({"prompt", "inputs", "explain", "allow_degraded", "timeout_ms"});
      !known)
    return known;
  const auto prompt = body.text("prompt");
  if (!prompt) return std::unexpected(prompt.error());
  question.prompt = *prompt;
  const boost::json::value* inputs = body.find("inputs");
  if (question.prompt && inputs != nullptr) {
    return fail(ErrorCode::kInvalidInput, "Give either \"prompt\" or \"inputs\", not both.", "inputs");
  }
  if (!question.prompt && inputs == nullptr) return missing_field("prompt", "the text to find a route for");
  if (inputs != nullptr) {
    if (Status read = read_inputs(*inputs, max_inputs, question.inputs); !read) return read;
  }
  const auto explain = body.flag("explain");
  if (!explain) return std::unexpected(explain.error());
  question.explain = explain->value_or(false);
  if (question.explain && inputs != nullptr) {
    return fail(ErrorCode::kInvalidInput, "\"explain\" goes with one \"prompt\", not with \"inputs\".",
                "explain");
  }
  const auto allow_degraded = body.flag("allow_degraded");
  if (!allow_degraded) return std::unexpected(allow_degraded.error());
  question.allow_degraded = allow_degraded->value_or(true);
  constexpr std::int64_t kDayMs = 86'400'000;
  const auto timeout = body.integer("timeout_ms", 1, kDayMs);
  if (!timeout) return std::unexpected(timeout.error());
  question.timeout_ms = *timeout;
  return {};
}

}  // namespace waybill::api
