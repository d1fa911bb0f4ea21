#!/usr/bin/env python3
"""Idempotency-Keys and budgets, also across restarts; calls that become jobs because their client asked for it."""
import sys
import threading
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
import blackbox
from gateway_config import APP, OPS
from jobs import ASK, JOBS, Jobs, NARROW, STREAM
from provider import words
from streamed import Call


class Idempotent(Jobs):
    def key(self, name, headers=APP):
        return {**headers, "Idempotency-Key": name}

    def test_the_same_key_is_the_same_job(self):
        first = self.server.post("/v1/jobs", {"request": ASK}, headers=self.key("k1"))
        done = self.ended(first.json["id"])
        self.assertIn("idempotency-key: k1", self.a.requests()[-1]["head"].lower())
        self.restart()
        again = self.server.post("/v1/jobs", {"request": ASK}, headers=self.key("k1"))
        self.assertEqual((again.status, again.json["id"], again.headers["idempotent-replayed"]), (202, done["id"], "true"))
        self.assertEqual(again.json["status"], "completed")
        self.assertNotIn("idempotent-replayed", first.headers)
        other = self.server.post("/v1/jobs", {"request": {**ASK, "seed": 1}}, headers=self.key("k1"))
        self.assertEqual((other.status, other.error["code"]), (422, "idempotency_key_reused"))
        theirs = self.server.post("/v1/jobs", {"request": ASK}, headers=self.key("k1", NARROW))
        self.assertNotEqual(theirs.json["id"], done["id"], "another caller's key is another key")
        self.ended(theirs.json["id"], NARROW)
        self.assertEqual(self.a.settled()["started"], 2)

    def test_many_with_one_key_at_once_make_one_job(self):
        answers = []
        threads = [threading.Thread(target=lambda: answers.append(self.server.post("/v1/jobs", {"request": ASK}, headers=self.key("k2"))))
                   for _ in range(20)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual({answer.status for answer in answers}, {202})
        self.assertEqual(len({answer.json["id"] for answer in answers}), 1)
        self.assertEqual(sum("idempotent-replayed" not in answer.headers for answer in answers), 1)
        self.ended(answers[0].json["id"])
        self.assertEqual(self.a.settled()["started"], 1)

    def test_a_list_has_one_key_for_all(self):
        jobs = {"jobs": [{"request": {**ASK, "seed": i}} for i in range(3)]}
        one, two = (self.server.post("/v1/jobs", jobs, headers=self.key("k3")) for _ in range(2))
        self.assertEqual([job["id"] for job in one.json["data"]], [job["id"] for job in two.json["data"]])
        self.assertEqual(len({job["id"] for job in one.json["data"]}), 3)
        self.assertEqual(two.headers["idempotent-replayed"], "true")

    def test_dedupe(self):
        ask = lambda **dedupe: self.submit(queue="gpu", request={"x": 1}, dedupe=dedupe)["id"]
        first = ask(document_id="7", prompt_version="1")
        self.assertEqual(ask(document_id="7", prompt_version="1"), first)
        self.assertNotEqual(ask(document_id="7", prompt_version="2"), first)
        self.assertNotEqual(ask(document_id="8", prompt_version="1"), first)

    def test_a_queue_may_ask_for_keys(self):
        self.refused(400, "Idempotency-Key", request=ASK, queue="keyed")
        job = self.submit(headers=self.key("k4"), queue="keyed")
        self.assertEqual(self.ended(job["id"])["status"], "completed")


class Spending(Jobs):
    POOR, WARNED = ({"Authorization": f"Bearer {key}-key"} for key in ("poor", "warned"))

    def usage(self):
        return self.server.get("/v1/usage", headers=OPS).json

    def spent(self):
        return {each["caller"]: each["today_usd"] for each in self.usage()["data"]}

    def call(self, headers):
        return self.server.post("/v1/chat/completions", ASK, headers=headers).status

    def test_a_budget_outlives_the_server(self):
        self.assertEqual([self.call(self.POOR) for _ in range(3)], [200, 200, 429])
        before = self.spent()
        self.assertGreaterEqual(before["poor"], 0.05)
        self.assertEqual((before["app"], before["warned"]), (0, 0))
        self.restart()
        self.assertEqual(self.spent(), before)
        self.assertEqual(self.call(self.POOR), 429)
        self.assertEqual(self.call(APP), 200)
        self.restart()
        self.assertEqual(self.call(self.POOR), 429)
        self.assertGreater(self.spent()["app"], 0)

    def test_also_a_server_that_is_killed(self):
        self.assertEqual(self.call(self.WARNED), 200)
        spent = self.spent()
        deadline = time.monotonic() + 60
        while True:  # it is written about once a second
            self.restart(kill=True)
            if self.spent() == spent:
                break
            self.assertLess(time.monotonic(), deadline, "it was never written")
            self.assertEqual(self.call(self.WARNED), 200)
            spent = self.spent()
            time.sleep(1.5)

    def test_tags_sum_up(self):
        for headers in (self.POOR, self.WARNED):
            self.assertEqual(self.call(headers), 200)
        usage = self.usage()
        tags = {each["tag"]: each for each in usage["tags"]}
        spent = {each["caller"]: each for each in usage["data"]}
        self.assertEqual({tag: each["callers"] for tag, each in tags.items()}, {"team-a": 2, "nightly": 1})
        self.assertAlmostEqual(tags["team-a"]["today_usd"], spent["poor"]["today_usd"] + spent["warned"]["today_usd"])
        self.assertAlmostEqual(tags["nightly"]["this_month_usd"], spent["warned"]["this_month_usd"])
        self.assertEqual((spent["poor"]["budget_per_day_usd"], spent["poor"]["budget_mode"], spent["warned"]["budget_mode"]), (0.1, "hard", "warn"))


class Durable(Jobs):
    """Synchronous calls with an Idempotency-Key, where there is a store."""

    def call(self, key="s1", body=ASK, headers=APP):
        return self.server.post("/v1/chat/completions", body, headers={**headers, "Idempotency-Key": key})

    def test_an_answer_outlives_the_server(self):
        first = self.call()
        self.assertEqual(first.status, 200, first.body)
        for kill in (False, True):
            again = self.call()
            self.assertEqual((again.status, again.body, again.headers["idempotent-replayed"]), (200, first.body, "true"))
            self.restart(kill)
        again = self.call()
        self.assertEqual((again.status, again.body, again.headers["idempotent-replayed"]), (200, first.body, "true"))
        self.assertEqual((again.headers["x-waybill-target"], again.headers["x-waybill-attempts"]), ("a/mock", "0"))
        other = self.call(body={**ASK, "seed": 1})
        self.assertEqual((other.status, other.error["code"]), (422, "idempotency_key_reused"))
        self.assertEqual(self.a.settled()["started"], 1)

    def test_so_does_a_stream(self):
        first = self.call(body=STREAM)
        self.restart()
        again = self.call(body=STREAM)
        self.assertEqual((again.body, again.headers["idempotent-replayed"]), (first.body, "true"))
        self.assertTrue(again.headers["content-type"].startswith("text/event-stream"))
        self.assertEqual(self.a.settled()["started"], 1)

    def test_and_a_providers_error(self):
        self.a.rule("status=422")
        first = self.call()
        self.a.rule("")
        self.restart()
        again = self.call()
        self.assertEqual((first.status, again.status, again.body), (422, 422, first.body))
        self.assertEqual(self.a.settled()["started"], 1)

    def test_what_was_refused_here_is_not_kept(self):
        slow = {"Authorization": "Bearer slow-key"}
        for i in range(3):
            self.assertEqual(self.call(f"r{i}", headers=slow).status, 200)
        self.assertEqual(self.call("r3", headers=slow).status, 429)
        self.restart()
        self.assertEqual(self.call("r3", headers=slow).status, 200)

    def test_equal_keys_at_once_are_one_call(self):
        self.a.rule("itl=30")
        calls = [Call(self.server.port, STREAM, ["authorization: Bearer app-key", "idempotency-key: live"]) for _ in range(5)]
        for call in calls:
            self.addCleanup(call.leave)
            call.read(until=b"w3")
        self.assertEqual(self.a.calls()["in_flight"], 1, "all have its first words while it is under way")
        self.assertEqual({call.read().text for call in calls}, {words()})
        self.assertEqual(self.a.settled()["started"], 1)

    def test_a_call_that_died_with_the_server_is_made_again(self):
        self.a.rule("hang=headers")
        with Call(self.server.port, ASK, ["authorization: Bearer app-key", "idempotency-key: lost"]):
            self.a.wait_for(lambda calls: calls["in_flight"] == 1)
            self.server.kill()
        self.a.settled()
        self.a.rule("")
        self.start()
        again = self.call("lost")
        self.assertEqual(again.status, 200, again.body)
        self.assertNotIn("idempotent-replayed", again.headers)
        self.assertEqual(self.a.settled()["started"], 2)
        kept = self.call("lost")
        self.assertEqual((kept.body, kept.headers["idempotent-replayed"]), (again.body, "true"))
        self.server.wait_for_event("jobs were lost by their workers when their calls had begun")
        metrics = self.server.get("/metrics", headers=OPS).body.decode()
        self.assertIn('waybill_in_doubt_total{queue="(calls)"} 1', metrics)

    def test_a_client_that_goes_away_leaves_its_key_free(self):
        self.a.rule("hang=headers")
        with Call(self.server.port, ASK, ["authorization: Bearer app-key", "idempotency-key: gone"]):
            self.a.wait_for(lambda calls: calls["in_flight"] == 1)
        self.assertEqual(self.a.settled()["cancelled"], 1)
        self.a.rule("")
        again = self.call("gone")
        self.assertEqual((again.status, self.a.settled()["started"]), (200, 2), again.body)


    def test_the_record_of_a_call_is_no_job(self):
        jobs = [self.submit(queue="gpu", request={})["id"] for _ in range(2)]
        self.a.rule("hang=headers")
        with Call(self.server.port, ASK, ["authorization: Bearer app-key", "idempotency-key: record"]):
            self.a.wait_for(lambda calls: calls["in_flight"] == 1)
            jobs.append(self.submit(queue="gpu", request={})["id"])
            (record,) = self.server.get("/v1/jobs?queue=(calls)", headers=APP).json["data"]
            for method, path, code in (("POST", "/cancel", "job_not_cancellable"), ("POST", "/retry", "job_not_retryable"),
                                       ("DELETE", "", "job_not_ended")):
                answer = self.server.ask(method, f"/v1/jobs/{record['id']}{path}", headers=APP)
                self.assertEqual((answer.status, answer.error["code"]), (409, code), answer.body)
                self.assertIn("record of a call", answer.error["message"])
            self.assertEqual(self.job(record["id"])["status"], "running")
            self.assertEqual(self.a.calls()["in_flight"], 1)
            pages, after = [], ""
            for headers in APP, OPS:
                self.assertEqual([job["id"] for job in self.server.get("/v1/jobs", headers=headers).json["data"]], jobs[::-1])
            while after is not None:
                page = self.server.get(f"/v1/jobs?limit=1{after and '&after=' + after}", headers=APP).json
                pages += [job["id"] for job in page["data"]]
                after = page["next"]
            self.assertEqual(pages, jobs[::-1], "page by page")
            self.server.kill()
        self.a.settled()
        self.start()
        self.assertEqual(self.ended(record["id"])["status"], "dead")
        self.assertEqual(self.server.get("/v1/dead-letters", headers=APP).json["data"], [])
        dead = self.server.get("/v1/dead-letters?queue=(calls)", headers=APP).json["data"]
        self.assertEqual([job["id"] for job in dead], [record["id"]])
        self.refused(400, "queue", path="/v1/dead-letters/redrive", headers=OPS, queue="(calls)")
        self.assertEqual(self.post("/v1/dead-letters/redrive", {"ids": [record["id"]]})["count"], 0)
        self.assertEqual(self.server.ask("DELETE", f"/v1/jobs/{record['id']}", headers=APP).status, 200, "it has ended")


class Refusing(Jobs):
    more = JOBS.replace("  max_jobs_per_call", "  wait_for_same_key: false\n  max_jobs_per_call")

    def test_a_key_that_is_in_use(self):
        self.a.rule("hang=headers")
        headers = ["authorization: Bearer app-key", "idempotency-key: busy"]
        with Call(self.server.port, ASK, headers):
            self.a.wait_for(lambda calls: calls["in_flight"] == 1)
            answer = self.server.post("/v1/chat/completions", ASK, headers={**APP, "Idempotency-Key": "busy"})
            self.assertEqual((answer.status, answer.error["code"]), (409, "idempotency_key_in_use"))
        self.a.settled()
        self.a.rule("")
        self.assertEqual(self.server.post("/v1/chat/completions", ASK, headers={**APP, "Idempotency-Key": "busy"}).status, 200)


class Preferred(Jobs):
    def ask(self, prefer, path="/v1/chat/completions", body=ASK, **headers):
        return self.server.post(path, body, headers={**APP, "Prefer": prefer, **headers})

    def test_a_call_becomes_a_job(self):
        for path, body in (("/v1/chat/completions", ASK), ("/v1/completions", {"model": "mock", "prompt": "hi"}),
                           ("/v1/embeddings", {"model": "mock-embed", "input": "hi"}), ("/v1/embeddings", {"input": "hi"})):
            answer = self.ask("respond-async", path, body)
            self.assertEqual((answer.status, answer.headers["preference-applied"]), (202, "respond-async"), answer.body)
            self.assertEqual(answer.headers["location"], f"/v1/jobs/{answer.json['id']}")
            done = self.ended(answer.json["id"])
            self.assertEqual((done["status"], done["endpoint"]), ("completed", path))

    def test_or_is_answered_when_it_is_soon_done(self):
        answer = self.ask("respond-async, wait=30")
        self.assertEqual((answer.status, answer.headers["preference-applied"]), (200, "respond-async, wait=30"), answer.body)
        self.assertEqual(answer.json["choices"][0]["message"]["content"], words())
        self.assertEqual(self.job(answer.headers["x-waybill-job-id"])["status"], "completed")
        self.a.rule("status=422")
        self.assertEqual(self.ask("respond-async, wait=30").status, 422)

    def test_or_is_the_job_that_is_under_way(self):
        self.a.rule("delay=3000")
        answer = self.ask("respond-async, wait=1")
        self.assertEqual(answer.status, 202)
        self.assertEqual(self.ended(answer.json["id"])["status"], "completed")
        self.assertEqual(self.a.settled()["started"], 1)

    def test_what_is_wrong_is_told_at_once(self):
        self.assertEqual(self.ask("respond-async", body={**ASK, "model": "mok"}).error["param"], "model")
        self.assertEqual(self.ask("respond-async", body={"model": "mock"}).error["param"], "messages")
        answer = self.ask("respond-async", **{"x-waybill-queue": "nowhere"})
        self.assertEqual((answer.status, answer.error["param"]), (404, "queue"))
        self.assertNotIn("preference-applied", answer.headers)

    def test_with_a_key_it_is_one_call_however_it_is_asked(self):
        first = self.ask("respond-async", **{"Idempotency-Key": "p1"})
        again = self.ask("respond-async", **{"Idempotency-Key": "p1"})
        self.assertEqual((again.json["id"], again.headers["idempotent-replayed"]), (first.json["id"], "true"))
        answer = self.server.post("/v1/chat/completions", ASK, headers={**APP, "Idempotency-Key": "p1"})
        self.assertEqual((answer.status, answer.headers["idempotent-replayed"]), (200, "true"), answer.body)
        self.assertEqual(answer.json["choices"][0]["message"]["content"], words())
        self.assertEqual(self.a.settled()["started"], 1)

    def test_a_queue_may_ask_for_keys(self):
        keyed = {"x-waybill-queue": "keyed"}
        answer = self.ask("respond-async", **keyed)
        self.assertEqual((answer.status, answer.error["param"]), (400, "Idempotency-Key"), answer.body)
        self.assertIn('"keyed"', answer.error["message"])
        answer = self.ask("respond-async, wait=30", **keyed, **{"Idempotency-Key": "p2"})
        self.assertEqual(answer.status, 200, answer.body)
        self.assertEqual(self.a.settled()["started"], 1)

    def test_what_is_in_quotes_is_no_preference(self):
        for prefer in ('foo="unterminated, respond-async', 'foo="a, respond-async"'):
            answer = self.ask(prefer)
            self.assertEqual(answer.status, 200, prefer)
            self.assertNotIn("preference-applied", answer.headers)
        self.assertEqual(self.ask('foo="a, b", respond-async').status, 202)

    def test_other_preferences_are_left_aside(self):
        answer = self.ask("return=minimal, wait=5")
        self.assertEqual(answer.status, 200)
        self.assertNotIn("preference-applied", answer.headers)


class Promoted(Jobs):
    more = JOBS.replace("  max_jobs_per_call", "  promote_after: 200ms\n  max_jobs_per_call")

    def test_a_call_that_would_take_too_long_becomes_a_job(self):
        self.a.rule("delay=600")
        patient = self.server.post("/v1/chat/completions", ASK, headers=APP)
        self.assertEqual(patient.status, 200)  # and so it is known how long it takes
        answer = self.server.post("/v1/chat/completions", ASK, headers={**APP, "x-waybill-gateway-timeout-ms": "60000"})
        self.assertEqual(answer.status, 202, answer.body)
        self.assertEqual(self.ended(answer.json["id"])["status"], "completed")
        self.assertEqual(self.server.post("/v1/chat/completions", ASK, headers=APP).status, 200, "who said nothing waits")
        waits = {**APP, "x-waybill-gateway-timeout-ms": "60000", "x-waybill-queue": "keyed"}
        self.assertEqual(self.server.post("/v1/chat/completions", ASK, headers=waits).status, 200, "its queue takes none without a key")


if __name__ == "__main__":
    blackbox.main()
