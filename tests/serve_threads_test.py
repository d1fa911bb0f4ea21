#!/usr/bin/env python3
"""The whole server under the thread sanitizer: hits, misses, batches, explanations, hang-ups, broken requests, reloads,
scrapes and searches at once, then a drain. It must end with 0 and without a report."""
import json
import signal
import sys
import threading
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
import blackbox
from raw_client import RawClient, request
from served import Server

SECONDS = 20
MORE = """
server:
  listen: [127.0.0.1:0, unix:waybill.sock]

  header_timeout: 300ms
  cors: {allow_origins: ["*"]}
admission:
  max_wait: 100ms
telemetry:
  waybills: {keep: 500, file: waybills.jsonl, rotate_size: 64KiB}
  traces: {endpoint: "http://127.0.0.1:9", max_queue: 64}
"""


def post(path, body, *headers):
    return request("POST", path, json.dumps(body).encode(), *headers)


class Races(blackbox.Case):
    def setUp(self):
        super().setUp()
        self.until = time.monotonic() + SECONDS
        self.problems = []
        self.answers = 0

    def turns(self):
        turn = 0
        while time.monotonic() < self.until:
            yield turn
            turn += 1

    def ask(self, name, bodies):
        """Over a connection that is kept; any answer but a fault is well."""
        client = None
        for turn in self.turns():
            client = client or RawClient(self.server.port)
            client.send(bodies(turn))
            answer = client.answer()
            self.answers += 1
            if answer.status == 500:
                self.problems.append((name, answer))
            if answer.headers.get("connection") == "close":
                client.socket.close()
                client = None
        if client is not None:
            client.socket.close()

    def hang_up(self):
        for turn in self.turns():
            with RawClient(self.server.port) as client:
                client.send(post("/v1/route", {"prompt": f"leaving {turn}"}))
            with RawClient(self.server.port) as client:
                client.send(post("/v1/embeddings", {"input": [f"leaving {turn} {i}" for i in range(30)]})[: -(turn % 3) or None])
            with RawClient(str(self.folder / "waybill.sock")) as client:
                client.send(b"GET /metrics HTTP/1.1\r\nHost"[: 5 + turn % 20])

    def reload(self):
        path = self.folder / "waybill.yaml"
        good = path.read_text()
        for turn in self.turns():
            path.write_text(good.replace("model: claude", f"model: claude-{turn}") if turn % 3 else "routes: [")
            if turn % 2:
                self.server.process.send_signal(signal.SIGHUP)
            time.sleep(0.7)
        path.write_text(good)

    def test_none(self):
        options = {"TSAN_OPTIONS": f"halt_on_error=0 exitcode=66 second_deadlock_stack=1 log_path={self.folder}/tsan"}
        config = self.write_config(blackbox.CONFIG + MORE)
        self.server = server = Server(self, config, arguments=(), environment=options)
        self.until = time.monotonic() + SECONDS
        threads = [threading.Thread(target=target, args=arguments) for target, *arguments in [
            (self.ask, "miss", lambda turn: post("/route", {"prompt": f"what about {turn}?"})),
            (self.ask, "hit", lambda turn: post("/v1/route", {"prompt": "why does my program segfault?"}, "Origin: https://a.example")),
            (self.ask, "batch", lambda turn: post("/v1/route", {"inputs": [f"{turn} {i}" for i in range(50)]})),
            (self.ask, "long", lambda turn: post("/v1/route", {"prompt": f"{turn} " + "word " * 5000})),
            (self.ask, "explain", lambda turn: post("/v1/route", {"prompt": f"is this clause {turn} valid?", "explain": True})),
            (self.ask, "embed", lambda turn: post("/v1/embeddings", {"input": [f"text {turn}", "b"], "encoding_format": "base64"})),
            (self.ask, "late", lambda turn: post("/route", {"prompt": f"late {turn}"}, f"x-waybill-timeout-ms: {turn % 20 + 0.1}")),
            (self.ask, "wrong", lambda turn: (post("/route", {}), b"GET / HTTP/1.1\n\n", request("PUT", "/route"))[turn % 3]),
            (self.ask, "look", lambda turn: request("GET", ("/metrics", "/v1/requests?limit=50", "/v1/ledger", "/ready", "/v1/models",
                                                            "/v1/requests?outcome=cancelled", "/docs")[turn % 7])),
            (self.ask, "reload", lambda turn: post("/v1/admin/reload", {})),
            (self.hang_up,), (self.reload,)]]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(self.problems, [])
        self.assertGreater(self.answers, 100)
        server.settled_ledger()
        held = [RawClient(server.port) for _ in range(20)]
        for i, client in enumerate(held):
            client.send(post("/v1/route", {"inputs": [f"the last {i} {j}" for j in range(50)]}))
        code = server.stop()
        for client in held:
            self.assertIn(client.answer().status, (200, 503))
        reports = "\n".join(path.read_text(errors="replace") for path in self.folder.glob("tsan*"))
        self.assertEqual(reports[:20_000], "")
        self.assertEqual(code, 0)
        self.assertEqual(server.wait_for_event("stopped")["imbalance"], 0)


if __name__ == "__main__":
    blackbox.main()
