// What all checks of a configuration share: where they look, and where they tell.
#pragma once

#include <algorithm>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "config/config.h"

namespace waybill::config {

// The base of the checkers. Borrows all that it is made of.
class CheckContext {
 public:
  using Lines = std::map<std::string, int, std::less<>>;  // where each given key stands ("head.top_k" -> 7)

  CheckContext(Config& config, const Lines& lines, const std::string& file, std::vector<Diagnostic>& errors)
      : config_(config), lines_(lines), file_(file), errors_(errors) {}

 protected:
  void error(const Position& at, std::string key, std::string message) {
    errors_.push_back({at, std::move(key), std::move(message)});
  }
  void error(std::string key, std::string message) {
    errors_.push_back({line_of(key), std::move(key), std::move(message)});
  }
  void warn(const Position& at, std::string key, std::string message) {
    config_.warnings.push_back({at, std::move(key), std::move(message)});
  }
  void warn(std::string key, std::string message) {
    config_.warnings.push_back({line_of(key), std::move(key), std::move(message)});
  }

  // Where a key was given, else the file as a whole.
  [[nodiscard]] Position line_of(std::string_view key) const {
    const auto found = lines_.find(key);
    return {file_, found != lines_.end() ? found->second : 0};
  }
  // Where a key was given, else `otherwise`.
  [[nodiscard]] Position line_of(std::string_view key, const Position& otherwise) const {
    const auto found = lines_.find(key);
    return found != lines_.end() ? Position{file_, found->second} : otherwise;
  }
  [[nodiscard]] bool is_wrong(std::string_view key) const {
    return std::ranges::any_of(errors_, [key](const Diagnostic& told) { return told.key == key; });
  }

  Config& config_;
  const Lines& lines_;
  const std::string& file_;
  std::vector<Diagnostic>& errors_;
};

}  // namespace waybill::config
