// How patterns are compiled, by the check of the configuration and by the rules alike.
#pragma once

#include <cstdint>

#include <re2/re2.h>

namespace waybill::config {

// Of one compiled pattern and its matching automata together; a pattern that needs more is refused.
inline constexpr std::int64_t kRegexMemoryBytes = 4 << 20;

[[nodiscard]] inline re2::RE2::Options regex_options(bool case_sensitive = true) {
  re2::RE2::Options options;
  options.set_case_sensitive(case_sensitive);
  options.set_max_mem(kRegexMemoryBytes);
  options.set_log_errors(false);
  options.set_never_capture(true);
  return options;
}

}  // namespace waybill::config
