#include "http/tls_error.h"

#include <openssl/err.h>

namespace waybill::http {

std::string openssl_reason() {
  const unsigned long code = ERR_get_error();
  ERR_clear_error();
  const char* reason = code == 0 ? nullptr : ERR_reason_error_string(code);
  return reason == nullptr ? "no reason given" : reason;
}

}  // namespace waybill::http
