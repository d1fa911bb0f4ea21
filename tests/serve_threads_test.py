#!/usr/bin/env python3
"""The whole server under the thread sanitizer: hits, misses, batches, explanations, hang-ups, broken requests, reloads,
scrapes and searches, jobs that are told to sockets and webhooks at once, then a drain. It must end with 0 and without a report;
a race that is planted must not."""
import json
import os
import signal
import subprocess
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
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
store: {path: jobs.db}
jobs:
  queues: [{name: elsewhere, workers: external}]
  webhooks: {allow_http: true, allow_private: true, secrets: [{env: WEBHOOK_SECRET}], schedule: [10ms, 10ms]}
"""
UPGRADE = (b"GET /v1/jobs/ws HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n"
           b"Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n")
LISTEN = b'{"type":"subscribe","all":true}'


class Hook(BaseHTTPRequestHandler):
    """Fails every third time."""
    calls = 0

    def do_POST(self):
        Hook.calls += 1
        self.rfile.read(int(self.headers["content-length"]))
        self.send_response(500 if Hook.calls % 3 == 0 else 204)
        self.end_headers()

    def log_message(self, *_):
        pass


def post(path, body, *headers):
    return request("POST", path, json.dumps(body).encode(), *headers)


class Sanitized(blackbox.Case):
    """Reports are files in the folder of the case; a process that has one ends with 66."""

    def options(self):
        return {"TSAN_OPTIONS": f"halt_on_error=0 exitcode=66 second_deadlock_stack=1 log_path={self.folder}/tsan"}

    def reports(self):
        return "\n".join(path.read_text(errors="replace") for path in self.folder.glob("tsan*"))


class PlantedRace(Sanitized):
    def test_is_reported(self):
        done = subprocess.run([os.environ["WAYBILL_PLANTED_RACE"]], env=os.environ | self.options(), timeout=60)
        self.assertEqual(done.returncode, 66)
        report = self.reports()
        self.assertIn("WARNING: ThreadSanitizer: data race", report)
        self.assertIn("waybill::http::Request::clear", report)

    def test_fails_a_test_that_asks_for_nothing(self):
        """As those of the parts do, which have the exit code alone."""
        done = subprocess.run([os.environ["WAYBILL_PLANTED_RACE"]], capture_output=True, text=True, timeout=60)
        self.assertEqual(done.returncode, 66, done.stderr)
        self.assertIn("src/http/request.cc", done.stderr)

    def test_the_program_has_the_sanitizer_in_it(self):
        options = subprocess.run([blackbox.PROGRAM, "--version"], env=os.environ | {"TSAN_OPTIONS": "help=1"}, capture_output=True,
                                 text=True, timeout=60)
        self.assertIn("ThreadSanitizer", options.stdout + options.stderr)


class Races(Sanitized):
    def setUp(self):
        super().setUp()
        self.until = time.monotonic() + SECONDS
        self.problems = []
        self.answers = self.told = 0
        self.hook = ThreadingHTTPServer(("127.0.0.1", 0), Hook)
        threading.Thread(target=self.hook.serve_forever, daemon=True).start()
        self.addCleanup(self.hook.server_close)
        self.addCleanup(self.hook.shutdown)

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

    def jobs(self):
        hook = f"http://127.0.0.1:{self.hook.server_address[1]}/"
        for turn in self.turns():
            with RawClient(self.server.port) as client:
                client.send(post("/v1/jobs", {"request": {}, "queue": "elsewhere", "webhook": hook}))
                job = json.loads(client.answer().body)["id"]
                client.send(post(f"/v1/jobs/{job}/cancel", {}))
                client.answer()

    def listen(self):
        for turn in self.turns():
            with RawClient(self.server.port) as client:
                client.send(UPGRADE + bytes([0x81, 0x80 | len(LISTEN), 0, 0, 0, 0]) + LISTEN)
                told = b""
                while told.count(b'"cancelled"') < 1 + turn % 5 and time.monotonic() < self.until:
                    told += client.socket.recv(65536)
                self.told += told.count(b'"cancelled"')

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
        options = self.options() | {"WEBHOOK_SECRET": "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"}
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
            (self.hang_up,), (self.reload,), (self.jobs,), (self.listen,), (self.listen,)]]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(self.problems, [])
        self.assertGreater(self.answers, 100)
        self.assertGreater(self.told, 0)
        self.assertGreater(Hook.calls, 0)
        server.settled_ledger()
        held = [RawClient(server.port) for _ in range(20)]
        for i, client in enumerate(held):
            client.send(post("/v1/route", {"inputs": [f"the last {i} {j}" for j in range(50)]}))
        code = server.stop()
        for client in held:
            self.assertIn(client.answer().status, (200, 503))
        self.assertEqual(self.reports()[:20_000], "")
        self.assertEqual(code, 0)
        self.assertEqual(server.wait_for_event("stopped")["imbalance"], 0)


if __name__ == "__main__":
    blackbox.main()
