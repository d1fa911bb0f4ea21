// Distils a static table from an encoder. Internal to static_table.h, and separate from it for what it
// compiles.
#pragma once

#include <stop_token>

#include "base/progress.h"
#include "embed/model.h"
#include "embed/static_table.h"

namespace waybill::embed {

inline constexpr std::size_t kStaticDim = 256;  // more gains nothing, half of it loses 2.5 points of accuracy

// Runs the vocabulary through the encoder on `threads` threads (0: one per core). The same table for any
// number. kCancelled soon after it is asked to stop.
[[nodiscard]] Result<StaticRows> distill_static_rows(const Model& model, unsigned threads,
                                                     const Progress& progress,
                                                     const std::stop_token& stop = {});

}  // namespace waybill::embed
