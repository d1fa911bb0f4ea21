#include "http/tls_context.h"

#include <array>
#include <new>

#include <fmt/format.h>
#include <openssl/err.h>
#include <openssl/ssl.h>

#include "http/tls_error.h"

namespace waybill::http {
namespace {

// This server speaks HTTP/1.1 only, and says so when a client asks (ALPN, RFC 7301).
int choose_protocol(ssl_st* /*ssl*/, const unsigned char** out, unsigned char* out_size,
                    const unsigned char* in, unsigned int in_size, void* /*argument*/) {
  static constexpr std::array<unsigned char, 9> kHttp11 = {8, 'h', 't', 't', 'p', '/', '1', '.', '1'};
  unsigned char* chosen = nullptr;
  if (SSL_select_next_proto(&chosen, out_size, kHttp11.data(), kHttp11.size(), in, in_size) !=
      OPENSSL_NPN_NEGOTIATED) {
    return SSL_TLSEXT_ERR_NOACK;
  }
  *out = chosen;
  return SSL_TLSEXT_ERR_OK;
}

}  // namespace

Result<std::shared_ptr<const TlsContext>> TlsContext::load(const TlsFiles& files) {
  ERR_clear_error();
  ssl_ctx_st* context = SSL_CTX_new(TLS_server_method());
  if (context == nullptr) return fail(ErrorCode::kInternal, "OpenSSL has no memory for a TLS context");
  std::shared_ptr<const TlsContext> owner(new TlsContext(context));
  SSL_CTX_set_min_proto_version(context, TLS1_2_VERSION);
  // Partial writes and moving buffers: the connection's output grows while a write waits. Released buffers:
  // ten thousand idle connections should not hold 34 KB each.
  SSL_CTX_set_mode(context, SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER |
                                SSL_MODE_RELEASE_BUFFERS);
  SSL_CTX_set_options(
      context, SSL_OP_NO_RENEGOTIATION | SSL_OP_IGNORE_UNEXPECTED_EOF | SSL_OP_CIPHER_SERVER_PREFERENCE);
  SSL_CTX_set_alpn_select_cb(context, choose_protocol, nullptr);
  if (SSL_CTX_use_certificate_chain_file(context, files.certificate.c_str()) != 1) {
    return fail(ErrorCode::kCorrupt,
                fmt::format("{}: no certificate chain in PEM form can be read from it ({})",
                            files.certificate.string(), openssl_reason()),
                "server.tls.certificate");
  }
  if (SSL_CTX_use_PrivateKey_file(context, files.private_key.c_str(), SSL_FILETYPE_PEM) != 1) {
    return fail(
        ErrorCode::kCorrupt,
        fmt::format("{}: no private key in PEM form that fits the certificate can be read from it ({})",
                    files.private_key.string(), openssl_reason()),
        "server.tls.private_key");
  }
  if (SSL_CTX_check_private_key(context) != 1) {
    return fail(ErrorCode::kInvalidInput,
                fmt::format("{} is not the key of {} ({})", files.private_key.string(),
                            files.certificate.string(), openssl_reason()),
                "server.tls.private_key");
  }
  return owner;
}

TlsContext::~TlsContext() { SSL_CTX_free(context_); }

ssl_st* TlsContext::new_session(int descriptor) const {
  ssl_st* session = SSL_new(context_);
  if (session == nullptr || SSL_set_fd(session, descriptor) != 1) {
    if (session != nullptr) SSL_free(session);
    throw std::bad_alloc();
  }
  SSL_set_accept_state(session);
  return session;
}

}  // namespace waybill::http
