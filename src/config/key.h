// What describe.h tells a visitor of a key.
#pragma once

#include <string>
#include <string_view>

#include "base/clock.h"

namespace waybill::config {

struct Key {
  std::string_view name;
  std::string_view about;
  bool required = false;
};

struct Bounds {
  double min, max;  // both inclusive
};

template <class Enum>
struct Choice {
  std::string_view name;
  Enum value;
};

struct DurationBounds {
  Duration min, max;  // both inclusive
};

// As it is written: "90s", "250ms", with the greatest unit (d, h, m, s, ms) that it is a whole number of.
[[nodiscard]] std::string duration_text(Duration value);

}  // namespace waybill::config
