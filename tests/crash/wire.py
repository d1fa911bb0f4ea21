"""What a crash check talks with: a small HTTP client, and a provider that writes down every call it would bill."""
import asyncio
import collections
import json
import re
import time

now = time.monotonic

async def http_message(reader):
    """Reads one HTTP/1.1 message; returns (first line, headers, body)."""
    head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
    headers = {k.strip().lower(): v.strip() for k, _, v in (l.partition(":") for l in head[1:] if l)}
    if headers.get("transfer-encoding", "").lower() == "chunked":
        body = b""
        while size := int((await reader.readline()).split(b";")[0], 16):
            body += (await reader.readexactly(size + 2))[:-2]
        await reader.readline()
    else:
        body = await reader.readexactly(int(headers.get("content-length", 0)))
    return head[0], headers, body


class Client:
    """One keep-alive connection. Any transport failure raises OSError: the caller does not know what happened."""

    def __init__(self, port, timeout):
        self.port, self.timeout, self.pipe = port, timeout, None

    async def call(self, method, path, headers=None, body=""):
        try:
            async with asyncio.timeout(self.timeout):
                if not self.pipe:
                    self.pipe = await asyncio.open_connection("127.0.0.1", self.port)
                reader, writer = self.pipe
                raw = body.encode()
                lines = [f"{method} {path} HTTP/1.1", f"Host: 127.0.0.1:{self.port}", f"Content-Length: {len(raw)}", "Content-Type: application/json"]
                lines += [f"{k}: {v}" for k, v in (headers or {}).items()]
                writer.write("\r\n".join(lines).encode() + b"\r\n\r\n" + raw)
                await writer.drain()
                first, got, answer = await http_message(reader)
                if got.get("connection", "").lower() == "close":
                    self.close()
                return int(first.split()[1]), got, answer
        except (OSError, asyncio.IncompleteReadError, asyncio.LimitOverrunError, ValueError, IndexError) as e:
            self.close()
            raise OSError(f"{type(e).__name__}: {e}") from None

    def close(self):
        if self.pipe:
            self.pipe[1].close()
            self.pipe = None


# life: which start of the server made the call; end None: the caller went away before the answer
Call = collections.namedtuple("Call", "life start end billed")


class Provider:
    """Answers chat completions after a random delay and writes down every call it would bill."""

    def __init__(self, rng, delay_ms, fail, padding):
        self.rng, self.delay, self.fail, self.padding = rng, delay_ms, fail, padding
        self.calls = collections.defaultdict(list)  # marker -> [Call]
        self.unknown = []
        self.port = self.life = 0

    async def start(self):
        server = await asyncio.start_server(self.serve, "127.0.0.1", 0, backlog=1024)
        self.port = server.sockets[0].getsockname()[1]

    async def serve(self, reader, writer):
        life = self.life  # a call sent just before a kill is read after it
        try:
            while True:
                _, _, body = await http_message(reader)
                await self.answer(life, body, writer)
        except (OSError, asyncio.IncompleteReadError, asyncio.LimitOverrunError, asyncio.CancelledError, ValueError):
            pass  # the server died, or the run is over
        finally:
            writer.close()

    async def answer(self, life, body, writer):
        mark = re.search(rb"job-[0-9a-f]+-\d+", body)
        if not mark:
            self.unknown.append(body[:100])
        marker = mark[0].decode() if mark else "?"
        calls, k, start = self.calls[marker], len(self.calls[marker]), now()
        calls.append(Call(life, start, None, False))
        await asyncio.sleep(self.rng.uniform(0, 2 * self.delay) / 1000)
        failed = self.rng.random() < self.fail
        doc = {"error": {"message": "mock failure", "type": "server_error"}} if failed else {
            "id": "c-" + marker, "object": "chat.completion", "created": 1, "model": "mock",
            "choices": [{"index": 0, "message": {"role": "assistant", "content": f"echo:{marker} {self.padding(marker)}"}, "finish_reason": "stop"}],
            "usage": {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}}
        out = json.dumps(doc).encode()
        writer.write(f"HTTP/1.1 {503 if failed else 200} X\r\nContent-Type: application/json\r\nContent-Length: {len(out)}\r\n\r\n".encode() + out)
        await writer.drain()
        calls[k] = Call(life, start, now(), not failed)
