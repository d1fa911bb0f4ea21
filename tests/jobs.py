"""What the tests of jobs share: `waybill serve` with a store, in front of mock providers, and what is asked of it."""
import json
import time

import blackbox
import gateway_config
from gateway_config import APP, OPS
from provider import MockProvider
from served import Server

ASK = {"model": "mock", "messages": [{"role": "user", "content": "hi"}]}
STREAM = {**ASK, "stream": True}
NARROW = {"Authorization": "Bearer narrow-key"}
TERMINAL = ("completed", "failed", "cancelled", "expired", "dead")
JOBS = """\
store: {path: jobs.db}
jobs:
  queues:
    - {name: default, concurrency: 8, backoff: {first: 10ms, most: 50ms}, timeout: 30s}
    - {name: gpu, workers: external, visibility: 30s, backoff: {first: 10ms, most: 20ms}}
    - {name: small, workers: external, max_depth: 2}
    - {name: keyed, require_idempotency_key: true}
  max_jobs_per_call: 1000
  webhooks: {allow_http: true, allow_private: true, secrets: [{env: WEBHOOK_SECRET}]}
"""
ENVIRONMENT = {**gateway_config.ENVIRONMENT, "WEBHOOK_SECRET": "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"}


class Events:
    """The events of one job, read as they come."""

    def __init__(self, server, job, last=None, headers=APP):
        self.socket = server.connect(timeout=60)
        more = f"last-event-id: {last}\r\n" if last else ""
        key = headers["Authorization"]
        self.socket.sendall(f"GET /v1/jobs/{job}/events HTTP/1.1\r\nhost: x\r\nauthorization: {key}\r\nconnection: close\r\n{more}\r\n".encode())
        self.file = self.socket.makefile("rb")
        self.head = []
        while line := self.file.readline().strip():
            self.head.append(line.decode())
        self.text = b""

    def __iter__(self):
        """(event, id, data)"""
        while size := int(self.file.readline() or b"0", 16):
            self.text += self.file.read(size)
            self.file.readline()
            while b"\n\n" in self.text:
                block, _, self.text = self.text.partition(b"\n\n")
                fields = [line.split(": ", 1) for line in block.decode().split("\n") if line and not line.startswith(":")]
                if fields:
                    found = dict(fields)
                    yield found.get("event"), found.get("id"), found["data"]
        self.close()

    def close(self):
        self.file.close()
        self.socket.close()


class Jobs(blackbox.Case):
    """`more`: of the configuration."""

    more = JOBS

    def setUp(self):
        super().setUp()
        self.a, self.b = MockProvider(self, record=2000), MockProvider(self, record=100)
        self.start()

    def start(self, **more):
        config = gateway_config.text(self.a, self.b, self.more)
        # One target: what it answers is what the job is answered.
        config = config.replace("targets: [{provider: a, priority: 0}, {provider: b, priority: 1}]", "targets: [{provider: a}]")
        config = config.replace("providers:\n", "gateway: {max_attempts: 1}\nproviders:\n")
        self.server = Server(self, self.write_config(config), environment=ENVIRONMENT, **more)

    def restart(self, kill=False):
        if kill:
            self.server.kill()
        else:
            self.assertEqual(self.server.stop(), 0)
        self.start()

    def submit(self, request=ASK, headers=APP, **more):
        answer = self.server.post("/v1/jobs", {"request": request, **more}, headers=headers)
        self.assertEqual(answer.status, 202, answer.body)
        return answer.json

    def job(self, job, wait=None, headers=APP):
        answer = self.server.get(f"/v1/jobs/{job}" + (f"?wait={wait}" if wait else ""), headers=headers)
        self.assertEqual(answer.status, 200, answer.body)
        return answer.json

    def ended(self, job, headers=APP):
        deadline = time.monotonic() + 120
        while (found := self.job(job, wait=20, headers=headers))["status"] not in TERMINAL:
            self.assertLess(time.monotonic(), deadline, found)
        return found

    def until(self, job, status):
        deadline = time.monotonic() + 60
        while (found := self.job(job))["status"] != status:
            self.assertLess(time.monotonic(), deadline, found)
            time.sleep(0.02)
        return found

    def post(self, path, body=None, headers=OPS, status=200):
        answer = self.server.post(path, {} if body is None else body, headers=headers)
        self.assertEqual(answer.status, status, answer.body)
        return answer.json

    def refused(self, status, field, code=None, headers=APP, path="/v1/jobs", **body):
        answer = self.server.post(path, body, headers=headers)
        self.assertEqual((answer.status, answer.error["param"]), (status, field), answer.body)
        if code:
            self.assertEqual(answer.error["code"], code)
        return answer.error["message"]
