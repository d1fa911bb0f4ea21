// The server's certificate and how TLS is spoken with it.
#pragma once

#include <filesystem>
#include <memory>

#include "base/result.h"

struct ssl_ctx_st;  // OpenSSL's SSL_CTX
struct ssl_st;

namespace waybill::http {

struct TlsFiles {
  std::filesystem::path certificate;  // PEM, the chain from the server's own certificate up
  std::filesystem::path private_key;  // PEM
};

// TLS 1.2 and later; immutable, thread-safe. A changed certificate is a new context; sessions keep theirs.
class TlsContext {
 public:
  // kNotFound, kCorrupt or kInvalidInput with a sentence that names the file.
  [[nodiscard]] static Result<std::shared_ptr<const TlsContext>> load(const TlsFiles& files);
  ~TlsContext();
  TlsContext(const TlsContext&) = delete;
  TlsContext& operator=(const TlsContext&) = delete;

  // For the server's side of a connected socket; the caller frees it. It writes to the descriptor itself.
  [[nodiscard]] ssl_st* new_session(int descriptor) const;

 private:
  explicit TlsContext(ssl_ctx_st* context) : context_(context) {}
  ssl_ctx_st* context_;
};

}  // namespace waybill::http
