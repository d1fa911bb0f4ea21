#include "config/secret_checks.h"

#include <algorithm>

#include <fmt/format.h>

namespace waybill::config {
namespace {

bool is_variable_name(std::string_view name) {
  return !name.empty() && !(name.front() >= '0' && name.front() <= '9') &&
         std::ranges::all_of(name, [](char c) {
           return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
         });
}

class SecretChecker : CheckContext {
 public:
  SecretChecker(const CheckContext& context, const std::vector<SecretSource>& secrets, std::string_view list,
                std::string_view example)
      : CheckContext(context), secrets_(secrets), list_(list), example_(example) {}

  void check_all() {
    for (std::size_t i = 0; i < secrets_.size(); ++i) check(i);
  }

 private:
  void check(std::size_t i) {
    const SecretSource& secret = secrets_[i];
    const std::string path = fmt::format("{}[{}]", list_, i);
    const bool told = is_wrong(path + ".env") || is_wrong(path + ".file");
    if (secret.env.empty() == secret.file.empty() && !told) {
      error(secret.position, path,
            fmt::format("{} must have one of env and file{}", path,
                        secret.env.empty() ? "; add where the key comes from" : ", not both; remove one"));
    }
    // Whoever puts the key itself here must not find it in a log.
    if (!secret.env.empty() && !is_variable_name(secret.env)) {
      error(secret.position, path + ".env",
            fmt::format(
                "{}.env is not the name of an environment variable; write the variable that holds the key "
                "({}), not the key, and no $",
                path, example_));
    }
    for (std::size_t j = 0; j < i; ++j) {
      const SecretSource& before = secrets_[j];
      if (before.env != secret.env || before.file != secret.file) continue;
      error(secret.position, path, fmt::format("{} is the same key as {}[{}]; remove one", path, list_, j));
      return;
    }
  }

  const std::vector<SecretSource>& secrets_;
  std::string_view list_, example_;
};

}  // namespace

void check_secrets(const CheckContext& context, const std::vector<SecretSource>& secrets,
                   std::string_view path, std::string_view example) {
  SecretChecker(context, secrets, path, example).check_all();
}

}  // namespace waybill::config
