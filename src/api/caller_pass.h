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
  // The same for a call that another has made, or makes: it counts as a request, and uses nothing. Either may
  // follow the other, which is then given back.
  [[nodiscard]] Status admit_answered(Call& call, const upstream::ChatRequest& request);
  void settle(const upstream::Outcome& outcome);

 private:
  Status admit(Call& call, const upstream::CallerDemand& demand);

  std::optional<upstream::CallerPass> pass_;  // nothing where no keys are asked for
  bool answered_ = false;                     // by another's call
  bool told_ = false;                         // the headers are there
};

}  // namespace waybill::api
