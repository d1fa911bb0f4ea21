"""A client that sends what it is told, byte for byte, and reads answers strictly."""
import socket


class RawAnswer:
    def __init__(self, version, status, headers, body):
        self.version = version
        self.status = status
        self.headers = headers
        self.body = body

    def __repr__(self):
        return f"{self.status} {self.headers} {self.body[:200]!r}"


class RawClient:
    """`wrap`: an ssl.SSLContext. An answer that is cut short raises ConnectionError; one without a length ValueError."""

    def __init__(self, address, timeout=60, wrap=None):
        if isinstance(address, str):
            self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
            self.socket.settimeout(timeout)
            self.socket.connect(address)
        else:
            self.socket = socket.create_connection(("127.0.0.1", address), timeout=timeout)
            self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if wrap is not None:
            self.socket = wrap.wrap_socket(self.socket, server_hostname="localhost")
        self.read = b""

    def __enter__(self):
        return self

    def __exit__(self, *error):
        self.socket.close()

    def send(self, data):
        self.socket.sendall(data)

    def send_what_is_taken(self, data):
        """A server that refuses stops reading; what it does not take is no matter."""
        try:
            self.socket.sendall(data)
        except OSError:
            pass

    def _more(self):
        got = self.socket.recv(65536)
        if not got:
            raise ConnectionError(f"the connection ended after {self.read!r}")
        self.read += got

    def line(self):
        while b"\r\n" not in self.read:
            self._more()
        line, self.read = self.read.split(b"\r\n", 1)
        return line.decode("latin-1")

    def answer(self, head_only=False):
        version, status, _ = self.line().split(" ", 2)
        headers = {}
        while line := self.line():
            name, value = line.split(":", 1)
            headers[name.lower()] = value.strip()
        body = b""
        if int(status) >= 200 and int(status) != 204 and not head_only:
            length = int(headers["content-length"])
            while len(self.read) < length:
                self._more()
            body, self.read = self.read[:length], self.read[length:]
        return RawAnswer(version, int(status), headers, body)

    def is_ended(self):
        """Waits for the server's end of the connection; False when more bytes come."""
        if self.read:
            return False
        try:
            return self.socket.recv(1) == b""
        except ConnectionResetError:
            return True


def request(method, path, body=None, *headers, version="HTTP/1.1"):
    lines = [f"{method} {path} {version}", "Host: localhost", *headers]
    if body is not None and not any(each.lower().startswith(("transfer-encoding", "content-length")) for each in headers):
        lines.append(f"Content-Length: {len(body)}")
    return "\r\n".join(lines).encode("latin-1") + b"\r\n\r\n" + (body or b"")


def chunked(*pieces):
    return b"".join(b"%x\r\n%s\r\n" % (len(each), each) for each in (*pieces, b""))
