"""`waybill serve` for black-box tests: started on a free port, stopped at the end, its ledger looked at."""
import http.client
import json
import os
import select
import signal
import socket
import subprocess
import time

import blackbox
from raw_client import RawClient, request


class Answer:
    def __init__(self, status, headers, body):
        self.status = status
        self.headers = {name.lower(): value for name, value in headers}
        self.body = body

    @property
    def json(self):
        return json.loads(self.body)

    @property
    def error(self):
        return self.json["error"]


class Server:
    """The running program. `port` is that of its first TCP listener."""

    def __init__(self, case, config, arguments=("--listen", "127.0.0.1:0"), environment=None, prefix=(),
                 **more):
        self.case = case
        self.log_path = case.folder / "serve.log"
        self.log = open(self.log_path, "wb")
        self.process = subprocess.Popen([*prefix, str(blackbox.PROGRAM), "serve", "--config", str(config), *arguments], cwd=case.folder,
                                        stdin=subprocess.DEVNULL, stdout=self.log, stderr=self.log,
                                        env=dict(os.environ, **(environment or {})), **more)
        case.addCleanup(self.kill)
        self.addresses = self._wait_for_addresses()
        tcp = [address for address in self.addresses if "://" in address]
        self.port = int(tcp[0].rsplit(":", 1)[1]) if tcp else None

    def _wait_for_addresses(self):
        deadline = time.monotonic() + 120
        while time.monotonic() < deadline:
            found = [event["address"] for event in self.events() if event["message"] == "listening"]
            if found:
                time.sleep(0.05)  # the other listeners are told at once after it
                return [event["address"] for event in self.events() if event["message"] == "listening"]
            if self.process.poll() is not None:
                self.case.fail(f"waybill serve ended with {self.process.returncode}: {self.log_text()}")
            time.sleep(0.02)
        self.case.fail(f"waybill serve did not listen in time: {self.log_text()}")

    def log_text(self):
        return self.log_path.read_text(errors="replace")

    def events(self):
        """The lines of the log."""
        lines = []
        for line in self.log_text().splitlines():
            try:
                lines.append(json.loads(line))
            except ValueError:
                continue
        return lines

    def connect(self, timeout=30):
        return socket.create_connection(("127.0.0.1", self.port), timeout=timeout)

    def ask(self, method, path, body=None, headers=None, port=None):
        connection = http.client.HTTPConnection("127.0.0.1", port or self.port, timeout=60)
        try:
            payload = body if body is None or isinstance(body, (bytes, str)) else json.dumps(body)
            connection.request(method, path, payload, headers or {})
            response = connection.getresponse()
            return Answer(response.status, response.getheaders(), response.read())
        finally:
            connection.close()

    def get(self, path, **more):
        return self.ask("GET", path, **more)

    def post(self, path, body, **more):
        return self.ask("POST", path, body, **more)

    def ledger(self):
        return self.get("/v1/ledger").json

    def settled_ledger(self):
        """The ledger once nothing is under way; it must balance at every look."""
        deadline = time.monotonic() + 60
        while True:
            ledger = self.ledger()
            self.case.assertEqual(ledger["accepted"], sum(ledger[state] for state in (
                "completed", "failed", "rejected", "cancelled", "expired", "in_flight")), ledger)
            if ledger["in_flight"] == 0:
                return ledger
            self.case.assertLess(time.monotonic(), deadline, ledger)
            time.sleep(0.02)

    def hold_encoder(self, path, count):
        """A client whose one request of `count` texts keeps the encoder busy from now on; its answer is still to be read.
        Decisions (/v1/route) and embeddings (/v1/embeddings) have a queue each."""
        texts = [f"text {i} of {time.monotonic()}" for i in range(count)]
        body = {"input": texts, "encoding_format": "base64"} if path == "/v1/embeddings" else {"inputs": texts, "allow_degraded": False}
        data = request("POST", path, json.dumps(body).encode(), "x-waybill-timeout-ms: 600000")
        deadline = time.monotonic() + 60
        while True:
            before = self.ledger()
            client = RawClient(self.port, timeout=300)
            client.send(data)
            while (now := self.ledger())["accepted"] == before["accepted"]:
                self.case.assertLess(time.monotonic(), deadline, now)
            answered, _, _ = select.select([client.socket], [], [], 0.05)
            if now["in_flight"] > before["in_flight"] and not answered:
                return client
            client.socket.close()  # refused, because something else was still under way
            self.case.assertLess(time.monotonic(), deadline, now)

    def wait_for_event(self, message, count=1):
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline:
            found = [event for event in self.events() if event["message"] == message]
            if len(found) >= count:
                return found[-1]
            time.sleep(0.02)
        self.case.fail(f"the log never said \"{message}\": {self.log_text()}")

    def stop(self):
        """SIGTERM, and the exit code."""
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(timeout=120)

    def kill(self):
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        self.log.close()
