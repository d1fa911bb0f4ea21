// TLS towards another server: who is trusted, and who this client says it is.
#pragma once

#include <filesystem>
#include <memory>
#include <string>

#include "base/result.h"

struct ssl_ctx_st;  // OpenSSL's SSL_CTX
struct ssl_st;

namespace waybill::http {

struct ClientTlsOptions {
  std::filesystem::path ca;                        // PEM; empty: the system's authorities
  std::filesystem::path certificate, private_key;  // PEM; both or neither
  bool verify = true;                              // the server's certificate and its name
};

// TLS 1.2 and later; immutable, thread-safe.
class ClientTlsContext {
 public:
  // kCorrupt or kInvalidInput with a sentence that names the file.
  [[nodiscard]] static Result<std::shared_ptr<const ClientTlsContext>> load(const ClientTlsOptions& options);
  ~ClientTlsContext();
  ClientTlsContext(const ClientTlsContext&) = delete;
  ClientTlsContext& operator=(const ClientTlsContext&) = delete;

  // For the client's side of a connected socket to `host`, a name or an address; the caller frees it.
  [[nodiscard]] ssl_st* new_session(int descriptor, const std::string& host) const;

 private:
  ClientTlsContext(ssl_ctx_st* context, bool verify) : context_(context), verify_(verify) {}
  ssl_ctx_st* context_;
  bool verify_;
};

// Why the handshake of a session failed, for people: "certificate has expired".
[[nodiscard]] std::string tls_failure(const ssl_st* session);

}  // namespace waybill::http
