// Calls to models that become jobs: because their client asked for it, or because it would not wait as long
// as they take.
#pragma once

#include <optional>

#include "api/call.h"
#include "api/model_choice.h"
#include "base/result.h"
#include "http/task.h"
#include "upstream/terms.h"

namespace waybill::api {

class Gateway;

// "Prefer: respond-async": accepted as a job of the queue that x-waybill-queue names ("default"), and
// answered 202; with "wait=N", as the call itself would have been, where the job is done by then. Nothing: it
// is to be answered as usual.
http::Task<std::optional<Status>> answer_later(Gateway& gateway, Call& call, upstream::Operation operation);

// The same for a call that says how long what stands between the client and us would wait
// (x-waybill-gateway-timeout-ms), where it is predicted to take longer than that, or than jobs.promote_after.
http::Task<std::optional<Status>> promote(Gateway& gateway, Call& call, upstream::Operation operation,
                                          const ModelChoice& choice);

}  // namespace waybill::api
