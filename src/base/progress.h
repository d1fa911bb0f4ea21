// How long work tells how far it is. The work calls it often; who shows it decides how often to draw.
#pragma once

#include <cstddef>
#include <functional>
#include <string_view>

namespace waybill {

// (what is being done, done so far, total). Called from the thread that does the work, or under a lock.
using Progress = std::function<void(std::string_view what, std::size_t done, std::size_t total)>;

inline void report(const Progress& progress, std::string_view what, std::size_t done, std::size_t total) {
  if (progress) progress(what, done, total);
}

}  // namespace waybill
