#include "config/secret.h"

#include <algorithm>
#include <cstdlib>

#include <fmt/format.h>
#include <string.h>  // explicit_bzero

#include "base/file.h"
#include "base/trim.h"

namespace waybill::config {
namespace {

Result<std::string> checked(std::string_view text, const std::string& place, const std::string& field) {
  const std::string_view secret = trimmed(text);
  if (secret.empty())
    return fail(ErrorCode::kInvalidInput, fmt::format("{} is empty; put the key there.", place), field);
  if (secret.size() > kMostSecretBytes) {
    return fail(
        ErrorCode::kInvalidInput,
        fmt::format("{} holds {} bytes; a key has at most {}.", place, secret.size(), kMostSecretBytes),
        field);
  }
  if (std::ranges::any_of(secret, [](char c) { return (c >= 0 && c < ' ') || c == 0x7F; })) {
    return fail(
        ErrorCode::kInvalidInput,
        fmt::format("{} holds a line break or a control character; a key is one line of text.", place),
        field);
  }
  return std::string(secret);
}

}  // namespace

Result<std::string> read_secret(const SecretSource& source, std::string_view field) {
  if (!source.env.empty()) {
    const std::string at = fmt::format("{}.env", field);
    const char* value = std::getenv(source.env.c_str());
    if (value == nullptr) {
      return fail(ErrorCode::kNotFound,
                  fmt::format("The environment variable {} is not set; it is to hold a key.", source.env),
                  at);
    }
    return checked(value, "The environment variable " + source.env, at);
  }
  const std::string at = fmt::format("{}.file", field);
  Result<std::string> text = read_file(source.file, 2 * kMostSecretBytes);
  if (!text) return fail(text.error().code, text.error().message, at);
  const std::string_view whole = *text;
  Result<std::string> secret =
      checked(whole.substr(0, whole.find('\n')), "The first line of " + source.file.string(), at);
  ::explicit_bzero(text->data(), text->size());
  return secret;
}

}  // namespace waybill::config
