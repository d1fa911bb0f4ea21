#include "api/deadline.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <string>

#include <fmt/format.h>

namespace waybill::api {
namespace {

std::optional<double> positive_number(std::string_view text) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || !std::isfinite(value) || value <= 0)
    return {};
  return value;
}

Duration bounded(double wanted_seconds, const config::Admission& admission) {
  return Duration(
      static_cast<Duration::rep>(std::min(wanted_seconds, seconds(admission.max_deadline)) * 1e9));
}

}  // namespace

Result<Duration> timeout_of(const http::Request& request, const config::Admission& admission,
                            bool calls_model) {
  constexpr std::string_view kOwn = "x-waybill-timeout-ms";
  if (const std::string_view text = request.header(kOwn); !text.empty()) {
    const std::optional<double> milliseconds = positive_number(text);
    if (!milliseconds) {
      return fail(
          ErrorCode::kInvalidInput,
          fmt::format("The header {} must be a number of milliseconds above 0, not \"{}\".", kOwn, text),
          std::string(kOwn));
    }
    return bounded(*milliseconds / 1000, admission);
  }
  // Sent by libraries, not by people: what cannot be read is left aside ("NOT_GIVEN").
  if (const auto wanted = positive_number(request.header("x-stainless-read-timeout")))
    return bounded(*wanted, admission);
  if (calls_model) return admission.max_deadline;
  return std::min<Duration>(admission.deadline, admission.max_deadline);
}

}  // namespace waybill::api
