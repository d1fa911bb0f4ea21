#include "http/client_tls.h"

#include <array>
#include <new>

#include <arpa/inet.h>
#include <fmt/format.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>

#include "http/tls_error.h"

namespace waybill::http {
namespace {

bool is_address(const std::string& host) noexcept {
  std::array<unsigned char, sizeof(in6_addr)> bytes;
  return ::inet_pton(AF_INET, host.c_str(), bytes.data()) == 1 ||
         ::inet_pton(AF_INET6, host.c_str(), bytes.data()) == 1;
}

Status load_files(ssl_ctx_st* context, const ClientTlsOptions& options) {
  if (!options.ca.empty() && SSL_CTX_load_verify_locations(context, options.ca.c_str(), nullptr) != 1) {
    return fail(ErrorCode::kCorrupt,
                fmt::format("{}: no certificates in PEM form can be read from it ({})", options.ca.string(),
                            openssl_reason()),
                "tls.ca");
  }
  if (options.ca.empty() && SSL_CTX_set_default_verify_paths(context) != 1)
    return fail(ErrorCode::kIo, "the system's certificate authorities cannot be read", "tls.ca");
  if (options.certificate.empty()) return {};
  if (SSL_CTX_use_certificate_chain_file(context, options.certificate.c_str()) != 1) {
    return fail(ErrorCode::kCorrupt,
                fmt::format("{}: no certificate chain in PEM form can be read from it ({})",
                            options.certificate.string(), openssl_reason()),
                "tls.certificate");
  }
  if (SSL_CTX_use_PrivateKey_file(context, options.private_key.c_str(), SSL_FILETYPE_PEM) != 1 ||
      SSL_CTX_check_private_key(context) != 1) {
    return fail(
        ErrorCode::kCorrupt,
        fmt::format("{}: no private key in PEM form that fits the certificate can be read from it ({})",
                    options.private_key.string(), openssl_reason()),
        "tls.private_key");
  }
  return {};
}

}  // namespace

Result<std::shared_ptr<const ClientTlsContext>> ClientTlsContext::load(const ClientTlsOptions& options) {
  ERR_clear_error();
  ssl_ctx_st* context = SSL_CTX_new(TLS_client_method());
  if (context == nullptr) return fail(ErrorCode::kInternal, "OpenSSL has no memory for a TLS context");
  std::shared_ptr<const ClientTlsContext> owner(new ClientTlsContext(context, options.verify));
  SSL_CTX_set_min_proto_version(context, TLS1_2_VERSION);
  SSL_CTX_set_mode(context, SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER |
                                SSL_MODE_RELEASE_BUFFERS);
  SSL_CTX_set_options(context, SSL_OP_NO_RENEGOTIATION);
  SSL_CTX_set_verify(context, options.verify ? SSL_VERIFY_PEER : SSL_VERIFY_NONE, nullptr);
  static constexpr std::array<unsigned char, 9> kHttp11 = {8, 'h', 't', 't', 'p', '/', '1', '.', '1'};
  SSL_CTX_set_alpn_protos(context, kHttp11.data(), kHttp11.size());
  const Status loaded = load_files(context, options);
  if (!loaded) return std::unexpected(loaded.error());
  return owner;
}

ClientTlsContext::~ClientTlsContext() { SSL_CTX_free(context_); }

ssl_st* ClientTlsContext::new_session(int descriptor, const std::string& host) const {
  ssl_st* session = SSL_new(context_);
  bool ready = session != nullptr && SSL_set_fd(session, descriptor) == 1;
  if (ready && is_address(host)) {
    ready = !verify_ || X509_VERIFY_PARAM_set1_ip_asc(SSL_get0_param(session), host.c_str()) == 1;
  } else if (ready) {
    ready = SSL_set_tlsext_host_name(session, host.c_str()) == 1 &&
            (!verify_ || SSL_set1_host(session, host.c_str()) == 1);
  }
  if (!ready) {
    if (session != nullptr) SSL_free(session);
    throw std::bad_alloc();
  }
  SSL_set_connect_state(session);
  return session;
}

std::string tls_failure(const ssl_st* session) {
  const long verified = SSL_get_verify_result(session);
  if (verified != X509_V_OK) return X509_verify_cert_error_string(verified);
  return "the TLS handshake failed";
}

}  // namespace waybill::http
