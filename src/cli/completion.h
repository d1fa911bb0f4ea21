// Shell completions from the declarations of the commands.
#pragma once

#include <string>

namespace CLI {
class App;
}

namespace waybill::cli {

[[nodiscard]] std::string bash_completion(const CLI::App& root);
[[nodiscard]] std::string zsh_completion(const CLI::App& root);
[[nodiscard]] std::string fish_completion(const CLI::App& root);

}  // namespace waybill::cli
