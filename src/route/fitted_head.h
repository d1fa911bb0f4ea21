// A head fitted, or taken from the cache of fitted ones.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "route/head.h"

namespace waybill::route {

struct FittedHead {
  Head head;
  std::vector<HeadDecision> held_out = {};  // Head::leave_one_out(), which a deserialised head no longer has
  bool from_cache = false;
  double seconds = 0;
  std::string note = {};  // why it was not cached, or empty
};

enum class FitMode : std::uint8_t {
  kFit,         // unless the folder has what was fitted to the same data with the same options
  kCachedOnly,  // kNotFound when it has not
};

[[nodiscard]] Result<FittedHead> fit_or_load(const LabelledEmbeddings& data, const HeadOptions& options,
                                             const std::filesystem::path& cache_folder,
                                             FitMode mode = FitMode::kFit);

}  // namespace waybill::route
