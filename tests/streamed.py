"""One call to a gateway over a plain socket: nothing is retried, every byte that came is kept, and it may be left at any moment."""
import json
import socket
import time


def dechunk(data):
    """(the bytes, whether the last chunk has come) of a chunked body as far as it is there."""
    out = []
    at = 0
    while True:
        end = data.find(b"\r\n", at)
        if end < 0:
            return b"".join(out), False
        size = int(data[at:end].split(b";")[0], 16)
        if size == 0:
            return b"".join(out), data[end:].startswith(b"\r\n\r\n")
        piece = data[end + 2:end + 2 + size]
        out.append(piece)
        at = end + 2 + size
        if len(piece) < size or data[at:at + 2] != b"\r\n":
            return b"".join(out), False
        at += 2


class Call:
    """POST of a JSON body. `buffer`: bytes that the socket may take in before it is read."""

    def __init__(self, port, body, headers=(), path="/v1/chat/completions", buffer=None):
        self.socket = socket.socket()
        if buffer:
            self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, buffer)
        self.socket.settimeout(60)
        self.socket.connect(("127.0.0.1", port))
        payload = json.dumps(body).encode()
        lines = [f"POST {path} HTTP/1.1", "host: localhost", "content-type: application/json", f"content-length: {len(payload)}", *headers]
        self.socket.sendall("\r\n".join(lines).encode() + b"\r\n\r\n" + payload)
        self.bytes = b""
        self.ended = None  # "closed", or the name of the error that ended the connection

    def __enter__(self):
        return self

    def __exit__(self, *error):
        self.leave()

    def leave(self):
        self.socket.close()

    def read(self, until=None, patience=60):
        """Until the answer is whole, `until` is in it, or the connection ends; then self."""
        deadline = time.monotonic() + patience
        while self.ended is None and not self.is_whole and not (until and until in self.bytes):
            self.socket.settimeout(max(deadline - time.monotonic(), 0.001))
            try:
                data = self.socket.recv(1 << 16)
            except TimeoutError:
                raise AssertionError(f"the answer did not end in {patience} s: {self}") from None
            except OSError as error:
                self.ended = type(error).__name__
                break
            self.bytes += data
            if not data:
                self.ended = "closed"
        return self

    @property
    def head(self):
        return self.bytes.partition(b"\r\n\r\n")[0].decode("latin-1")

    @property
    def status(self):
        return int(self.head.split(" ", 2)[1]) if self.head.startswith("HTTP/1.1 ") else None

    @property
    def headers(self):
        lines = [line.split(":", 1) for line in self.head.split("\r\n")[1:]]
        return {name.lower(): value.strip() for name, value in lines}

    @property
    def _body(self):
        """(bytes, whether they are all)"""
        head, _, rest = self.bytes.partition(b"\r\n\r\n")
        if b"\r\n\r\n" not in self.bytes:
            return b"", False
        if b"transfer-encoding: chunked" in head.lower():
            if not rest.endswith(b"0\r\n\r\n"):  # spares the work while it grows
                return rest, False
            return dechunk(rest)
        length = int(self.headers.get("content-length", 0))
        return rest[:length], len(rest) >= length

    @property
    def is_whole(self):
        return self._body[1]

    @property
    def body(self):
        head, _, rest = self.bytes.partition(b"\r\n\r\n")
        return dechunk(rest)[0] if b"transfer-encoding: chunked" in head.lower() else self._body[0]

    @property
    def is_stream(self):
        return self.headers.get("content-type", "").startswith("text/event-stream")

    @property
    def events(self):
        """The data of each event of a stream, as text."""
        found = []
        for block in self.body.decode().replace("\r\n", "\n").split("\n\n"):
            data = [line[5:].removeprefix(" ") for line in block.split("\n") if line.startswith("data:")]
            if data:
                found.append("\n".join(data))
        return found

    @property
    def objects(self):
        """The whole answer, or the events of a stream, but for [DONE]."""
        if not self.is_stream:
            return [json.loads(self.body)]
        return [json.loads(event) for event in self.events if event != "[DONE]"]

    @property
    def is_done(self):
        return self.is_stream and self.events[-1:] == ["[DONE]"]

    @property
    def text(self):
        """What the model said."""
        out = ""
        for each in self.objects:
            for choice in each.get("choices") or []:
                part = choice.get("delta") or choice.get("message") or choice
                out += part.get("content") or part.get("text") or ""
        return out

    @property
    def error(self):
        """The error object of the answer, or of a stream's last event; None when there is none."""
        objects = self.objects
        return objects[-1].get("error") if objects else None

    def __repr__(self):
        return f"{self.bytes[:2000]!r} ... {self.bytes[-300:]!r}, {self.ended or 'open'}"
