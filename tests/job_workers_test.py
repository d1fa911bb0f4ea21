#!/usr/bin/env python3
"""Jobs as their workers and operators meet them: leases, queues, servers that die and come back."""
import json
import os
import re
import resource
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
import blackbox
from gateway_config import APP, OPS
from jobs import ASK, Jobs, NARROW
from provider import MockProvider
from served import Server
from streamed import Call


class Leased(Jobs):
    def lease(self, status=200, queue="gpu", headers=OPS, **body):
        answer = self.post(f"/v1/queues/{queue}/lease", body, headers, status)
        return answer["data"] if status == 200 else answer["error"]

    def test_a_job_is_leased_and_completed(self):
        job = self.submit({"x": 1.50, "y": "é"}, queue="gpu", metadata={"a": "b"}, kind="external")
        (leased,) = self.lease()
        self.assertEqual((leased["job"]["id"], leased["job"]["status"], leased["job"]["metadata"]), (job["id"], "running", {"a": "b"}))
        self.assertEqual(leased["request"], {"x": 1.5, "y": "é"})
        self.assertGreater(leased["deadline"], time.time())
        self.assertEqual(self.lease(), [], "nobody else has it")
        self.assertGreater(self.post(f"/v1/leases/{leased['token']}/heartbeat", {"visibility": 100})["deadline"], leased["deadline"])
        done = self.server.post(f"/v1/leases/{leased['token']}/complete", '{"result": {"sum": 2.50}}', headers=OPS)
        self.assertEqual((done.status, done.json["status"]), (200, "completed"), done.body)
        answer = self.server.get(f"/v1/jobs/{job['id']}/result", headers=APP)
        self.assertEqual((answer.status, answer.body), (200, b'{"sum": 2.50}'), "as it was written")
        late = self.post(f"/v1/leases/{leased['token']}/complete", {}, status=409)
        self.assertEqual(late["error"]["code"], "lease_lost")

    def test_a_worker_waits_for_jobs(self):
        found = []
        waiting = threading.Thread(target=lambda: found.append(self.lease(wait=60)))
        waiting.start()
        while self.server.get("/v1/ledger", headers=OPS).json["in_flight"] == 0:
            pass
        job = self.submit({}, queue="gpu")
        waiting.join()
        self.assertEqual(found[0][0]["job"]["id"], job["id"])
        self.assertEqual(self.lease(wait=0.1), [])

    def test_who_was_too_slow_has_lost_it(self):
        job = self.submit({}, queue="gpu")["id"]
        (first,) = self.lease(visibility=1)
        (second,) = self.lease(wait=60)
        self.assertEqual((second["job"]["id"], second["job"]["receives"]), (job, 2))
        self.assertNotEqual(first["token"], second["token"])
        for way in ("heartbeat", "complete", "fail", "release"):
            self.assertEqual(self.post(f"/v1/leases/{first['token']}/{way}", {}, status=409)["error"]["code"], "lease_lost", way)
        self.post(f"/v1/leases/{second['token']}/complete", {"result": 1})
        done = self.ended(job)
        self.assertEqual((done["status"], done["attempts"][0]["code"]), ("completed", "lease_expired"))

    def test_it_fails_and_comes_again_until_it_is_dead(self):
        job = self.submit({}, queue="gpu", max_receives=2)["id"]
        (leased,) = self.lease()
        error = {"code": "out_of_memory", "message": "no room"}
        self.assertEqual(self.post(f"/v1/leases/{leased['token']}/fail", {"error": error})["status"], "scheduled")
        (leased,) = self.lease(wait=60)
        self.assertEqual(self.post(f"/v1/leases/{leased['token']}/fail", {"error": error})["status"], "dead")
        done = self.job(job)
        self.assertEqual((done["error"], len(done["attempts"])), (error, 2))

    def test_it_fails_for_good(self):
        job = self.submit({}, queue="gpu")["id"]
        (leased,) = self.lease()
        self.post(f"/v1/leases/{leased['token']}/fail", {"error": {"code": "bad", "message": "no"}, "permanent": True})
        done = self.job(job)
        self.assertEqual((done["status"], done["result"]["body"]["error"]["code"]), ("failed", "bad"))

    def test_it_is_given_back(self):
        job = self.submit({}, queue="gpu")["id"]
        (leased,) = self.lease()
        self.assertEqual(self.post(f"/v1/leases/{leased['token']}/release")["status"], "queued")
        (leased,) = self.lease()
        self.assertEqual((leased["job"]["id"], leased["job"]["receives"]), (job, 1), "it does not count")
        self.assertEqual(self.post(f"/v1/leases/{leased['token']}/release", {"delay": 3600})["status"], "scheduled")
        self.assertEqual(self.lease(), [])

    def test_a_cancelled_job_is_lost(self):
        job = self.submit({}, queue="gpu")["id"]
        (leased,) = self.lease()
        self.post(f"/v1/jobs/{job}/cancel", headers=APP)
        self.assertEqual(self.post(f"/v1/leases/{leased['token']}/heartbeat", {}, status=409)["error"]["code"], "lease_lost")

    def forged(self, job, genuine):
        """What names a lease of that job to who has another's token."""
        mac = genuine.rpartition(".")[2]
        return [f"{job}.{fence}.{digits}" for fence in range(1, 4) for digits in (mac, "0" * 16)]

    def test_a_token_cannot_be_made_up(self):
        self.a.rule("hang=headers")
        own = self.submit()["id"]
        with Call(self.server.port, ASK, ["authorization: Bearer app-key", "idempotency-key: forge"]):
            self.a.wait_for(lambda calls: calls["in_flight"] == 2)
            record = self.server.get("/v1/jobs?queue=(calls)", headers=APP).json["data"][0]["id"]
            other, mine = (self.submit({}, queue="gpu")["id"] for _ in range(2))
            leases = self.lease(max=2)
            self.assertEqual([lease["job"]["id"] for lease in leases], [other, mine])
            token = leases[1]["token"]
            for job in own, record, other:
                for wrong in self.forged(job, token):
                    for way in ("heartbeat", "complete", "fail", "release"):
                        self.assertEqual(self.post(f"/v1/leases/{wrong}/{way}", {}, status=409)["error"]["code"], "lease_lost", wrong)
                self.assertEqual(self.job(job)["status"], "running")
            self.post(f"/v1/leases/{token}/complete", {"result": 1})
            self.post(f"/v1/jobs/{own}/cancel")
        self.a.rule("")

    def test_a_lease_outlives_the_server(self):
        job = self.submit({}, queue="gpu")["id"]
        (leased,) = self.lease(visibility=600)
        for kill in (False, True):
            self.restart(kill)
            self.post(f"/v1/leases/{leased['token']}/heartbeat", {"visibility": 600})
        self.assertEqual(self.post(f"/v1/leases/{leased['token']}/complete", {})["id"], job)

    def test_the_order_is_priority_and_age_and_callers_take_turns(self):
        order = [self.submit({}, queue="gpu", priority=priority)["id"] for priority in (0, 5, 0, 9)]
        theirs = self.submit({}, queue="gpu", headers=NARROW)["id"]
        leased = [self.lease()[0]["job"]["id"] for _ in range(5)]
        self.assertLess(leased.index(theirs), 2, "a caller with few jobs does not wait for one with many")
        leased.remove(theirs)
        self.assertEqual(leased, [order[3], order[1], order[0], order[2]])

    def test_what_is_wrong(self):
        self.assertEqual(self.lease(403, headers=APP)["code"], "admin_key_required")
        self.assertEqual(self.lease(404, queue="nowhere")["param"], "queue")
        self.assertEqual(self.lease(409, queue="default")["code"], "queue_not_external")
        for field, wrong in (("max", 0), ("max", 101), ("wait", 61), ("wait", "x"), ("visibility", 0), ("vis", 1)):
            self.assertEqual(self.lease(400, **{field: wrong})["param"], field)
        self.submit({}, queue="gpu")
        (leased,) = self.lease()
        token = leased["token"]
        for way, field, body in (("heartbeat", "visibility", {"visibility": "x"}), ("complete", "status_code", {"status_code": 99}),
                                 ("complete", "reslt", {"reslt": 1}), ("fail", "error", {"error": "x"}), ("fail", "error.code", {"error": {"code": 1}}),
                                 ("fail", "retry_after", {"retry_after": -1}), ("release", "delay", {"delay": -1})):
            self.assertEqual(self.post(f"/v1/leases/{token}/{way}", body, status=400)["error"]["param"], field)
        for wrong in ("x", token + "1x", token.split(".")[0], token.rpartition(".")[0], token[:-1] + "g", token.replace(".", "")):
            self.post(f"/v1/leases/{wrong}/heartbeat", {}, status=404)
        for body in (b'{"result": "\xff\xfe"}', b'{"result": {"\xc3": 1}}'):
            answer = self.server.post(f"/v1/leases/{token}/complete", body, headers=OPS)
            self.assertEqual((answer.status, answer.error["param"]), (400, "result"), answer.body)
        self.assertEqual(self.job(leased["job"]["id"])["status"], "running")
        self.post(f"/v1/leases/{token}/heartbeat", {}, APP, 403)

    def test_the_example_worker(self):
        ids = [self.submit({"n": n}, queue="gpu", max_receives=2)["id"] for n in range(4)]
        script = ("import json, sys; n = json.load(sys.stdin)['n']; "
                  "sys.exit('no' if n == 1 else 75) if n in (1, 2) else print(json.dumps({'square': n * n}))")
        command = [sys.executable, str(blackbox.SOURCE / "examples/lease_worker.py"), "--url", f"http://127.0.0.1:{self.server.port}",
                   "--queue", "gpu", "--wait", "1", "--once", "--", sys.executable, "-c", script]
        done = subprocess.run(command, env=dict(os.environ, WAYBILL_KEY="ops-key"), capture_output=True, text=True, timeout=120, check=False)
        self.assertEqual(done.returncode, 0, done.stderr)
        jobs = [self.job(job) for job in ids]
        self.assertEqual([job["status"] for job in jobs], ["completed", "failed", "dead", "completed"], done.stdout)
        self.assertEqual(jobs[3]["result"]["body"], {"square": 9})
        self.assertEqual(jobs[1]["result"]["body"]["error"]["code"], "exit_1")


class Queues(Jobs):
    def test_how_they_are(self):
        for _ in range(3):
            self.submit({}, queue="gpu")
        self.submit({}, queue="gpu", run_after=time.time() + 3600)
        self.post("/v1/queues/gpu/lease")
        queue = self.server.get("/v1/queues/gpu", headers=APP).json
        self.assertEqual((queue["name"], queue["workers"], queue["paused"], queue["in_flight"]), ("gpu", "external", False, 1))
        self.assertEqual({state: count for state, count in queue["depth"].items() if count}, {"queued": 2, "running": 1, "scheduled": 1})
        self.assertGreater(queue["oldest_age"], 0)
        self.assertEqual(self.server.get("/v1/queues/gpu/scale", headers=NARROW).json, {"value": 3})
        names = [queue["name"] for queue in self.server.get("/v1/queues", headers=APP).json["data"]]
        self.assertEqual(sorted(names), ["default", "gpu", "keyed", "small"])
        self.assertEqual(self.server.get("/v1/queues/nowhere", headers=APP).status, 404)

    def test_another_configuration(self):
        path = self.folder / "waybill.yaml"
        text = path.read_text()
        path.write_text(text.replace("    - {name: gpu,", "    - {name: fresh, concurrency: 1}\n    - {name: gpu,"))
        self.assertIn("in force", self.post("/v1/admin/reload")["message"])
        self.assertEqual(self.ended(self.submit(queue="fresh")["id"])["status"], "completed")
        path.write_text(text.replace("path: jobs.db", "path: others.db"))
        self.assertIn("needs a restart", self.post("/v1/admin/reload")["message"])
        self.refused(404, "queue", request=ASK, queue="fresh")

    def test_a_queue_that_changes(self):
        path = self.folder / "waybill.yaml"
        text = path.read_text()
        waiting = self.submit({}, queue="gpu")["id"]
        gone = self.submit({}, queue="small")["id"]
        self.post(f"/v1/jobs/{gone}/cancel")
        lost = self.submit({}, queue="small", max_receives=1)["id"]
        (leased,) = self.post("/v1/queues/small/lease")["data"]
        self.post(f"/v1/leases/{leased['token']}/fail", {"error": {"code": "worn_out", "message": "no more"}})
        self.submit({}, queue="small")
        changed = text.replace("    - {name: small, workers: external, max_depth: 2}\n", "").replace("{name: gpu, workers: external,", "{name: gpu,")
        self.assertNotEqual(changed, text)
        path.write_text(changed)
        self.post("/v1/admin/reload")
        dead = self.ended(waiting)
        self.assertEqual((dead["status"], [attempt["code"] for attempt in dead["attempts"]]), ("dead", ["queue_changed"]))
        queues = {queue["name"]: queue for queue in self.server.get("/v1/queues", headers=OPS).json["data"]}
        self.assertEqual({name: queue["configured"] for name, queue in queues.items()},
                         {"default": True, "gpu": True, "keyed": True, "small": False})
        self.assertEqual(queues["small"]["depth"]["queued"], 1)
        refused = self.server.post(f"/v1/jobs/{gone}/retry", {}, headers=OPS)
        self.assertEqual((refused.status, refused.json["error"]["code"]), (409, "queue_not_configured"))
        redriven = self.post("/v1/dead-letters/redrive", {"ids": [lost, waiting], "dry_run": True})
        self.assertEqual((redriven["ids"], redriven["refused"]), ([waiting], [{"id": lost, "code": "queue_not_configured"}]))
        self.assertEqual(self.post("/v1/dead-letters/redrive", {"ids": [lost]})["count"], 0)
        self.refused(400, "queue", path="/v1/dead-letters/redrive", headers=OPS, queue="small")
        self.assertEqual(self.job(lost)["status"], "dead")
        path.write_text(text)
        self.post("/v1/admin/reload")
        self.server.post(f"/v1/jobs/{waiting}/retry", {}, headers=OPS)
        self.assertEqual([lease["job"]["id"] for lease in self.post("/v1/queues/gpu/lease")["data"]], [waiting])

    def test_paused_and_resumed(self):
        self.assertEqual(self.server.post("/v1/queues/default/pause", {}, headers=APP).status, 403)
        self.assertTrue(self.post("/v1/queues/default/pause")["paused"])
        job = self.submit()["id"]
        self.assertEqual(self.job(job, wait=0.5)["status"], "queued")
        self.restart()
        self.assertEqual(self.job(job, wait=0.5)["status"], "queued", "also after a restart")
        self.assertFalse(self.post("/v1/queues/default/resume")["paused"])
        self.assertEqual(self.ended(job)["status"], "completed")


class Restarted(Jobs):
    def test_jobs_outlive_the_server(self):
        self.post("/v1/queues/default/pause")
        ids = [self.submit()["id"] for _ in range(20)]
        self.restart(kill=True)
        self.post("/v1/queues/default/resume")
        for job in ids:
            self.assertEqual(self.ended(job)["status"], "completed")
        self.assertEqual(self.a.settled()["started"], 20)

    def test_a_job_that_was_being_called_is_in_doubt_and_made_again(self):
        self.a.rule("hang=headers")
        job = self.submit()["id"]
        self.a.wait_for(lambda calls: calls["in_flight"] == 1)
        self.until(job, "running")
        self.server.kill()
        self.a.settled()
        self.a.rule("")
        self.start()
        done = self.ended(job)
        self.assertEqual((done["status"], done["receives"], done["in_doubt"]), ("completed", 2, 1))
        self.assertTrue(done["attempts"][0]["in_doubt"])
        self.assertEqual(self.a.settled()["started"], 2)

    def test_what_runs_when_the_server_is_stopped_ends_first(self):
        self.a.rule("delay=1000")
        job = self.submit()["id"]
        self.a.wait_for(lambda calls: calls["in_flight"] == 1)
        self.restart()
        done = self.job(job)
        self.assertEqual((done["status"], done["receives"]), ("completed", 1))
        self.assertEqual(self.a.settled()["started"], 1)


class Full(Jobs):
    """No file may become larger than this, as on a disk that is full."""

    limit = 4 << 20

    def start(self):
        def limited():
            resource.setrlimit(resource.RLIMIT_FSIZE, (self.limit, self.limit))
            signal.signal(signal.SIGXFSZ, signal.SIG_IGN)  # an error of the write, as it would be there

        super().start(**({"preexec_fn": limited} if self.limit else {}))

    def test_nothing_that_was_accepted_is_lost_and_no_more_is_accepted(self):
        self.post("/v1/queues/default/pause")
        request = {**ASK, "messages": [{"role": "user", "content": "x" * 40_000}]}
        accepted = []
        while (answer := self.server.post("/v1/jobs", {"request": request}, headers=APP)).status == 202:
            accepted.append(answer.json["id"])
            self.assertLess(len(accepted), 1000)
        self.assertEqual((answer.status, answer.error["code"]), (503, "store_unavailable"), answer.body)
        self.assertGreater(len(accepted), 10)
        self.assertEqual(self.server.get("/ready").status, 503)
        self.assertEqual(self.server.post("/v1/chat/completions", ASK, headers=APP).status, 200, "calls go on")
        keyed = self.server.post("/v1/chat/completions", ASK, headers={**APP, "Idempotency-Key": "full"})
        self.assertEqual((keyed.status, keyed.error["code"]), (503, "store_unavailable"))
        self.limit = 0
        self.restart(kill=True)
        self.post("/v1/queues/default/resume")
        for job in accepted:
            self.assertEqual(self.ended(job)["status"], "completed")
        self.assertEqual(self.server.get("/v1/queues/default", headers=OPS).json["depth"]["completed"], len(accepted))
        self.assertEqual(self.server.get("/ready").status, 200)


class Moved(Jobs):
    def test_a_store_whose_file_is_moved_is_not_written_until_it_is_back(self):
        kept = self.submit()["id"]
        self.assertEqual(self.ended(kept)["status"], "completed")
        store, aside = self.folder / "jobs.db", self.folder / "aside.db"
        store.rename(aside)
        self.until_ready(503)  # nobody has asked for anything
        answer = self.server.post("/v1/jobs", {"request": ASK}, headers=APP)
        self.assertEqual((answer.status, answer.error["code"]), (503, "store_unavailable"), answer.body)
        self.assertIn("waybill_store_writable 0\n", self.server.get("/metrics", headers=OPS).body.decode())
        told = self.server.wait_for_event("the store cannot be written: no jobs are accepted, none is begun")
        self.assertIn("jobs.db was deleted or replaced", told["why"])
        aside.rename(store)
        self.until_ready(200)
        self.server.wait_for_event("the store can be written again")
        self.assertEqual(self.ended(self.submit()["id"])["status"], "completed")
        self.restart(kill=True)
        self.assertEqual(self.job(kept)["status"], "completed")

    def until_ready(self, status):
        deadline = time.monotonic() + 60
        while self.server.get("/ready").status != status:
            self.assertLess(time.monotonic(), deadline, self.server.log_text())
            time.sleep(0.05)


class Without(Jobs):
    more = ""

    def test_a_server_without_a_store_has_no_jobs(self):
        for method, path in (("POST", "/v1/jobs"), ("GET", "/v1/jobs"), ("GET", "/v1/jobs/x"), ("GET", "/v1/queues"), ("POST", "/v1/queues/gpu/lease"),
                             ("POST", "/v1/leases/x/complete"), ("GET", "/v1/dead-letters")):
            answer = self.server.ask(method, path, "{}" if method == "POST" else None, headers=OPS)
            self.assertEqual(answer.status, 404, path)
            self.assertIn("store.path", answer.error["message"])
        answer = self.server.post("/v1/chat/completions", ASK, headers={**APP, "Prefer": "respond-async"})
        self.assertEqual(answer.status, 200)
        self.assertNotIn("preference-applied", answer.headers)


class Documented(blackbox.Case):
    def test_what_docs_jobs_md_shows_works(self):
        text = (blackbox.SOURCE / "docs/jobs.md").read_text()
        config = re.search(r"```yaml\n(.*?)```", text, re.DOTALL)[1]
        mock = MockProvider(self)
        config = config.replace("/var/lib/waybill/jobs.db", "jobs.db").replace("http://10.0.0.11:8000", mock.url)
        server = Server(self, self.write_config("encoder: {model: {model}}\n" + config))
        waiting = server.post("/v1/jobs", {"queue": "gpu", "request": {}}).json["id"]
        environment = dict(os.environ, WAITING=waiting, JOB="", TOKEN="")
        shown = 0
        for block in re.findall(r"```sh\n(.*?)```", text, re.DOTALL):
            for command in re.findall(r"^curl (?:.(?!^curl ))+", block, re.DOTALL | re.MULTILINE):
                line = command.replace("curl ", "curl -sS --fail-with-body ", 1).replace("127.0.0.1:8000", f"127.0.0.1:{server.port}")
                with self.subTest(command):
                    done = subprocess.run(["bash", "-c", line], env=environment, capture_output=True, text=True, timeout=60, check=False)
                    self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
                shown += 1
                answer = json.loads(done.stdout) if done.stdout.startswith("{") else {}
                if not environment["JOB"]:
                    environment["JOB"] = answer["id"]
                if answer.get("data") and "token" in answer["data"][0]:
                    environment["TOKEN"] = answer["data"][0]["token"]
        self.assertGreater(shown, 20)
        self.assertTrue(environment["TOKEN"])


if __name__ == "__main__":
    blackbox.main()
