// Which input channels of the linear layers are outliers: a few that are ten times larger than the rest, the
// same ones in every text, and that would take the integers' range for themselves.
#pragma once

#include <cstddef>

#include "base/result.h"
#include "embed/model_folder.h"
#include "embed/packed_weights.h"
#include "embed/precision.h"
#include "embed/tokenizer.h"

namespace waybill::embed {

// For each linear layer the 8 input channels whose largest magnitude over a few sequences of random words is
// largest, sorted; `first` and `last` are the ids of [CLS] and [SEP]. Random words find the channels as well
// as sentences do (docs/decisions/); gammas and weights alone do not. Deterministic. Computes with
// `precision` (f32 or int16) on `isa`.
[[nodiscard]] Result<OutlierChannels> find_outliers(const ModelFolder& folder, Precision precision, Isa isa,
                                                    TokenId first, TokenId last);

}  // namespace waybill::embed
