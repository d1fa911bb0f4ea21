// A call of a caller under the limits of its key.
#pragma once

#include <optional>

#include "api/call.h"
#include "upstream/call.h"
#include "upstream/caller_limits.h"
#include "upstream/catalog.h"

namespace waybill::api {

// Taken before a call to a model, settled when it has ended; a call that comes to nothing gives all back.
class Pass {
 public:
  // Adds the x-ratelimit-* headers, also where it fails: kPermissionDenied, kRateLimited or kQuotaExceeded.
  [[nodiscard]] Status admit(Call& call, const upstream::ChatRequest& request, const upstream::Model& model);
  void settle(const upstream::Outcome& outcome);

 private:
  std::optional<upstream::CallerPass> pass_;  // nothing where no keys are asked for
};

}  // namespace waybill::api
