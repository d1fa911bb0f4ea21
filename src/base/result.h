// Result<T>: how every expected failure is returned. The Error itself is public: waybill/error.h.
#pragma once

#include <expected>
#include <string>
#include <utility>

#include <waybill/error.h>

namespace waybill {

template <class T>
using Result = std::expected<T, Error>;

using Status = Result<void>;

[[nodiscard]] inline std::unexpected<Error> fail(ErrorCode code, std::string message,
                                                 std::string field = {}) {
  return std::unexpected<Error>(Error{code, std::move(message), std::move(field)});
}

}  // namespace waybill
