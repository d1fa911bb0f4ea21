#!/usr/bin/env python3
"""Jobs and the process that keeps them: a job outlives restarts, and very many of them do."""
import json
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
import blackbox
from provider import MockProvider, words
from served import Server

CONFIG = """\
store: {path: jobs.db}
providers:
  - {name: a, base_url: "{a}/v1", proxy: none}
models:
  - {name: mock, targets: [{provider: a}]}
jobs:
  queues:
    - {name: default, backoff: {first: 50ms, most: 200ms}, max_receives: 20}
    - {name: outside, workers: external}
"""
ASK = {"model": "mock", "messages": [{"role": "user", "content": "hi"}]}
MANY, EACH = 100_000, 1000


class Restarts(blackbox.Case):
    def setUp(self):
        super().setUp()
        self.need_model()
        self.provider = MockProvider(self)
        self.config = self.write("waybill.yaml", CONFIG.replace("{a}", self.provider.url))
        self.server = Server(self, self.config)

    def restart(self, kill):
        if kill:
            self.server.kill()
        else:
            self.assertEqual(self.server.stop(), 0, self.server.log_text())
        self.server = Server(self, self.config)

    def submit(self, body, key=None):
        answer = self.server.post("/v1/jobs", body, headers={"Idempotency-Key": key} if key else {})
        self.assertEqual(answer.status, 202, answer.body)
        return answer

    def ended(self, job):
        deadline = time.monotonic() + 60
        while True:
            answer = self.server.get(f"/v1/jobs/{job}?wait=5")
            self.assertEqual(answer.status, 200, answer.body)
            if answer.json["status"] in ("completed", "failed", "cancelled", "expired", "dead"):
                return answer.json
            self.assertLess(time.monotonic(), deadline, answer.json)

    def test_a_job_outlives_three_restarts_and_is_done_once(self):
        self.provider.rule("status=503")
        job = self.submit({"request": ASK}, key="once").json["id"]
        self.provider.wait_for(lambda calls: calls["failed"] >= 1)
        for kill in (False, True, True):
            self.restart(kill)
            self.assertEqual(self.submit({"request": ASK}, key="once").json["id"], job)
            self.assertIn(self.server.get(f"/v1/jobs/{job}").json["status"], ("queued", "scheduled", "running"))
        self.provider.rule("")
        found = self.ended(job)
        self.assertEqual(found["status"], "completed", found)
        self.assertEqual(found["result"]["body"]["choices"][0]["message"]["content"], words())
        self.restart(kill=True)
        self.assertEqual(self.ended(job), found)
        self.assertEqual(self.provider.settled()["finished"], 1)

    def test_a_call_that_a_kill_cuts_is_made_again_and_counted_as_in_doubt(self):
        self.provider.rule("delay=30000")
        job = self.submit({"request": ASK}).json["id"]
        self.provider.wait_for(lambda calls: calls["in_flight"] == 1)
        self.server.kill()
        self.provider.rule("")
        self.restart(kill=True)
        found = self.ended(job)
        self.assertEqual((found["status"], found["in_doubt"]), ("completed", 1), found)
        calls = self.provider.settled()
        self.assertEqual((calls["cancelled"], calls["finished"]), (1, 1))

    def test_very_many_jobs_wait_through_a_restart(self):
        body = json.dumps({"jobs": [{"queue": "outside", "kind": "external", "request": {"n": n}} for n in range(EACH)]})
        for _ in range(MANY // EACH):
            answer = self.server.post("/v1/jobs", body)
            self.assertEqual(answer.status, 202, answer.body[:300])
            self.assertEqual(len(answer.json["data"]), EACH)
        self.restart(kill=True)
        queue = self.server.get("/v1/queues/outside")
        self.assertEqual(queue.status, 200, queue.body)
        self.assertEqual(self.server.get("/v1/queues/outside/scale").json["value"], MANY)
        leased = self.server.post("/v1/queues/outside/lease", {"max": 3, "wait": 5})
        self.assertEqual([lease["request"] for lease in leased.json["data"]], [{"n": 0}, {"n": 1}, {"n": 2}], leased.body[:500])
        done = self.server.post(f"/v1/leases/{leased.json['data'][0]['token']}/complete", {"result": {"ok": True}})
        self.assertEqual(done.status // 100, 2, done.body)
        self.assertEqual(self.server.get("/v1/queues/outside/scale").json["value"], MANY - 1)


if __name__ == "__main__":
    blackbox.main()
