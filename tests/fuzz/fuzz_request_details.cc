// What of a request is not its body: the first line is the query of GET /v1/requests, the second a path, the
// third the header x-waybill-timeout-ms, the fourth x-stainless-read-timeout, the fifth a key.
#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>

#include "api/deadline.h"
#include "api/keys.h"
#include "api/request_filter.h"
#include "base/check.h"
#include "http/request.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace waybill;
  std::string_view rest(reinterpret_cast<const char*>(data), size);
  const auto next_line = [&rest] {
    const std::string_view line = rest.substr(0, rest.find('\n'));
    rest.remove_prefix(std::min(line.size() + 1, rest.size()));
    return line;
  };
  api::RequestFilter filter;
  if (const Status read = api::read_request_filter(next_line(), filter); read) {
    WAYBILL_CHECK(filter.filter.limit >= 1 && filter.filter.limit <= 1000);
  } else {
    WAYBILL_CHECK(read.error().code == ErrorCode::kInvalidInput && !read.error().field.empty());
  }
  const std::string_view path = next_line();
  WAYBILL_CHECK(http::percent_decoded(path).size() <= path.size());
  http::Request request;
  request.headers = {{"X-Waybill-Timeout-Ms", next_line()}, {"x-stainless-read-timeout", next_line()}};
  const config::Admission admission;
  if (const Result<Duration> timeout = api::timeout_of(request, admission); timeout) {
    WAYBILL_CHECK(*timeout >= Duration{} && *timeout <= admission.max_deadline);
  } else {
    WAYBILL_CHECK(timeout.error().code == ErrorCode::kInvalidInput);
  }
  const std::string_view key = next_line();
  WAYBILL_CHECK(api::presented_key(key, key).size() <= key.size());
  return 0;
}
