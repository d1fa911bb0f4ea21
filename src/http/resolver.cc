#include "http/resolver.h"

#include <cstring>
#include <memory>
#include <utility>

#include <fmt/format.h>
#include <netdb.h>

namespace waybill::http {
namespace {

namespace asio = boost::asio;

Addresses with_port(Addresses addresses, std::uint16_t port) {
  for (auto& address : addresses) address.port(port);
  return addresses;
}

struct FreeAddresses {
  void operator()(addrinfo* list) const noexcept { ::freeaddrinfo(list); }
};

}  // namespace

Resolver::Resolver(const ResolverOptions& options)
    : options_(options),
      threads_({.name = "dns", .threads = options.threads, .max_waiting = options.max_waiting}) {}

void Resolver::stop() { threads_.stop(); }

std::optional<Result<Addresses>> Resolver::resolve(const std::string& host, std::uint16_t port,
                                                   Executor& executor, Done done) {
  boost::system::error_code no_address;
  const auto address = asio::ip::make_address(host, no_address);
  if (!no_address) return Addresses{{address, port}};
  {
    const std::lock_guard lock(mutex_);
    const auto found = known_.find(host);
    if (found != known_.end() && std::chrono::steady_clock::now() < found->second.until)
      return with_port(found->second.addresses, port);
  }
  WorkerPool::Work work = [this, host, port, &executor, done = std::move(done)]() mutable {
    Result<Addresses> found = look_up(host, port);
    executor.post([done = std::move(done), found = std::move(found)]() mutable { done(std::move(found)); });
  };
  if (!threads_.post(std::move(work)))
    return fail(ErrorCode::kOverloaded,
                fmt::format("too many names are being looked up to look up {}", host));
  return std::nullopt;
}

Result<Addresses> Resolver::look_up(const std::string& host, std::uint16_t port) {
  addrinfo wanted{};
  wanted.ai_socktype = SOCK_STREAM;
  wanted.ai_flags = AI_ADDRCONFIG;
  addrinfo* list = nullptr;
  const int failed = ::getaddrinfo(host.c_str(), nullptr, &wanted, &list);
  const std::unique_ptr<addrinfo, FreeAddresses> owner(list);
  Addresses addresses;
  for (const addrinfo* each = list; each != nullptr; each = each->ai_next) {
    asio::ip::tcp::endpoint endpoint;
    if (each->ai_addrlen > endpoint.capacity()) continue;
    endpoint.resize(each->ai_addrlen);
    std::memcpy(endpoint.data(), each->ai_addr, each->ai_addrlen);
    addresses.push_back(endpoint);
  }
  const std::lock_guard lock(mutex_);
  const auto found = known_.find(host);
  if (addresses.empty()) {
    if (found != known_.end() && failed != EAI_NONAME) return with_port(found->second.addresses, port);
    return fail(ErrorCode::kNotFound, fmt::format("there is no address for the name {} ({})", host,
                                                  failed == 0 ? "none given" : ::gai_strerror(failed)));
  }
  if (found == known_.end() && known_.size() >= options_.max_names) known_.clear();
  known_.insert_or_assign(host, Known{addresses, std::chrono::steady_clock::now() + options_.keep});
  return with_port(std::move(addresses), port);
}

void Resolver::forget(const std::string& host) {
  const std::lock_guard lock(mutex_);
  known_.erase(host);
}

}  // namespace waybill::http
