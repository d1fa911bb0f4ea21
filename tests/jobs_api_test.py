#!/usr/bin/env python3
"""Jobs over HTTP, as their clients meet them: submitted, waited for, taken back, tried again, listened to."""
import json
import sys
import threading
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
import blackbox
from gateway_config import APP, OPS
from jobs import ASK, Events, Jobs, NARROW, STREAM
from provider import words


class Submitted(Jobs):
    def test_a_job_is_done_and_its_answer_kept(self):
        job = self.submit(metadata={"batch": "7"}, priority=3)
        self.assertEqual((job["object"], job["queue"], job["priority"], job["endpoint"]), ("job", "default", 3, "/v1/chat/completions"))
        self.assertIn(job["status"], ("queued", "running"))
        done = self.ended(job["id"])
        self.assertEqual((done["status"], done["receives"], done["in_doubt"], done["metadata"]), ("completed", 1, 0, {"batch": "7"}))
        self.assertAlmostEqual(done["created_at"], job["created_at"], places=2)
        self.assertLessEqual(done["created_at"], done["started_at"])
        self.assertLessEqual(done["started_at"], done["finished_at"])
        self.assertEqual(done["result"]["status_code"], 200)
        self.assertEqual(done["result"]["body"]["choices"][0]["message"]["content"], words())
        self.assertEqual(done["result"]["facts"]["target"], "a/mock")
        answer = self.server.get(done["result_url"], headers=APP)
        self.assertEqual((answer.status, answer.json, answer.headers["x-waybill-target"]), (200, done["result"]["body"], "a/mock"))
        self.assertEqual(self.a.settled()["started"], 1)

    def test_the_call_is_that_of_the_endpoint_with_the_jobs_key(self):
        body = '{ "messages" : [{"role":"user","content":"\\u00e9"}], "model":"mock", "seed":1.0e0 }'
        answer = self.server.post("/v1/jobs", '{"request": ' + body + '}', headers={**APP, "X-Correlation-Id": "order-7"})
        job = self.ended(answer.json["id"])
        sent = self.a.requests()[-1]
        self.assertEqual(sent["body"], body)
        self.assertIn(f"idempotency-key: {job['id']}", sent["head"].lower())
        self.assertEqual(answer.headers["location"], f"/v1/jobs/{job['id']}")
        self.assertGreaterEqual(int(answer.headers["retry-after"]), 1)
        waybill = self.server.get(f"/v1/requests/{job['result']['facts']['request_id']}", headers=OPS).json
        self.assertEqual((waybill["endpoint"], waybill["caller"], waybill["correlation_id"]), ("/v1/chat/completions", "app", "order-7"))

    def test_other_calls_and_their_forms(self):
        for request, endpoint in (({"model": "mock", "prompt": "hi"}, "/v1/completions"),
                                  ({"model": "mock-embed", "input": "hi"}, "/v1/embeddings"),
                                  ({"model": "all-MiniLM-L6-v2", "input": "hi"}, "/v1/embeddings"),
                                  ({"method": "POST", "url": "/v1/chat/completions", "body": ASK}, "/v1/chat/completions"),
                                  ({**ASK, "model": "auto"}, "/v1/chat/completions")):
            done = self.ended(self.submit(request)["id"])
            self.assertEqual((done["endpoint"], done["status"]), (endpoint, "completed"), done)

    def test_a_thousand_at_once(self):
        answer = self.post("/v1/jobs", {"jobs": [{"request": {**ASK, "user": str(i)}, "metadata": {"n": str(i)}} for i in range(1000)]}, APP, 202)
        self.assertEqual((answer["object"], len(answer["data"])), ("list", 1000))
        ids = [job["id"] for job in answer["data"]]
        self.assertEqual(len(set(ids)), 1000)
        for job in ids[-1], ids[0], ids[500]:
            self.ended(job)
        self.a.wait_for(lambda calls: calls["finished"] == 1000)
        deadline = time.monotonic() + 60
        while (queue := self.server.get("/v1/queues/default", headers=APP).json)["depth"]["completed"] < 1000:
            self.assertLess(time.monotonic(), deadline, queue)
        self.assertEqual((queue["depth"]["completed"], queue["in_flight"]), (1000, 0))
        self.assertEqual(self.a.settled()["started"], 1000)
        self.refused(400, "jobs[1].priority", jobs=[{"request": ASK}, {"request": ASK, "priority": 10}])
        self.refused(400, "jobs", jobs=[{"request": ASK}] * 1001)
        self.assertEqual(self.server.get("/v1/jobs?limit=1", headers=APP).json["data"][0]["id"], max(ids), "nothing was made of those")

    def test_what_is_wrong_is_told_before_it_is_accepted(self):
        narrow = {"headers": NARROW}
        for status, field, job in (
                (400, "request", {}), (400, "request", {"request": 7}), (400, "request", {"request": {"model": "mock"}}),
                (400, "prority", {"request": ASK, "prority": 1}),
                (404, "request.model", {"request": {**ASK, "model": "mok"}}),
                (400, "request.messages", {"request": {"model": "mock", "messages": []}}),
                (400, "request.messages[0]", {"request": {"model": "mock", "messages": [7]}}),
                (400, "request.model", {"request": {"messages": ASK["messages"]}}),
                (400, "request.stream", {"request": {**ASK, "stream": "yes"}}),
                (404, "request.model", {"request": {"model": "gpt", "input": "hi"}}),
                (400, "request.url", {"request": {"url": "/v1/models", "body": {}}}),
                (400, "request.method", {"request": {"method": "GET", "url": "/v1/chat/completions", "body": ASK}}),
                (400, "request.body", {"request": {"url": "/v1/chat/completions"}}),
                (400, "request.body.messages", {"request": {"url": "/v1/chat/completions", "body": {"model": "mock", "messages": 1}}}),
                (404, "queue", {"request": ASK, "queue": "defalt"}), (400, "queue", {"request": ASK, "queue": 7}),
                (400, "kind", {"request": {}, "kind": "external"}), (400, "kind", {"request": {}, "kind": "other", "queue": "gpu"}),
                (400, "priority", {"request": ASK, "priority": -1}), (400, "priority", {"request": ASK, "priority": 1.5}),
                (400, "run_after", {"request": ASK, "run_after": "soon"}), (400, "run_after", {"request": ASK, "run_after": 4e9}),
                (400, "expires_in", {"request": ASK, "expires_in": 0}),
                (400, "expires_in", {"request": ASK, "expires_in": 10, "run_after": time.time() + 60}),
                (400, "max_receives", {"request": ASK, "max_receives": 0}), (400, "max_receives", {"request": ASK, "max_receives": 101}),
                (400, "webhook", {"request": ASK, "webhook": "ftp://example.com/"}), (400, "webhook", {"request": ASK, "webhook": 7}),
                (400, "webhook", {"request": ASK, "webhook": {"uri": "https://example.com/"}}),
                (400, "webhook.url", {"request": ASK, "webhook": {"url": "https://169.254.169.254/"}}),
                (400, "metadata", {"request": ASK, "metadata": []}), (400, "metadata.a", {"request": ASK, "metadata": {"a": 1}}),
                (400, "metadata", {"request": ASK, "metadata": {str(i): "" for i in range(17)}}),
                (400, "metadata.a", {"request": ASK, "metadata": {"a": "x" * 513}}),
                (400, "dedupe", {"request": ASK, "dedupe": "a"}), (400, "dedupe.document_id", {"request": ASK, "dedupe": {"prompt_version": "1"}}),
                (400, "Idempotency-Key", {"request": ASK, "queue": "keyed"}),
                (400, "jobs", {"jobs": []}), (400, "jobs", {"jobs": [], "queue": "gpu"}), (400, "jobs[0].request", {"jobs": [{}]})):
            with self.subTest(job):
                self.refused(status, field, **job)
        self.refused(403, "request.model", request={**ASK, "model": "claude"}, **narrow)
        self.assertIn('did you mean "mock"', self.refused(404, "request.model", request={**ASK, "model": "mok"}))
        self.assertIn('did you mean "default"', self.refused(404, "queue", request=ASK, queue="defalt"))
        for body in ("", "{", "[]", '{"request": {}} x', '{"request": ' + "[" * 600):
            answer = self.server.post("/v1/jobs", body, headers=APP)
            self.assertEqual((answer.status, answer.error["type"]), (400, "invalid_request_error"), body)
        deep = "[" * 600 + "]" * 600
        for body in ('{"request": ' + deep + '}', '{"queue": "gpu", "request": ' + deep + '}', '{"jobs": [{"request": ' + deep + '}]}'):
            answer = self.server.post("/v1/jobs", body, headers=APP)
            self.assertEqual(answer.status, 400)
            self.assertIn("nested too deep", answer.error["message"])
        self.assertIn("not valid JSON", self.server.post("/v1/jobs", '{"jobs": [{"request": }]}', headers=APP).error["message"])
        self.refused(400, "Idempotency-Key", headers={**APP, "Idempotency-Key": "x" * 256}, request=ASK)
        self.refused(400, "dedupe", headers={**APP, "Idempotency-Key": "x"}, request=ASK, dedupe={"document_id": "7"})
        self.assertEqual(self.server.get("/v1/jobs", headers=APP).json, {"object": "list", "data": [], "has_more": False, "next": None})
        self.assertEqual(self.a.settled()["started"], 0)

    def test_later_and_no_longer_than(self):
        later = self.submit(run_after=time.time() + 3600)
        self.assertEqual(later["status"], "scheduled")
        soon = self.submit(run_after=time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(time.time() + 1)))
        self.assertEqual(self.ended(soon["id"])["status"], "completed")
        self.assertEqual(self.job(later["id"])["status"], "scheduled")
        short = self.submit(queue="gpu", request={"x": 1}, expires_in=0.2)
        done = self.ended(short["id"])
        self.assertEqual((done["status"], done["error"]["code"]), ("expired", "job_expired"))
        answer = self.server.get(f"/v1/jobs/{short['id']}/result", headers=APP)
        self.assertEqual((answer.status, answer.error["code"]), (410, "job_expired"))

    def test_jobs_of_others_are_not_there(self):
        job = self.submit()["id"]
        self.ended(job)
        for method, path in (("GET", ""), ("GET", "/result"), ("GET", "/events"), ("POST", "/cancel"), ("POST", "/retry"), ("DELETE", "")):
            answer = self.server.ask(method, f"/v1/jobs/{job}{path}", headers=NARROW)
            self.assertEqual(answer.status, 404, (method, path, answer.body))
        self.assertEqual(self.server.get("/v1/jobs", headers=NARROW).json["data"], [])
        self.assertEqual(self.server.get("/v1/queues/default", headers=NARROW).json["depth"]["completed"], 0)
        self.assertEqual(self.job(job, headers=OPS)["id"], job, "an admin sees all")
        for wrong in ("x", "00000000-0000-0000-0000-000000000000"):
            self.assertEqual(self.server.get(f"/v1/jobs/{wrong}", headers=APP).status, 404)
        self.assertEqual(self.server.get("/v1/jobs").status, 401)

    def test_lists(self):
        ids = [self.submit(metadata={"run": str(i % 2), "n": str(i)})["id"] for i in range(7)]
        for job in ids:
            self.ended(job)
        one = self.server.get("/v1/jobs?limit=3", headers=APP).json
        self.assertEqual(([job["id"] for job in one["data"]], one["has_more"], one["next"]), (ids[:3:-1], True, ids[4]))
        rest = self.server.get(f"/v1/jobs?after={one['next']}", headers=APP).json
        self.assertEqual(([job["id"] for job in rest["data"]], rest["has_more"], rest["next"]), (ids[3::-1], False, None))
        odd = self.server.get("/v1/jobs?metadata.run=1&status=completed&queue=default", headers=APP).json["data"]
        self.assertEqual([job["id"] for job in odd], [ids[5], ids[3], ids[1]])
        self.assertEqual(self.server.get("/v1/jobs?status=dead", headers=APP).json["data"], [])
        for wrong in ("status=done", "after=7", "limit=0", "limit=1001"):
            self.assertEqual(self.server.get(f"/v1/jobs?{wrong}", headers=APP).error["param"], wrong.split("=")[0])

    def test_it_is_removed_when_it_has_ended(self):
        job = self.submit(queue="gpu", request={})["id"]
        answer = self.server.ask("DELETE", f"/v1/jobs/{job}", headers=APP)
        self.assertEqual((answer.status, answer.error["code"]), (409, "job_not_ended"))
        self.post(f"/v1/jobs/{job}/cancel", headers=APP)
        answer = self.server.ask("DELETE", f"/v1/jobs/{job}", headers=APP)
        self.assertEqual((answer.status, answer.json), (200, {"id": job, "object": "job", "deleted": True}))
        self.assertEqual(self.server.get(f"/v1/jobs/{job}", headers=APP).status, 404)

    def test_a_queue_that_is_full_refuses(self):
        for _ in range(2):
            self.submit({}, queue="small")
        answer = self.server.post("/v1/jobs", {"request": {}, "queue": "small"}, headers=APP)
        self.assertEqual((answer.status, answer.error["code"], answer.error["param"]), (503, "overloaded", "queue"))
        self.assertGreaterEqual(int(answer.headers["retry-after"]), 1)
        some = self.post("/v1/jobs", {"jobs": [{"request": {}, "queue": "gpu"}, {"request": {}, "queue": "small"}]}, APP, 202)["data"]
        self.assertEqual((some[0]["object"], some[1]["object"], some[1]["error"]["code"]), ("job", "error", "overloaded"))


class Waited(Jobs):
    def test_a_long_poll_ends_with_the_job(self):
        self.a.rule("delay=700")
        job = self.submit()["id"]
        found = self.job(job, wait=60)
        self.assertEqual(found["status"], "completed")
        self.assertEqual(found["result"]["body"]["choices"][0]["message"]["content"], words())

    def test_or_with_its_time(self):
        job = self.submit({}, queue="gpu")["id"]
        self.assertEqual(self.job(job, wait=0.2)["status"], "queued")
        for wrong in ("-1", "61", "soon"):
            self.assertEqual(self.server.get(f"/v1/jobs/{job}?wait={wrong}", headers=APP).error["param"], "wait")
        answer = self.server.get(f"/v1/jobs/{job}/result", headers=APP)
        self.assertEqual((answer.status, answer.error["code"]), (409, "job_not_finished"))
        self.assertGreaterEqual(int(answer.headers["retry-after"]), 1)

    def test_or_when_the_server_is_stopped(self):
        job = self.submit({}, queue="gpu")["id"]
        answers = []
        waiting = threading.Thread(target=lambda: answers.append(self.job(job, wait=60)))
        waiting.start()
        while self.server.get("/v1/ledger", headers=OPS).json["in_flight"] == 0:
            pass
        self.assertEqual(self.server.stop(), 0)
        waiting.join()
        self.assertEqual(answers[0]["status"], "queued")


class Failed(Jobs):
    def test_a_refusal_is_the_answer(self):
        self.a.rule("status=422")
        done = self.ended(self.submit()["id"])
        self.assertEqual((done["status"], done["receives"], done["result"]["status_code"]), ("failed", 1, 422))
        self.assertEqual(self.server.get(done["result_url"], headers=APP).status, 422)
        self.a.rule("")
        again = self.server.post(f"/v1/jobs/{done['id']}/retry", {}, headers=APP)
        self.assertEqual(again.status, 202, again.body)
        self.assertEqual(self.ended(done["id"])["status"], "completed")
        again = self.server.post(f"/v1/jobs/{done['id']}/retry", {}, headers=APP)
        self.assertEqual((again.status, again.error["code"]), (409, "job_not_retryable"))

    def test_what_may_go_better_is_tried_again(self):
        self.a.rule("status=500;times=2;id=1")
        done = self.ended(self.submit()["id"])
        self.assertEqual((done["status"], done["receives"], len(done["attempts"])), ("completed", 3, 2))
        self.assertEqual([attempt["receive"] for attempt in done["attempts"]], [1, 2])
        keys = {line for request in self.a.requests() for line in request["head"].lower().splitlines() if line.startswith("idempotency-key")}
        self.assertEqual(keys, {f"idempotency-key: {done['id']}"}, "the same one each time")

    def test_three_receives_and_it_is_dead(self):
        self.a.rule("status=500")
        done = self.ended(self.submit()["id"])
        self.assertEqual((done["status"], done["receives"], len(done["attempts"])), ("dead", 3, 3))
        self.assertEqual(done["error"]["code"], done["attempts"][-1]["code"])
        answer = self.server.get(f"/v1/jobs/{done['id']}/result", headers=APP)
        self.assertEqual((answer.status, answer.error["code"]), (410, "job_dead"))
        dead = self.server.get("/v1/dead-letters", headers=APP).json["data"]
        self.assertEqual([job["id"] for job in dead], [done["id"]])
        self.assertEqual(self.server.get("/v1/dead-letters?queue=gpu", headers=APP).json["data"], [])

        self.assertEqual(self.server.post("/v1/dead-letters/redrive", {}, headers=APP).status, 403)
        code = done["error"]["code"]
        self.assertEqual(self.post("/v1/dead-letters/redrive", {"dry_run": True, "error_code": code})["ids"], [done["id"]])
        self.assertEqual(self.post("/v1/dead-letters/redrive", {"error_code": "other"})["count"], 0)
        self.assertEqual(self.post("/v1/dead-letters/redrive", {"ids": [done["id"]], "queue": "gpu"})["count"], 0)
        self.assertEqual(self.job(done["id"])["status"], "dead")
        self.a.rule("")
        self.assertEqual(self.post("/v1/dead-letters/redrive", {"queue": "default", "rate_per_second": 100}),
                         {"object": "redrive", "dry_run": False, "count": 1, "ids": [done["id"]]})
        self.assertEqual(self.ended(done["id"])["status"], "completed")

    def test_redriven_by_ids_at_a_rate(self):
        self.a.rule("status=500")
        ids = [self.submit(max_receives=1)["id"] for _ in range(5)]
        for job in ids:
            self.assertEqual(self.ended(job)["status"], "dead")
        self.a.rule("")
        begin = time.monotonic()
        done = self.post("/v1/dead-letters/redrive", {"ids": ids[:4], "rate_per_second": 5})
        self.assertEqual(sorted(done["ids"]), sorted(ids[:4]))
        self.assertGreater(time.monotonic() - begin, 0.4, "four at five a second")
        for job in ids[:4]:
            self.assertEqual(self.ended(job)["status"], "completed")
        self.assertEqual(self.job(ids[4])["status"], "dead")
        for field, wrong in (("ids", 7), ("ids", ["x"]), ("max", 0), ("rate_per_second", 0), ("dry_run", 1), ("reason", "x")):
            self.refused(400, field, path="/v1/dead-letters/redrive", headers=OPS, **{field: wrong})

    def test_cancelled_while_it_is_called(self):
        self.a.rule("hang=headers")
        job = self.submit()["id"]
        self.a.wait_for(lambda calls: calls["in_flight"] == 1)
        self.assertEqual(self.job(job)["status"], "running")
        self.assertEqual(self.post(f"/v1/jobs/{job}/cancel", headers=APP)["status"], "cancelled")
        self.assertEqual(self.a.settled()["cancelled"], 1, "the provider sees it")
        self.assertEqual(self.job(job)["status"], "cancelled")
        answer = self.server.get(f"/v1/jobs/{job}/result", headers=APP)
        self.assertEqual((answer.status, answer.error["code"]), (410, "job_cancelled"))
        self.assertEqual(self.post(f"/v1/jobs/{job}/cancel", headers=APP)["status"], "cancelled", "once more changes nothing")

    def test_a_cancelled_stream(self):
        self.a.rule("hang=3;itl=1")
        job = self.submit(STREAM)["id"]
        seen = []
        for event, _, data in Events(self.server, job):
            seen.append(event)
            if seen.count("chunk") == 3:
                self.post(f"/v1/jobs/{job}/cancel", headers=APP)
        self.assertEqual((seen[-1], json.loads(data)["status"]), ("status", "cancelled"))
        self.assertEqual(self.a.settled()["cancelled"], 1)


class Streamed(Jobs):
    def test_events_as_they_come(self):
        self.a.rule("itl=20")
        job = self.submit(STREAM)["id"]
        events = list(Events(self.server, job))
        statuses = [json.loads(data)["status"] for event, _, data in events if event == "status"]
        self.assertEqual(statuses[-1], "completed")
        chunks = [data for event, _, data in events if event == "chunk"]
        self.assertEqual(chunks[-1], "[DONE]")
        text = "".join(choice["delta"].get("content") or "" for data in chunks[:-1] for choice in json.loads(data)["choices"])
        self.assertEqual(text, words())
        self.assertEqual(events[-1][1], "end")
        late = list(Events(self.server, job))
        self.assertEqual([data for event, _, data in late if event == "chunk"], chunks, "from the beginning for who comes late")
        answer = self.server.get(f"/v1/jobs/{job}/result", headers=APP)
        self.assertTrue(answer.headers["content-type"].startswith("text/event-stream"))
        self.assertEqual(answer.body.decode(), "".join(f"data: {data}\n\n" for data in chunks))

    def test_it_goes_on_where_it_was_left(self):
        self.a.rule("itl=20")
        job = self.submit(STREAM)["id"]
        first = Events(self.server, job)
        seen, last = [], None
        for event, last, data in first:
            if event == "chunk":
                seen.append(data)
            if len(seen) == 5:
                break
        first.close()
        seen += [data for event, _, data in Events(self.server, job, last) if event == "chunk"]
        self.assertEqual(seen, [data for event, _, data in Events(self.server, job) if event == "chunk"])
        for event, at, data in list(Events(self.server, job)):
            if event == "chunk":
                rest = [data for event, _, data in Events(self.server, job, at) if event == "chunk"]
                self.assertEqual(rest, seen[len(seen) - len(rest):])
                self.assertEqual(len(rest), len(seen) - 1 - seen.index(data), at)
        answer = self.server.get(f"/v1/jobs/{job}/events", headers={**APP, "Last-Event-ID": "end"})
        self.assertEqual((answer.status, answer.body), (204, b""))

    def test_a_stream_that_breaks_begins_anew(self):
        self.a.rule("close=4;times=1;id=1")
        done = self.ended(self.submit(STREAM)["id"])
        self.assertEqual((done["status"], done["receives"]), ("completed", 2))
        events = list(Events(self.server, done["id"]))
        restarts = [i for i, (event, _, _) in enumerate(events) if event == "restart"]
        self.assertEqual(len(restarts), 1)
        self.assertEqual(json.loads(events[restarts[0]][2]), {"receive": 2})
        self.assertEqual(done["result"]["body"].count("[DONE]"), 1, "the answer is that of the last attempt")
        self.assertTrue(done["result"]["body"].rstrip().endswith("[DONE]"))

    def test_a_job_that_does_not_stream_has_its_states(self):
        self.a.rule("delay=300")
        job = self.submit()["id"]
        events = list(Events(self.server, job))
        self.assertEqual({event for event, _, _ in events}, {"status"})
        self.assertEqual(json.loads(events[-1][2])["status"], "completed")


if __name__ == "__main__":
    blackbox.main()
