#!/usr/bin/env python3
"""`waybill jobs`, `waybill dead-letters` and `waybill queues` against a running server, and without one."""
import http.server
import json
import os
import re
import shutil
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
import blackbox
from docs_test import fenced_blocks
from jobs import ASK, STREAM, Jobs
from provider import words

UUID = r"[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12}"
NOBODY = "00000000-0000-7000-8000-000000000000"


def free_port():
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return listener.getsockname()[1]


class Commands(Jobs):
    """The program knows the server and has the key "app-key" unless told otherwise."""

    def run_program(self, *arguments, env=None, **more):
        known = {"WAYBILL_URL": f"http://127.0.0.1:{self.server.port}", "WAYBILL_API_KEY": "app-key"}
        return super().run_program(*arguments, env={**known, **(env or {})}, **more)

    def ids(self, *arguments, **more):
        lines = self.succeed("jobs", "submit", *arguments, **more).splitlines()
        for line in lines:
            self.assertRegex(line, rf"\A{UUID}\Z")
        return lines

    def one_id(self, *arguments, **more):
        ids = self.ids(*arguments, **more)
        self.assertEqual(len(ids), 1)
        return ids[0]

    def dead(self, count, **more):
        self.a.rule("status=500")
        ids = [self.submit(max_receives=1, **more)["id"] for _ in range(count)]
        for job in ids:
            self.assertEqual(self.ended(job)["status"], "dead")
        self.a.rule("")
        return ids


class Submit(Commands):
    def test_a_prompt_is_an_argument_or_standard_input(self):
        for arguments, stdin in ((["What is a\nwaybill?"], ""), ([], "What is a\nwaybill?\n")):
            done = self.ended(self.one_id("--model", "mock", *arguments, stdin=stdin))
            self.assertEqual(done["status"], "completed")
            self.assertEqual(json.loads(self.a.requests()[-1]["body"]),
                             {"model": "mock", "messages": [{"role": "user", "content": "What is a\nwaybill?"}]})

    def test_every_field_of_a_job(self):
        job = self.job(self.one_id("--model", "mock", "--queue", "default", "--priority", "7", "--run-after", "2h", "--expires-in", "1d",
                                   "--max-receives", "9", "--webhook", "http://127.0.0.1:9/x", "--metadata", "a=1", "--metadata", "b=x=y", "hi"))
        self.assertEqual((job["status"], job["queue"], job["priority"], job["max_receives"], job["webhook"], job["metadata"]),
                         ("scheduled", "default", 7, 9, "http://127.0.0.1:9/x", {"a": "1", "b": "x=y"}))
        self.assertAlmostEqual(job["run_after"] - job["created_at"], 7200, delta=60)
        self.assertAlmostEqual(job["expires_at"] - job["created_at"], 86400, delta=60)
        at = self.job(self.one_id("--model", "mock", "--run-after", "2026-12-31T00:00:00Z", "hi"))
        self.assertIn(at["run_after"] and round(at["run_after"]), (None, 1798675200))
        soon = round(time.time()) + 5000
        self.assertEqual(self.job(self.one_id("--model", "mock", "--run-after", str(soon), "hi"))["run_after"], soon)

    def test_a_request_is_what_a_call_would_have_as_its_body(self):
        body = json.dumps({**ASK, "seed": 7}, indent=2)
        self.write("request.json", "\n" + body)
        for arguments, stdin in ((["--request", "request.json"], ""), (["--request", "-"], body)):
            self.ended(self.one_id(*arguments, stdin=stdin))
            self.assertEqual(json.loads(self.a.requests()[-1]["body"]), {**ASK, "seed": 7})

    def test_two_thousand_five_hundred_lines(self):
        lines = [json.dumps({**ASK, "user": str(i)}) for i in range(2500)]
        lines[7] = json.dumps({"request": {**ASK, "user": "7"}, "priority": 9, "metadata": {"own": "1"}})
        self.write("requests.jsonl", "\n\n".join(lines))
        ids = self.ids("--request", "requests.jsonl", "--metadata", "run=1", "--priority", "2")
        self.assertEqual(len(set(ids)), 2500)
        self.assertEqual([self.job(ids[i])["metadata"] for i in (0, 7, 2499)], [{"run": "1"}, {"own": "1"}, {"run": "1"}])
        self.assertEqual([self.job(ids[i])["priority"] for i in (0, 7, 2499)], [2, 9, 2])
        done = self.json_lines("jobs", "wait", "--json", stdin="\n".join(ids))
        self.assertEqual([job["id"] for job in done], ids)
        self.assertEqual({job["status"] for job in done}, {"completed"})
        self.assertEqual(self.a.settled()["started"], 2500)
        self.assertEqual({json.loads(request["body"])["user"] for request in self.a.requests()} - {str(i) for i in range(2500)}, set())
        listed = self.json_lines("jobs", "list", "--all", "--json")
        self.assertEqual([job["id"] for job in listed], sorted(ids, reverse=True))

    def test_the_wrong_line_is_named_and_what_was_accepted_before_it_told(self):
        lines = [json.dumps(ASK)] * 1002
        self.write("requests.jsonl", "\n".join([*lines, json.dumps({**ASK, "model": "mok"})]))
        done = self.run_program("jobs", "submit", "--request", "requests.jsonl")
        self.assertEqual((done.returncode, len(done.stdout.splitlines())), (66, 1000))
        self.assertRegex(done.stderr, r"note: 1000 jobs were accepted before that\nwaybill: requests\.jsonl:1003: .*\"mok\".*request\.model")
        self.assertNotIn("jobs[", done.stderr)
        self.write("short.jsonl", json.dumps(ASK) + "\n" + '{"model": "mock", "messages": [7]}\n')
        self.refuse(65, "jobs", "submit", "--request", "short.jsonl", says="short.jsonl:2: ")
        self.write("short.jsonl", json.dumps(ASK) + "\nno JSON\n")
        self.refuse(65, "jobs", "submit", "--request", "short.jsonl", says="short.jsonl:2: this is no JSON object")
        self.write("short.jsonl", "\n")
        self.refuse(65, "jobs", "submit", "--request", "short.jsonl", says="has no request in it")
        self.refuse(66, "jobs", "submit", "--request", "nowhere.jsonl", says="nowhere.jsonl")

    def test_jobs_that_find_no_room_are_named(self):
        self.write("requests.jsonl", '{"request": {}}\n' * 5)
        done = self.run_program("jobs", "submit", "--request", "requests.jsonl", "--queue", "small")
        self.assertEqual((done.returncode, len(done.stdout.splitlines())), (1, 2), done.stderr)
        self.assertEqual(re.findall(r"requests\.jsonl:(\d): The queue \"small\" is full", done.stderr), ["3", "4", "5"])
        self.refuse(69, "jobs", "submit", "--request", "requests.jsonl", "--queue", "small", says="is full")

    def test_under_a_key_they_are_made_once(self):
        self.write("requests.jsonl", (json.dumps(ASK) + "\n") * 1500)
        first = self.ids("--request", "requests.jsonl", "--queue", "keyed", "--idempotency-key", "run-7")
        self.assertEqual(len(set(first)), 1500)
        self.assertEqual(self.ids("--request", "requests.jsonl", "--queue", "keyed", "--idempotency-key", "run-7"), first)
        self.refuse(65, "jobs", "submit", "--request", "requests.jsonl", "--queue", "keyed", "--metadata", "a=1", "--idempotency-key", "run-7",
                    says="another request before")

    def test_where_the_server_takes_fewer_at_a_time(self):
        self.server.stop()
        self.more = self.more.replace("max_jobs_per_call: 1000", "max_jobs_per_call: 7") + "server: {max_body_size: 2KiB}\n"
        self.start()
        for size in (10, 500):  # either bound is met
            self.write("requests.jsonl", (json.dumps({**ASK, "user": "x" * size}) + "\n") * 20)
            self.assertEqual(len(set(self.ids("--request", "requests.jsonl"))), 20)
        self.write("requests.jsonl", json.dumps({**ASK, "user": "x" * 3000}))
        self.refuse(65, "jobs", "submit", "--request", "requests.jsonl", says="requests.jsonl:1: The request body is larger")

    def test_a_call_without_an_answer_is_repeated_only_under_a_key(self):
        arguments = ["jobs", "submit", "--model", "mock", "hi", "--server"]
        with CuttingProxy(self.server.port, 20, times=2) as proxy:
            url = f"http://127.0.0.1:{proxy.port}"
            self.refuse(69, *arguments, url, says="whether its jobs were accepted is not known")
            self.assertEqual(len(self.json_lines("jobs", "list", "--json")), 1)
            job = self.succeed(*arguments, url, "--idempotency-key", "k").strip()
            self.assertEqual(self.job(job)["id"], job)
        self.assertEqual(len(self.json_lines("jobs", "list", "--json")), 2, "once")
        self.assertEqual(proxy.connections, 3)

    def test_it_waits_and_prints_the_answer(self):
        self.assertEqual(self.succeed("jobs", "submit", "--wait", "--model", "mock", "hi"), words() + "\n")
        self.assertEqual(self.succeed("jobs", "submit", "--wait", "--model", "mock", "--stream", "hi"), words() + "\n")
        done = self.json_lines("jobs", "submit", "--wait", "--json", "--model", "mock", "hi")
        self.assertEqual(done[0]["result"]["body"]["choices"][0]["message"]["content"], words())
        self.write("embed.json", '{"model": "mock-embed", "input": "hi"}')
        self.assertEqual(json.loads(self.succeed("jobs", "submit", "--wait", "--request", "embed.json"))["object"], "list")
        self.a.rule("status=422")
        failed = self.run_program("jobs", "submit", "--wait", "--model", "mock", "hi")
        self.assertEqual(failed.returncode, 1)
        self.assertRegex(failed.stderr, rf"\Awaybill: job {UUID} is failed: job_failed: ")

    def test_json_is_the_job_as_it_is(self):
        job = self.json_lines("jobs", "submit", "--json", "--model", "mock", "hi")[0]
        self.assertEqual((job["object"], job["endpoint"]), ("job", "/v1/chat/completions"))

    def test_what_is_wrong_with_the_command_line(self):
        for arguments, says in ((["hi"], "--model"), (["--request", "x", "hi"], "not both"), (["--request", "x", "--model", "mock"], "in the request"),
                                (["--model", "mock", "--priority", "10", "hi"], "--priority"), (["--model", "mock", "--metadata", "a", "hi"], "KEY=VALUE"),
                                (["--model", "mock", "--expires-in", "soon", "hi"], "12h"), (["--model", "mock", "--idempotency-key", "a\r\nb", "hi"], "printable"),
                                (["--modle", "mock", "hi"], 'did you mean "--model"?')):
            self.refuse(2, "jobs", "submit", *arguments, says=says)
        self.refuse(66, "jobs", "submit", "--model", "mok", "hi", says='did you mean "mock"')
        self.refuse(65, "jobs", "submit", "--model", "mock", "--run-after", "soon", "hi", says="run_after")


class Look(Commands):
    def test_a_job_in_full(self):
        job = self.submit(metadata={"customer": "7"})["id"]
        self.ended(job)
        text = self.succeed("jobs", "get", job)
        for line in (rf"id +{job}", r"status +completed", r"queue +default, priority 0", r"call +/v1/chat/completions", r"created +(\d.* ago|now)",
                     r"receives +1 of 3", r"metadata +customer=7"):
            self.assertRegex(text, rf"(?m)^({line})$")
        self.assertTrue(text.endswith(f"\n\n{words()}\n"), text)
        self.assertEqual(self.json_lines("jobs", "get", "--json", job), [self.job(job)])

    def test_what_went_wrong_is_told(self):
        job = self.dead(1)[0]
        self.assertRegex(self.succeed("jobs", "get", job), r"(?m)^status +dead$\n(.*\n)*attempt +1, .*: upstream_\w+: .*\nerror +upstream_\w+: ")

    def test_of_several_the_wrong_ones_are_told_and_the_others_shown(self):
        jobs = [self.submit()["id"], self.submit()["id"]]
        done = self.run_program("jobs", "get", jobs[0], NOBODY, jobs[1])
        self.assertEqual(done.returncode, 66)
        self.assertEqual(re.findall(r"(?m)^id +(.*)$", done.stdout), jobs)
        self.assertRegex(done.stderr, rf'\Awaybill: There is no job "{NOBODY}": [^\n]*\n\Z')
        for command in ("get", "wait", "cancel", "retry", "tail"):
            self.refuse(66, "jobs", command, NOBODY, says=NOBODY)
        self.refuse(66, "jobs", "get", "../queues?x=1", says="../queues?x=1")

    def test_an_answer_of_several_lines_is_one_line_of_json(self):
        job = self.submit({}, queue="gpu")["id"]
        lease = self.post("/v1/queues/gpu/lease", {"max": 1})["data"][0]
        self.server.post(f"/v1/leases/{lease['token']}/complete", '{"result": {\n  "seconds":\r\n 3.5, "text": "a\\nb"}}', headers={"Authorization": "Bearer ops-key"})
        self.assertEqual(self.json_lines("jobs", "get", "--json", job)[0]["result"]["body"], {"seconds": 3.5, "text": "a\nb"})
        self.assertEqual(json.loads(self.succeed("jobs", "wait", job)), {"seconds": 3.5, "text": "a\nb"})

    def test_lists(self):
        ids = [self.submit({}, queue="gpu", metadata={"n": str(i % 2), "odd key": "a&b"})["id"] for i in range(5)]
        later = self.submit(run_after=time.time() + 7200)["id"]
        done = self.run_program("jobs", "list", "--limit", "4")
        lines = done.stdout.splitlines()
        self.assertRegex(lines[0], r"^id +status +queue +receives +created +ended +error$")
        self.assertEqual([line.split()[0] for line in lines[1:]], [later, *ids[:1:-1]])
        self.assertRegex(lines[1], rf"^{later}  scheduled, in 2 h  default +0 of 3 +(now|\d.* ago)$")
        self.assertEqual({line.index("0 of 3") for line in lines[1:]}, {lines[1].index("0 of 3")}, "in columns")
        self.assertIn(f"--after {ids[2]}", done.stderr)
        rest = self.run_program("jobs", "list", "--after", ids[2])
        self.assertEqual(([line.split()[0] for line in rest.stdout.splitlines()[1:]], rest.stderr), ([ids[1], ids[0]], ""))
        odd = self.json_lines("jobs", "list", "--json", "--metadata", "n=1", "--metadata", "odd key=a&b", "--queue", "gpu", "--status", "queued")
        self.assertEqual([job["id"] for job in odd], [ids[3], ids[1]])
        self.assertEqual(odd[0]["metadata"], {"n": "1", "odd key": "a&b"})
        self.assertEqual(self.succeed("jobs", "list", "--status", "dead"), "")
        self.refuse(2, "jobs", "list", "--status", "done", says='"done" is not one of')
        self.assertEqual(len(self.json_lines("jobs", "list", "--all", "--json")), 6)

    def test_cancel_and_retry(self):
        ids = [self.submit({}, queue="gpu")["id"] for _ in range(2)]
        self.assertEqual(self.succeed("jobs", "cancel", *ids), "".join(f"{job} cancelled\n" for job in ids))
        self.assertEqual(self.succeed("jobs", "retry", stdin=f"{ids[0]}\n\n"), f"{ids[0]} queued\n")
        self.assertEqual((self.job(ids[0])["status"], self.job(ids[1])["status"]), ("queued", "cancelled"))
        done = self.run_program("jobs", "retry", *ids)
        self.assertEqual((done.returncode, done.stdout), (65, f"{ids[1]} queued\n"))
        self.assertIn("The job is queued", done.stderr)
        self.assertEqual(self.json_lines("jobs", "cancel", "--json", ids[0])[0]["status"], "cancelled")


class Wait(Commands):
    def test_0_only_when_all_are_completed(self):
        good = [self.submit()["id"], self.submit()["id"]]
        self.assertEqual(self.succeed("jobs", "wait", good[0]), words() + "\n")
        self.assertEqual(self.succeed("jobs", "wait", *good), "".join(f"==> {job} completed\n{words()}\n" for job in good))
        bad = self.dead(1)[0]
        done = self.run_program("jobs", "wait", good[0], bad, good[1])
        self.assertEqual(done.returncode, 1)
        self.assertEqual(re.findall(r"==> (\S+) (\w+)", done.stdout), [(good[0], "completed"), (bad, "dead"), (good[1], "completed")])
        self.assertRegex(done.stderr, rf"\Awaybill: job {bad} is dead: upstream_\w+: ")
        missing = self.run_program("jobs", "wait", NOBODY, good[0])
        self.assertEqual((missing.returncode, missing.stdout), (66, f"==> {good[0]} completed\n{words()}\n"))

    def test_no_longer_than_it_may(self):
        job = self.submit({}, queue="gpu")["id"]
        self.check_timeout(job)
        self.a.rule("delay=1000")
        self.assertEqual(self.succeed("jobs", "wait", "--timeout", "100s", self.submit()["id"]), words() + "\n")

    def check_timeout(self, job):
        for timeout in ("0", "300ms"):
            done = self.run_program("jobs", "wait", "--timeout", timeout, job)
            self.assertEqual((done.returncode, done.stdout, done.stderr), (1, "", f"waybill: job {job} is queued still\n"))

    def test_a_server_that_is_started_anew_is_waited_for(self):
        port = free_port()
        self.server.stop()
        self.start(arguments=("--listen", f"127.0.0.1:{port}"))
        job = self.submit({}, queue="gpu")["id"]
        found = []
        waiting = threading.Thread(target=lambda: found.append(self.run_program("jobs", "wait", job)))
        waiting.start()
        while self.server.get("/v1/ledger", headers={"Authorization": "Bearer ops-key"}).json["in_flight"] == 0:
            pass
        self.assertEqual(self.server.stop(), 0)
        self.start(arguments=("--listen", f"127.0.0.1:{port}"))
        lease = self.post("/v1/queues/gpu/lease", {"max": 1})["data"][0]
        self.post(f"/v1/leases/{lease['token']}/complete", {"result": "there"})
        waiting.join()
        self.assertEqual((found[0].returncode, found[0].stdout), (0, "there\n"), found[0].stderr)


class Tail(Commands):
    def test_what_the_model_says_as_it_says_it(self):
        self.a.rule("itl=200")
        job = self.submit(STREAM)["id"]
        process = subprocess.Popen([str(blackbox.PROGRAM), "jobs", "tail", job], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                   env=dict(os.environ, WAYBILL_URL=f"http://127.0.0.1:{self.server.port}", WAYBILL_API_KEY="app-key"))
        begin = process.stdout.read(3)
        self.assertEqual(begin, b"w0 ")
        self.assertEqual(self.job(job)["status"], "running", "while it runs")
        rest, errors = process.communicate(timeout=60)
        self.assertEqual((process.returncode, (begin + rest).decode()), (0, words() + "\n"))
        self.assertIn("the job is running", errors.decode())
        self.a.rule("")
        self.assertEqual(self.succeed("jobs", "tail", job), words() + "\n", "from the beginning")
        events = self.json_lines("jobs", "tail", "--json", job)
        self.assertEqual((events[-1]["event"], events[-1]["id"], events[-1]["data"]["status"]), ("status", "end", "completed"))
        self.assertEqual([event["data"] for event in events if event["event"] == "chunk"][-1], "[DONE]")

    def test_a_job_that_does_not_stream_or_fails(self):
        self.assertEqual(self.succeed("jobs", "tail", self.submit()["id"]), words() + "\n")
        dead = self.dead(1)[0]
        done = self.run_program("jobs", "tail", dead)
        self.assertEqual((done.returncode, done.stdout), (1, ""))
        self.assertRegex(done.stderr, rf"waybill: job {dead} is dead: upstream_")

    def test_an_attempt_that_breaks_off_is_told(self):
        self.a.rule("close=4;times=1;id=1")
        job = self.submit(STREAM)["id"]
        self.ended(job)
        done = self.run_program("jobs", "tail", job)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("the attempt broke off", done.stderr)
        self.assertTrue(done.stdout.endswith("\n" + words() + "\n"), done.stdout)

    def test_a_connection_that_breaks_goes_on_where_it_was(self):
        self.a.rule("itl=30")
        job = self.submit(STREAM)["id"]
        with CuttingProxy(self.server.port, 2500) as proxy:
            out = self.succeed("jobs", "tail", job, "--server", f"http://127.0.0.1:{proxy.port}")
        self.assertEqual(out, words() + "\n", "nothing twice, nothing missing")
        self.assertGreater(proxy.connections, 1)


class CuttingProxy:
    """Passes connections on and cuts each, or the first `times` of them, after so many bytes of answers."""

    def __init__(self, port, size, times=1000):
        self.target, self.size, self.times, self.connections = port, size, times, 0
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        self.thread = threading.Thread(target=self.run)

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.listener.shutdown(socket.SHUT_RDWR)
        self.listener.close()
        self.thread.join()

    def run(self):
        while True:
            try:
                client, _ = self.listener.accept()
            except OSError:
                return
            self.connections += 1
            with client, socket.create_connection(("127.0.0.1", self.target)) as server:
                head = b""
                while b"\r\n\r\n" not in head:
                    head += client.recv(65536)
                server.sendall(head.replace(b"\r\n\r\n", b"\r\nConnection: close\r\n\r\n", 1))
                left = self.size if self.connections <= self.times else 1 << 30
                while left > 0 and (block := server.recv(min(left, 65536))):
                    left -= len(block)
                    client.sendall(block)


class DeadLetters(Commands):
    def test_listed_with_what_they_died_of(self):
        ids = self.dead(3)
        lines = self.succeed("dead-letters", "list").splitlines()
        self.assertRegex(lines[0], r"^id +queue +died +receives +last error$")
        self.assertEqual([line.split()[0] for line in lines[1:]], ids[::-1])
        self.assertRegex(lines[1], rf"^{ids[2]}  default  +(now|\d.* ago) +1  upstream_\w+: \S")
        self.assertEqual(self.json_lines("dead-letters", "list", "--json", "--limit", "1")[0]["attempts"][0]["status"], 502)
        self.assertEqual(self.succeed("dead-letters", "list", "--queue", "gpu"), "")

    def test_redriven_first_dry_and_then_really(self):
        ids = self.dead(4)
        code = self.job(ids[0])["error"]["code"]
        self.refuse(77, "dead-letters", "redrive", says="admin")
        ops = {"WAYBILL_API_KEY": "ops-key"}
        dry = self.run_program("dead-letters", "redrive", "--dry-run", "--error-code", code, env=ops)
        self.assertEqual((dry.returncode, sorted(dry.stdout.split())), (0, sorted(ids)))
        self.assertIn("4 jobs would be redriven", dry.stderr)
        self.assertEqual({self.job(job)["status"] for job in ids}, {"dead"}, "nothing was done")
        self.assertEqual(self.succeed("dead-letters", "redrive", "--error-code", "other", env=ops), "")
        self.assertEqual(self.succeed("dead-letters", "redrive", "--queue", "gpu", env=ops), "")
        one = self.run_program("dead-letters", "redrive", "--max", "1", "--queue", "default", env=ops)
        self.assertEqual(len(one.stdout.split()), 1)
        self.assertIn("there may be more", one.stderr)
        named = next(job for job in ids if job not in one.stdout)
        self.assertEqual(self.succeed("dead-letters", "redrive", named, env=ops), named + "\n")
        rest = self.json_lines("dead-letters", "redrive", "--rate", "100", "--json", env=ops)[0]
        self.assertEqual((rest["object"], rest["dry_run"], rest["count"]), ("redrive", False, 2))
        self.assertEqual({self.ended(job)["status"] for job in ids}, {"completed"})

    def typed(self, *arguments, says=""):
        return self.on_a_terminal(*arguments, says=says, env={"TERM": "dumb", "WAYBILL_URL": f"http://127.0.0.1:{self.server.port}", "WAYBILL_API_KEY": "ops-key"})

    def test_on_a_terminal_it_asks_first(self):
        ids = self.dead(2)
        out, code = self.typed("dead-letters", "redrive", says="n\n")
        self.assertIn("redrive 2 jobs? [y/N]", out)
        self.assertEqual((code, {self.job(job)["status"] for job in ids}), (1, {"dead"}))
        out, code = self.typed("dead-letters", "redrive", "--max", "1", says="y\n")
        self.assertIn("redrive 1 jobs? [y/N]", out)
        self.assertEqual(code, 0)
        out, code = self.typed("dead-letters", "redrive", "--yes")
        self.assertNotIn("[y/N]", out)
        self.assertEqual((code, {self.ended(job)["status"] for job in ids}), (0, {"completed"}))


class Queues(Commands):
    def test_a_table_of_them(self):
        self.ended(self.submit()["id"])
        self.submit({}, queue="gpu")
        for arguments in (["queues"], ["queues", "list"]):
            lines = self.succeed(*arguments).splitlines()
            titles = lines[0].split()
            self.assertEqual(titles, "queue workers queued scheduled running held completed failed cancelled expired dead oldest".split())
            rows = {line.split()[0]: line.split() for line in lines[1:]}
            self.assertEqual(set(rows), {"default", "gpu", "small", "keyed"})
            self.assertEqual(rows["default"][:11], ["default", "8", "0", "0", "0", "0", "1", "0", "0", "0", "0"])
            self.assertEqual(rows["gpu"][:3], ["gpu", "external", "1"])
            self.assertRegex(" ".join(rows["gpu"][11:]), r"^\d+ (ms|s)$")
        listed = {queue["name"]: queue for queue in self.json_lines("queues", "--json")}
        self.assertEqual((listed["default"]["object"], listed["gpu"]["depth"]["queued"]), ("queue", 1))

    def test_paused_and_resumed(self):
        ops = {"WAYBILL_API_KEY": "ops-key"}
        self.assertRegex(self.succeed("queues", "pause", "default", env=ops), r"\ndefault .* paused\n\Z")
        job = self.submit()["id"]
        self.assertTrue(self.json_lines("queues", "pause", "default", "--json", env=ops)[0]["paused"])
        self.assertEqual(self.job(job, wait=0.3)["status"], "queued")
        self.assertNotIn("paused", self.succeed("queues", "resume", "default", env=ops))
        self.assertEqual(self.ended(job)["status"], "completed")
        self.refuse(77, "queues", "pause", "default", says="admin")
        self.refuse(66, "queues", "pause", "defalt", env=ops, says='did you mean "default"')
        self.refuse(2, "queues", "puase", "default", says='did you mean "pause"')


class Silent(http.server.SimpleHTTPRequestHandler):
    """A server of something else."""

    def log_message(self, *_):
        pass


class Server(Commands):
    def test_the_key_is_that_of_the_environment_or_a_file(self):
        self.write("key", "app-key\n")
        self.succeed("jobs", "list", "--key-file", "key", env={"WAYBILL_API_KEY": "wrong"})
        self.refuse(77, "jobs", "list", env={"WAYBILL_API_KEY": ""}, says="set WAYBILL_API_KEY")
        self.refuse(77, "jobs", "list", env={"WAYBILL_API_KEY": "wrong"}, says="does not know the key in WAYBILL_API_KEY")
        self.write("key", "wrong\n")
        self.refuse(77, "queues", "--key-file", "key", says="does not know the key in key")
        self.refuse(66, "dead-letters", "list", "--key-file", "nowhere", says="nowhere")

    def test_one_that_is_not_there(self):
        for arguments in (["jobs", "list"], ["jobs", "wait", NOBODY], ["jobs", "tail", NOBODY], ["jobs", "submit", "--model", "mock", "hi"],
                          ["dead-letters", "list"], ["queues"]):
            self.refuse(69, *arguments, env={"WAYBILL_URL": f"http://127.0.0.1:{free_port()}"}, says="`waybill serve` starts one")
        self.refuse(65, "queues", "--server", "127.0.0.1:8000", says="write http://127.0.0.1:8000")
        self.refuse(65, "queues", env={"WAYBILL_URL": "ftp://x"}, says="WAYBILL_URL")

    def test_over_tls(self):
        self.assertTrue(shutil.which("openssl"), "the openssl program makes the certificates of this test; install it")
        subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-keyout", "server.key",
                        "-out", "server.pem", "-days", "2", "-subj", "/CN=localhost", "-addext", "subjectAltName=IP:127.0.0.1"],
                       cwd=self.folder, check=True, capture_output=True)
        self.server.stop()
        self.more += "server:\n  tls: {certificate: server.pem, private_key: server.key}\n"
        self.start()
        url = f"https://127.0.0.1:{self.server.port}"
        self.write("requests.jsonl", (json.dumps(ASK) + "\n") * 1500)
        ids = self.ids("--request", "requests.jsonl", "--server", url, "--ca", "server.pem")
        answers = self.succeed("jobs", "wait", ids[0], ids[-1], "--server", url, "--ca", "server.pem")
        self.assertEqual(answers.count(words()), 2)
        self.refuse(69, "jobs", "list", "--server", url, says="--ca")
        self.refuse(65, "jobs", "list", "--server", url, "--ca", "requests.jsonl", says="requests.jsonl")

    def test_a_key_that_goes_unencrypted_to_another_machine_is_told(self):
        url = f"http://0.0.0.0:{self.server.port}"  # not this machine's for all that is known of it
        self.assertIn("the key goes to", self.run_program("queues", "--server", url).stderr)
        self.assertNotIn("the key goes to", self.run_program("queues").stderr)

    def test_a_base_url_as_clients_of_openai_have_it(self):
        self.succeed("queues", "--server", f"http://127.0.0.1:{self.server.port}/v1/")

    def test_one_that_keeps_no_jobs_or_is_something_else(self):
        with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Silent) as other:
            threading.Thread(target=other.serve_forever).start()
            self.refuse(66, "jobs", "list", env={"WAYBILL_URL": f"http://127.0.0.1:{other.server_port}"}, says="is it a Waybill server?")
            other.shutdown()
        self.server.stop()
        self.more = ""
        self.start()
        self.refuse(66, "jobs", "list", says="store.path")

    def test_colours_only_where_they_are_asked_for(self):
        job = self.submit()["id"]
        self.ended(job)
        for arguments in (["jobs", "get", job], ["jobs", "list"], ["queues"]):
            self.assertNotIn("\x1b", self.succeed(*arguments))
            self.assertIn("\x1b[", self.succeed("--color", "always", *arguments))


class Documented(Commands):
    def test_what_the_documents_show_runs(self):
        """docs/jobs.md, "From the command line", with this server's names."""
        text = (blackbox.SOURCE / "docs/jobs.md").read_text().split("\n## From the command line\n")[1].split("\n## ")[0]
        self.write("requests.jsonl", (json.dumps({**ASK, "model": "small"}) + "\n") * 3)
        self.write("question.txt", "hello\n")
        script = "".join(body for language, body in fenced_blocks(text) if language == "sh")
        self.assertGreater(script.count("waybill "), 10)
        for name, here in (("small", "mock"), ("nightly", "default")):
            script = script.replace(name, here)
            (self.folder / "requests.jsonl").write_text((self.folder / "requests.jsonl").read_text().replace(name, here))
        (self.folder / "waybill").symlink_to(blackbox.PROGRAM)
        environment = dict(os.environ, WAYBILL_API_KEY="ops-key", SERVER=f"http://127.0.0.1:{self.server.port}",
                           PATH=f"{self.folder}:{os.environ['PATH']}")
        script = script.replace("https://llm.example.com", "$SERVER").replace("$(cat llm.key)", "ops-key")
        done = subprocess.run(["bash", "-euo", "pipefail", "-c", script], cwd=self.folder, env=environment, capture_output=True, text=True,
                              stdin=subprocess.DEVNULL, timeout=120)
        self.assertEqual(done.returncode, 0, done.stderr + script)


if __name__ == "__main__":
    blackbox.main()
