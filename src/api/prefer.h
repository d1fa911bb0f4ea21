// What a client would like, but need not have (RFC 7240).
#pragma once

#include <optional>
#include <string>

#include "base/clock.h"
#include "http/request.h"

namespace waybill::api {

struct Preference {
  bool respond_async = false;
  std::optional<Duration> wait;  // whole seconds; how long it would wait for the answer itself
};

// Of all Prefer headers together; of what stands there twice the first counts, and what cannot be read is
// left aside.
[[nodiscard]] Preference read_preference(const http::Request& request);

// What Preference-Applied says: "respond-async, wait=10".
[[nodiscard]] std::string applied(const Preference& preference);

}  // namespace waybill::api
