// What OpenSSL says went wrong.
#pragma once

#include <string>

namespace waybill::http {

// The first reason in this thread's queue of errors, which is empty afterwards: "no start line".
[[nodiscard]] std::string openssl_reason();

}  // namespace waybill::http
