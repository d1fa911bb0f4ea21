#include "http/listening_socket.h"

#include <array>
#include <cerrno>
#include <charconv>
#include <cstdlib>
#include <cstring>
#include <memory>

#include <arpa/inet.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <linux/filter.h>
#include <netdb.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

namespace waybill::http {
namespace {

using config::ListenAddress;

constexpr int kBacklog = 4096;  // the kernel cuts it to net.core.somaxconn
constexpr int kFirstSystemdDescriptor = 3;

std::unexpected<Error> system_failure(const ListenAddress& endpoint, const char* what, int error) {
  std::string hint;
  if (error == EADDRINUSE) hint = "; another program listens there: stop it or choose another address";
  if (error == EACCES)
    hint = "; ports below 1024 and foreign folders need more rights: choose another address";
  if (error == EADDRNOTAVAIL) hint = "; this machine has no such address";
  return fail(ErrorCode::kIo,
              fmt::format("{}: cannot {} ({}){}", endpoint.text(), what, std::strerror(error), hint),
              "server.listen");
}

class Descriptor {
 public:
  explicit Descriptor(int value) : value_(value) {}
  ~Descriptor() {
    if (value_ >= 0) ::close(value_);
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  [[nodiscard]] int get() const { return value_; }
  [[nodiscard]] int release() { return std::exchange(value_, -1); }

 private:
  int value_;
};

std::string address_text(const sockaddr_storage& address) {
  std::array<char, INET6_ADDRSTRLEN> text{};
  if (address.ss_family == AF_INET) {
    const auto& v4 = reinterpret_cast<const sockaddr_in&>(address);
    ::inet_ntop(AF_INET, &v4.sin_addr, text.data(), text.size());
    return fmt::format("{}:{}", text.data(), ntohs(v4.sin_port));
  }
  const auto& v6 = reinterpret_cast<const sockaddr_in6&>(address);
  ::inet_ntop(AF_INET6, &v6.sin6_addr, text.data(), text.size());
  return fmt::format("[{}]:{}", text.data(), ntohs(v6.sin6_port));
}

Result<ListeningSocket> listen_tcp(const ListenAddress& endpoint, const addrinfo& address,
                                   unsigned short port) {
  Descriptor socket(::socket(address.ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (socket.get() < 0) return system_failure(endpoint, "open a socket", errno);
  const int on = 1;
  ::setsockopt(socket.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  ::setsockopt(socket.get(), SOL_SOCKET, SO_REUSEPORT, &on, sizeof on);
  sockaddr_storage bound{};
  std::memcpy(&bound, address.ai_addr, address.ai_addrlen);
  if (bound.ss_family == AF_INET) {
    reinterpret_cast<sockaddr_in&>(bound).sin_port = htons(port);
  } else {
    reinterpret_cast<sockaddr_in6&>(bound).sin6_port = htons(port);
    const int only = endpoint.host.empty() ? 0 : 1;
    ::setsockopt(socket.get(), IPPROTO_IPV6, IPV6_V6ONLY, &only, sizeof only);
  }
  if (::bind(socket.get(), reinterpret_cast<const sockaddr*>(&bound), address.ai_addrlen) != 0) {
    return system_failure(endpoint, "listen", errno);
  }
  if (::listen(socket.get(), kBacklog) != 0) return system_failure(endpoint, "listen", errno);
  socklen_t size = sizeof bound;
  ::getsockname(socket.get(), reinterpret_cast<sockaddr*>(&bound), &size);
  return ListeningSocket(socket.release(), address_text(bound), {});
}

// With SO_REUSEPORT a second program of the same user would share the port without a word. A socket bound
// without the option finds out first.
Status check_free(const ListenAddress& endpoint, const addrinfo& address) {
  if (endpoint.port == 0) return {};
  const Descriptor probe(::socket(address.ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const int on = 1;
  ::setsockopt(probe.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  if (::bind(probe.get(), address.ai_addr, address.ai_addrlen) != 0)
    return system_failure(endpoint, "listen", errno);
  return {};
}

Result<std::vector<ListeningSocket>> listen_tcp(const ListenAddress& endpoint, unsigned copies) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_PASSIVE | AI_ADDRCONFIG;
  if (endpoint.host.empty()) hints.ai_family = AF_UNSPEC;
  addrinfo* found = nullptr;
  const std::string port = std::to_string(endpoint.port);
  const int looked_up =
      ::getaddrinfo(endpoint.host.empty() ? nullptr : endpoint.host.c_str(), port.c_str(), &hints, &found);
  if (looked_up != 0) {
    return fail(
        ErrorCode::kInvalidInput,
        fmt::format("{}: the host cannot be looked up ({})", endpoint.text(), ::gai_strerror(looked_up)),
        "server.listen");
  }
  const std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)> owner(found, ::freeaddrinfo);
  // Every address: one IPv6 socket takes IPv4 as well.
  const addrinfo* chosen = found;
  if (endpoint.host.empty()) {
    for (const addrinfo* each = found; each != nullptr; each = each->ai_next) {
      if (each->ai_family == AF_INET6) chosen = each;
    }
  }
  if (const Status is_free = check_free(endpoint, *chosen); !is_free) return std::unexpected(is_free.error());
  std::vector<ListeningSocket> sockets;
  unsigned short bound_port = endpoint.port;
  for (unsigned i = 0; i < copies; ++i) {
    Result<ListeningSocket> socket = listen_tcp(endpoint, *chosen, bound_port);
    if (!socket) return std::unexpected(socket.error());
    const std::string& address = socket->address();
    const std::size_t colon = address.rfind(':');
    std::from_chars(address.data() + colon + 1, address.data() + address.size(), bound_port);
    sockets.push_back(std::move(*socket));
  }
  return sockets;
}

// Whether a server answers at the path; a file that nobody listens on is left over from a crash.
bool is_alive(const sockaddr_un& address) {
  const Descriptor probe(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  return ::connect(probe.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0;
}

Result<std::vector<ListeningSocket>> listen_unix(const ListenAddress& endpoint) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (endpoint.path.native().size() >= sizeof address.sun_path) {
    return fail(ErrorCode::kInvalidInput,
                fmt::format("{}: a UNIX socket's path has at most {} bytes", endpoint.text(),
                            sizeof address.sun_path - 1),
                "server.listen");
  }
  std::memcpy(address.sun_path, endpoint.path.c_str(), endpoint.path.native().size() + 1);
  struct stat status{};
  if (::lstat(endpoint.path.c_str(), &status) == 0) {
    if (!S_ISSOCK(status.st_mode)) return system_failure(endpoint, "listen: a file is in the way", EEXIST);
    if (is_alive(address)) return system_failure(endpoint, "listen", EADDRINUSE);
    ::unlink(endpoint.path.c_str());
  }
  Descriptor socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (socket.get() < 0) return system_failure(endpoint, "open a socket", errno);
  if (::bind(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0 ||
      ::listen(socket.get(), kBacklog) != 0) {
    return system_failure(endpoint, "listen", errno);
  }
  std::vector<ListeningSocket> sockets;
  sockets.emplace_back(socket.release(), endpoint.text(), endpoint.path.string());
  return sockets;
}

// The protocol is small enough not to need libsystemd: LISTEN_PID, LISTEN_FDS, descriptors from 3 up.
Result<std::vector<ListeningSocket>> listen_systemd(const ListenAddress& endpoint) {
  const char* pid = std::getenv("LISTEN_PID");
  const char* count_text = std::getenv("LISTEN_FDS");
  if (pid == nullptr || count_text == nullptr || std::string_view(pid) != std::to_string(::getpid())) {
    return fail(ErrorCode::kInvalidInput,
                "server.listen says \"systemd\", but systemd has handed no socket over; start it by a "
                ".socket unit, or "
                "give an address",
                "server.listen");
  }
  int count = 0;
  const auto [end, error] = std::from_chars(count_text, count_text + std::strlen(count_text), count);
  if (error != std::errc() || *end != '\0' || count < 1) {
    return fail(
        ErrorCode::kInvalidInput,
        fmt::format("server.listen says \"systemd\", but LISTEN_FDS is \"{}\": no socket was handed over",
                    count_text),
        "server.listen");
  }
  std::vector<ListeningSocket> sockets;
  for (int i = 0; i < count; ++i) {
    const int descriptor = kFirstSystemdDescriptor + i;
    int listens = 0;
    socklen_t size = sizeof listens;
    if (::getsockopt(descriptor, SOL_SOCKET, SO_ACCEPTCONN, &listens, &size) != 0 || listens == 0) {
      return fail(
          ErrorCode::kInvalidInput,
          fmt::format("systemd has handed descriptor {} over, which is no listening stream socket; the "
                      ".socket unit needs ListenStream= and Accept=no",
                      descriptor),
          "server.listen");
    }
    if (::fcntl(descriptor, F_SETFL, ::fcntl(descriptor, F_GETFL) | O_NONBLOCK) != 0) {
      return system_failure(endpoint, "use a socket", errno);
    }
    ::fcntl(descriptor, F_SETFD, FD_CLOEXEC);
    sockets.emplace_back(descriptor, fmt::format("systemd:{}", descriptor), std::string(), false);
  }
  return sockets;
}

}  // namespace

ListeningSocket::ListeningSocket(ListeningSocket&& other) noexcept
    : descriptor_(std::exchange(other.descriptor_, -1)),
      address_(std::move(other.address_)),
      unlink_path_(std::exchange(other.unlink_path_, {})),
      ours_(other.ours_) {}

void ListeningSocket::refuse_new() {
  if (!ours_) return;
  if (!unlink_path_.empty()) {
    ::unlink(unlink_path_.c_str());
    unlink_path_.clear();
    return;
  }
  // A filter that drops the first packet of each handshake (its SYN flag is in byte 13 of the TCP header), so
  // that the queue comes to an end and the close resets nobody. Who tries again finds the socket closed.
  constexpr unsigned kFlags = 13, kSyn = 2, kAllBytes = 0xFFFF;
  std::array<sock_filter, 4> program = {{BPF_STMT(BPF_LD | BPF_B | BPF_ABS, kFlags),
                                         BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, kSyn, 0, 1),
                                         BPF_STMT(BPF_RET | BPF_K, 0), BPF_STMT(BPF_RET | BPF_K, kAllBytes)}};
  const sock_fprog filter = {.len = program.size(), .filter = program.data()};
  ::setsockopt(descriptor_, SOL_SOCKET, SO_ATTACH_FILTER, &filter, sizeof filter);
}

ListeningSocket::~ListeningSocket() {
  if (descriptor_ >= 0) ::close(descriptor_);
  if (!unlink_path_.empty()) ::unlink(unlink_path_.c_str());
}

Result<std::vector<ListeningSocket>> listen_on(const config::ListenAddress& endpoint, unsigned copies) {
  switch (endpoint.kind) {
    case ListenAddress::Kind::kUnix:
      return listen_unix(endpoint);
    case ListenAddress::Kind::kSystemd:
      return listen_systemd(endpoint);
    case ListenAddress::Kind::kTcp:
      break;
  }
  return listen_tcp(endpoint, copies);
}

}  // namespace waybill::http
