#include "base/result.h"

namespace waybill {

std::string_view to_string(ErrorCode code) noexcept {
  switch (code) {
    case ErrorCode::kInvalidInput:
      return "invalid_input";
    case ErrorCode::kNotFound:
      return "not_found";
    case ErrorCode::kUnsupported:
      return "unsupported";
    case ErrorCode::kUnauthenticated:
      return "unauthenticated";
    case ErrorCode::kPermissionDenied:
      return "permission_denied";
    case ErrorCode::kMethodNotAllowed:
      return "method_not_allowed";
    case ErrorCode::kCorrupt:
      return "corrupt";
    case ErrorCode::kIo:
      return "io";
    case ErrorCode::kOverloaded:
      return "overloaded";
    case ErrorCode::kRateLimited:
      return "rate_limited";
    case ErrorCode::kQuotaExceeded:
      return "quota_exceeded";
    case ErrorCode::kKeyReused:
      return "key_reused";
    case ErrorCode::kUpstreamFailed:
      return "upstream_failed";
    case ErrorCode::kUpstreamTimeout:
      return "upstream_timeout";
    case ErrorCode::kDeadlineExceeded:
      return "deadline_exceeded";
    case ErrorCode::kCancelled:
      return "cancelled";
    case ErrorCode::kShuttingDown:
      return "shutting_down";
    case ErrorCode::kStoreUnavailable:
      return "store_unavailable";
    case ErrorCode::kInternal:
      return "internal";
  }
  return "internal";
}

}  // namespace waybill
