// The heads of requests to providers, as all dialects write them.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "upstream/call.h"
#include "upstream/dialect.h"

namespace waybill::upstream {

// The request line of a POST and the headers that every call has: Host, content type, the configured ones,
// the call's trace and its idempotency key. What a client sent goes no further than that.
void begin_head(const Call& call, const TargetAddress& target, std::string_view path, std::string& head);
// Values with control characters are left out.
void add_header(std::string_view name, std::string_view value, std::string& head);
// The length of the body, and the empty line.
void end_head(std::size_t body_bytes, std::string& head);

}  // namespace waybill::upstream
