// Where a value stands in a configuration.
#pragma once

#include <string>

namespace waybill::config {

struct Position {
  std::string file;
  int line = 0;                            // from 1; 0: the file as a whole
  [[nodiscard]] std::string text() const;  // "waybill.yaml:12"

  friend bool operator==(const Position&, const Position&) = default;
};

}  // namespace waybill::config
