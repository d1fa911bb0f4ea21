#!/usr/bin/env python3
"""`waybill serve` under load: reloads, drain, clients that leave, overload, deadlines, many connections. Nothing that was
sent may be lost, and the ledger has an outcome for each."""
import collections
import json
import os
import re
import resource
import signal
import socket
import statistics
import sys
import threading
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
import blackbox
from raw_client import RawClient, request
from served import Server

ENCODER_ONLY = "\ntiers:\n  static: {enabled: false}\n"
KEPT_OPEN, ONE_EACH = "kept open", "one for each request"


def route(prompt, *headers, **more):
    return request("POST", "/v1/route", json.dumps({"prompt": prompt, **more}).encode(), *headers)


def metric(text, name, **labels):
    """The sum of the samples that have these labels."""
    total = 0.0
    for match in re.finditer(rf"^{name}(?:\{{(.*)\}})? (\S+)$", text, re.M):
        if all(f'{key}="{value}"' in (match[1] or "") for key, value in labels.items()):
            total += float(match[2])
    return total


class Load:
    """Threads that ask until they are stopped or the server takes no more connections. A request counts from the moment
    that all of it has been sent; what then gets no whole answer is lost."""

    def __init__(self, port, threads, connections=KEPT_OPEN, kinds=("route", "batch", "embeddings", "hit")):
        self.port = port
        self.connections = connections
        self.kinds = kinds
        self.statuses = collections.Counter()
        self.retry_after_missing = 0
        self.lost = []
        self.sent = 0
        self.lock = threading.Lock()
        self.stopping = threading.Event()
        self.threads = [threading.Thread(target=self.run, args=(i,), daemon=True) for i in range(threads)]
        for thread in self.threads:
            thread.start()

    def body(self, thread, turn):
        kind = self.kinds[turn % len(self.kinds)]
        if kind == "route":
            return route(f"prompt {turn} of thread {thread}: why does it crash?")
        if kind == "many":  # keeps the queue as long as admission allows
            texts = [f"{thread} {turn} {i} why?" for i in range(400)]
            return request("POST", "/v1/route", json.dumps({"inputs": texts}).encode())
        if kind == "hit":
            return route("why does my program segfault?")
        if kind == "batch":
            return request("POST", "/v1/route", json.dumps({"inputs": [f"{thread} {turn} {i}" for i in range(5)]}).encode())
        return request("POST", "/v1/embeddings", json.dumps({"input": [f"text {turn}", "another"], "dimensions": 16}).encode())

    def run(self, thread):
        client = None
        for turn in range(1_000_000):
            if self.stopping.is_set():
                break
            if client is None:
                try:
                    client = RawClient(self.port)
                except OSError:
                    break  # it takes no more: nothing was sent
            data = self.body(thread, turn)
            try:
                client.send(data)
            except OSError:
                # Not all of it was taken: a connection that waited was ended just then.
                client = None
                continue
            try:
                answer = client.answer()
            except (OSError, ValueError) as error:
                with self.lock:
                    self.sent += 1
                    self.lost.append(f"thread {thread}, request {turn}: {error!r}")
                break
            with self.lock:
                self.sent += 1
                self.statuses[answer.status] += 1
                if answer.status == 503 and "retry-after" not in answer.headers:
                    self.retry_after_missing += 1
            if self.connections == ONE_EACH or answer.headers.get("connection") == "close":
                client.socket.close()
                client = None
        if client is not None:
            client.socket.close()

    def wait_for(self, count):
        deadline = time.monotonic() + 120
        while self.sent < count and time.monotonic() < deadline:
            time.sleep(0.01)

    def stop(self):
        self.stopping.set()
        self.join()

    def join(self):
        for thread in self.threads:
            thread.join(timeout=120)


class Serving(blackbox.Case):
    def serve(self, more="", **options):
        return Server(self, self.write_config(blackbox.CONFIG + more), **options)

    def metrics(self, server):
        return server.get("/metrics").body.decode()

    def occupy(self, server):
        """A client whose one batch keeps the encoder busy; returned when it has begun."""
        return server.hold_encoder("/v1/route", 2000)

    def wait_until(self, server, condition):
        deadline = time.monotonic() + 120
        while not condition(ledger := server.ledger()):
            self.assertLess(time.monotonic(), deadline, ledger)
            time.sleep(0.005)


class Reloads(Serving):
    def test_no_request_fails_while_configurations_come_and_go(self):
        server = self.serve()
        path = self.folder / "waybill.yaml"
        good = path.read_text()
        load = Load(server.port, threads=6)
        load.wait_for(20)
        done, failed = 0, 0
        for turn in range(3):
            path.write_text(good.replace("model: claude", f"model: claude-{turn}a"))
            server.process.send_signal(signal.SIGHUP)
            done += 1
            server.wait_for_event("the configuration was reloaded", done)
            path.write_text(good.replace("model: claude", f"model: claude-{turn}b"))  # seen without a signal
            done += 1
            server.wait_for_event("the configuration was reloaded", done)
            self.assertIn(f"claude-{turn}b", server.get("/v1/models").body.decode())
            path.write_text(good + "\nnonsense: 1\n" if turn else "routes: [")
            server.process.send_signal(signal.SIGHUP)
            failed += 1
            server.wait_for_event("the configuration was not reloaded; the one before stays in force", failed)
            self.assertEqual(server.post("/v1/admin/reload", b"").status, 400)
            failed += 1
            self.assertIn(f"claude-{turn}b", server.get("/v1/models").body.decode())
        path.write_text(good)
        self.assertEqual(server.post("/v1/admin/reload", b"").status, 200)
        done += 1
        load.stop()
        self.assertEqual(load.lost, [])
        self.assertEqual(set(load.statuses), {200})
        ledger = server.settled_ledger()
        self.assertEqual(ledger["completed"], load.sent + 6)  # and those for /v1/models
        text = self.metrics(server)
        self.assertEqual(metric(text, "waybill_config_reloads_total", result="ok"), done)
        self.assertEqual(metric(text, "waybill_config_reloads_total", result="error"), failed)
        self.assertEqual(metric(text, "waybill_ledger_imbalance"), 0)

    def test_a_file_that_is_being_written_is_not_taken_for_a_bad_one(self):
        server = self.serve()
        path = self.folder / "waybill.yaml"
        changed = path.read_text().replace("model: claude", "model: claude-2").encode()
        with open(path, "wb") as file:  # a slow writer
            for begin in range(0, len(changed), 40):
                file.write(changed[begin:begin + 40])
                file.flush()
                time.sleep(0.15)
        server.wait_for_event("the configuration was reloaded")
        self.assertIn("claude-2", server.get("/v1/models").body.decode())
        # Neither refused nor, where half of it happens to be good, taken up before its end.
        self.assertEqual(len([event for event in server.events() if "reloaded" in event["message"]]), 1)


class Drain(Serving):
    def assert_nothing_lost(self, server, load):
        self.assertEqual(server.process.wait(timeout=120), 0)
        load.join()
        self.assertEqual(load.lost, [])
        self.assertLessEqual(set(load.statuses), {200, 503})
        self.assertEqual(load.retry_after_missing, 0)
        stopped = server.wait_for_event("stopped")
        self.assertEqual((stopped["imbalance"], stopped["accepted"]), (0, load.sent), load.statuses)

    def test_every_request_that_was_sent_is_answered(self):
        for connections in (KEPT_OPEN, ONE_EACH):
            with self.subTest(connections):
                server = self.serve()
                load = Load(server.port, threads=8, connections=connections)
                load.wait_for(100)
                server.process.send_signal(signal.SIGTERM)
                self.assert_nothing_lost(server, load)

    def test_what_does_not_end_in_time_is_told_so(self):
        self.leave_some_unanswered(drain_timeout="50ms", signals=1)

    def test_told_twice_it_does_not_wait(self):
        self.leave_some_unanswered(drain_timeout="1h", signals=2)

    def leave_some_unanswered(self, drain_timeout, signals):
        server = self.serve(f"\nserver:\n  drain_timeout: {drain_timeout}\nadmission:\n  max_wait: 1h\n  max_queue_tokens: 100000000\n" + ENCODER_ONLY)
        held = [self.occupy(server) for _ in range(3)]
        asked = [RawClient(server.port) for _ in range(20)]
        for i, client in enumerate(asked):
            client.send(route(f"prompt {i}"))
        self.wait_until(server, lambda ledger: ledger["in_flight"] == len(held) + len(asked))
        for _ in range(signals):
            server.process.send_signal(signal.SIGTERM)
            server.wait_for_event("stopping")
        statuses = collections.Counter()
        for client in held + asked:
            answer = client.answer()
            statuses[answer.status] += 1
            if answer.status == 503:
                self.assertGreaterEqual(int(answer.headers["retry-after"]), 1)
                self.assertEqual(json.loads(answer.body)["error"]["code"], "shutting_down")
            client.socket.close()
        self.assertLessEqual(set(statuses), {200, 503})
        self.assertGreater(statuses[503], 0)
        self.assertEqual(server.process.wait(timeout=120), 0)
        self.assertEqual(server.wait_for_event("stopped")["imbalance"], 0)

    def test_ready_says_no_and_connections_are_not_kept(self):
        server = self.serve("\nadmission:\n  max_wait: 1h\n  max_queue_tokens: 100000000\n")
        probe = RawClient(server.port)
        probe.send(request("GET", "/ready"))
        self.assertEqual(probe.answer().status, 200)
        reloads = RawClient(server.port)
        reloads.send(request("GET", "/ready"))
        self.assertEqual(reloads.answer().status, 200)
        held = self.occupy(server)
        server.process.send_signal(signal.SIGTERM)
        server.wait_for_event("stopping")
        probe.send(request("GET", "/ready"))
        reloads.send(request("POST", "/v1/admin/reload", b""))
        answer = probe.answer()
        # The log line comes just before the state.
        self.assertIn(answer.status, (200, 503))
        if answer.status == 503:
            self.assertEqual(answer.headers["connection"], "close")
            self.assertIn("retry-after", answer.headers)
        self.assertIn(reloads.answer().status, (200, 503))
        self.assertEqual(held.answer().status, 200)
        self.assertEqual(server.process.wait(timeout=120), 0)
        self.assertEqual(server.wait_for_event("stopped")["imbalance"], 0)


class Overload(Serving):
    def test_who_hangs_up_while_queued_is_not_computed(self):
        server = self.serve("\nadmission:\n  max_wait: 1h\n  max_queue_tokens: 100000000\n" + ENCODER_ONLY)
        held = [self.occupy(server) for _ in range(2)]
        before = server.ledger()
        misses = metric(self.metrics(server), "waybill_requests_total", endpoint="/v1/route", tier="encoder")
        # Long prompts: single calls have their turn beside batches, and these are not to be done before they are left.
        left = [RawClient(server.port) for _ in range(100)]
        for i, client in enumerate(left):
            client.send(route(f"nobody waits for {i} " + "of the many words " * 60))
        self.wait_until(server, lambda ledger: ledger["accepted"] - before["accepted"] == len(left))
        queued = metric(self.metrics(server), "waybill_queue_tokens")
        self.assertGreater(queued, 0)
        for client in left:
            client.socket.close()
        for client in held:
            self.assertEqual(client.answer().status, 200)
            client.socket.close()
        ledger = server.settled_ledger()
        cancelled = ledger["cancelled"] - before["cancelled"]
        # Most left while the queue was long; few may have had their turn before.
        self.assertGreater(cancelled, len(left) // 2)
        text = self.metrics(server)
        self.assertEqual(metric(text, "waybill_requests_total", endpoint="/v1/route", tier="encoder") - misses, len(left) - cancelled)
        listed = server.get("/v1/requests?outcome=cancelled&limit=1000").json["data"]
        self.assertEqual(len(listed), cancelled)
        for waybill in listed:
            self.assertNotIn("encode", {stage["stage"] for stage in waybill["stages"]}, waybill)

    def ask_while_overloaded(self, server, body_of):
        """The answers, and the median seconds of theirs and of /health, which is asked in between."""
        load = Load(server.port, threads=4, kinds=("many",))
        load.wait_for(8)
        answers, times, probes = [], [], []
        with RawClient(server.port) as client:
            for i in range(100):
                for data, into, record in ((request("GET", "/health"), probes, False), (body_of(i), times, True)):
                    begin = time.perf_counter()
                    client.send(data)
                    answer = client.answer()
                    into.append(time.perf_counter() - begin)
                    if record:
                        answers.append(answer)
        load.stop()
        self.assertEqual((load.lost, set(load.statuses)), ([], {200}))
        return answers, statistics.median(times), statistics.median(probes), load.sent

    def wait_for_static_tier(self, server):
        """It is made in the background; until then nothing can be degraded, and the load is refused."""
        deadline = time.monotonic() + 120
        load = Load(server.port, threads=4, kinds=("many",))
        while metric(self.metrics(server), "waybill_degraded_decisions_total") == 0:
            answer = server.post("/v1/route", {"prompt": f"is it there at {time.monotonic()}? " + "word " * 60})
            self.assertIn(answer.status, (200, 503))
            self.assertLess(time.monotonic(), deadline, answer.body)
        load.stop()

    def test_overload_degrades_or_refuses_at_once_and_loses_nothing(self):
        server = self.serve("\nadmission:\n  max_wait: 2ms\n")
        self.wait_for_static_tier(server)
        before = server.settled_ledger()
        answers, refused_in, probed_in, _ = self.ask_while_overloaded(server, lambda i: route(f"new prompt {i} " + "word " * 60, allow_degraded=False))
        refused = [answer for answer in answers if answer.status == 503]
        self.assertEqual({answer.status for answer in answers} - {200, 503}, set())
        self.assertGreater(len(refused), len(answers) // 4)
        for answer in refused:
            self.assertGreaterEqual(int(answer.headers["retry-after"]), 1)
            self.assertGreaterEqual(int(answer.headers["retry-after-ms"]), 1)
            self.assertEqual(json.loads(answer.body)["error"]["code"], "overloaded")
        # At once: of the order of what HTTP alone costs, not of a batch.
        self.assertLess(refused_in, 20 * probed_in)
        answers, degraded_in, probed_in, _ = self.ask_while_overloaded(server, lambda i: route(f"another prompt {i} " + "word " * 60))
        self.assertEqual({answer.status for answer in answers}, {200})
        degraded = sum(json.loads(answer.body)["degraded"] for answer in answers)
        self.assertGreater(degraded, len(answers) // 4)
        self.assertLess(degraded_in, 20 * probed_in)
        after = server.settled_ledger()
        self.assertEqual(after["rejected"] - before["rejected"], len(refused))
        self.assertGreaterEqual(metric(self.metrics(server), "waybill_degraded_decisions_total"), degraded)
        self.assert_a_batch_counts_its_degraded_decisions(server)

    def assert_a_batch_counts_its_degraded_decisions(self, server):
        deadline = time.monotonic() + 120
        load = Load(server.port, threads=4, kinds=("many",))
        degraded = turn = 0
        while degraded == 0:
            turn += 1
            before = metric(self.metrics(server), "waybill_degraded_decisions_total")
            body = {"inputs": [f"batched {turn} {i} " + "word " * 100 for i in range(200)]}
            answer = server.post("/v1/route", body, headers={"x-request-id": f"batch-{turn}"})
            degraded = sum(each["degraded"] for each in answer.json["data"])
            self.assertLess(time.monotonic(), deadline)
        load.stop()
        self.assertEqual(server.get(f"/v1/requests/batch-{turn}").json["degraded"], degraded)
        self.assertGreaterEqual(metric(self.metrics(server), "waybill_degraded_decisions_total") - before, degraded)

    def test_a_deadline_that_passes_in_the_queue_is_told_and_counted(self):
        server = self.serve("\nadmission:\n  max_wait: 1h\n  max_queue_tokens: 100000000\n" + ENCODER_ONLY)
        before = server.ledger()
        # Seconds of work for the encoder, so that most of it still waits when the last of it has been accepted.
        waiting = [RawClient(server.port) for _ in range(400)]
        for i, client in enumerate(waiting):
            client.send(route(f"late {i} " + "and another word " * 80, "x-waybill-timeout-ms: 6000", f"x-request-id: late-{i}"))
        self.wait_until(server, lambda ledger: ledger["accepted"] - before["accepted"] == len(waiting))
        # The machine, as it were, is busy with something else until all deadlines have passed.
        server.process.send_signal(signal.SIGSTOP)
        time.sleep(6.5)
        server.process.send_signal(signal.SIGCONT)
        statuses = collections.Counter()
        for client in waiting:
            answer = client.answer()
            statuses[answer.status] += 1
            if answer.status == 504:
                error = json.loads(answer.body)["error"]
                self.assertEqual(error["type"], "timeout_error")
                self.assertIn("(stage: queue)", error["message"])
        # A slow machine refuses what it foresees to be late.
        self.assertLessEqual(set(statuses), {200, 503, 504})
        self.assertGreater(statuses[504], 0, statuses)
        ledger = server.settled_ledger()
        self.assertEqual(ledger["expired"] - before["expired"], statuses[504])
        self.assertEqual(metric(self.metrics(server), "waybill_timeouts_total", stage="queue"), statuses[504])
        expired = server.get("/v1/requests?outcome=expired").json["data"]
        self.assertEqual({waybill["error"]["stage"] for waybill in expired}, {"queue"})


class ManyConnections(Serving):
    COUNT = 10_000

    def raise_own_limit(self, wanted):
        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        if soft < wanted:
            if hard != resource.RLIM_INFINITY and hard < wanted:
                self.skipTest(f"the clients need {wanted} open files, and this machine allows {hard} (ulimit -Hn)")
            resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
            self.addCleanup(resource.setrlimit, resource.RLIMIT_NOFILE, (soft, hard))

    @staticmethod
    def own_memory(server):
        """Resident bytes that are no mapped file."""
        return 1024 * int(re.search(r"RssAnon:\s*(\d+)", Path(f"/proc/{server.process.pid}/status").read_text())[1])

    def test_ten_thousand_idle_connections_are_held(self):
        self.raise_own_limit(self.COUNT + 200)

        def as_in_a_shell():
            resource.setrlimit(resource.RLIMIT_NOFILE, (1024, resource.getrlimit(resource.RLIMIT_NOFILE)[1]))

        server = self.serve(f"\nserver:\n  max_connections: {self.COUNT + 50}\n  idle_timeout: 1h\n", preexec_fn=as_in_a_shell)
        server.post("/route", {"prompt": "a"})
        server.settled_ledger()
        descriptors = Path(f"/proc/{server.process.pid}/fd")
        before = len(list(descriptors.iterdir()))
        memory_before = self.own_memory(server)
        held = []
        for i in range(self.COUNT):
            client = socket.create_connection(("127.0.0.1", server.port), timeout=60)
            held.append(client)
            if i % 10 == 0:  # some have been used
                client.sendall(request("GET", "/health"))
                self.assertTrue(client.recv(4096).startswith(b"HTTP/1.1 200 OK"))
        self.assertGreaterEqual(metric(self.metrics(server), "waybill_connections"), self.COUNT)
        self.assertLess((self.own_memory(server) - memory_before) / self.COUNT, 4096, "bytes for each idle connection")
        for i in range(20):
            self.assertEqual(server.post("/route", {"prompt": f"prompt {i}"}).status, 200)
        for client in held[:: self.COUNT // 20]:  # and each of them can still ask
            client.sendall(route("still here?"))
            self.assertTrue(client.recv(4096).startswith(b"HTTP/1.1 200 OK"))
        memory_idle = self.own_memory(server)
        slow = held[1::10]
        for client in slow:
            client.sendall(route("a body that stops in its midst")[:-10])
        time.sleep(1)
        self.assertLess((self.own_memory(server) - memory_idle) / len(slow), 8192, "bytes more for each body that is waited for")
        for client in held:
            client.close()
        deadline = time.monotonic() + 120
        while len(list(descriptors.iterdir())) > before:
            self.assertLess(time.monotonic(), deadline, f"{len(list(descriptors.iterdir()))} descriptors, {before} before")
            time.sleep(0.05)
        self.assertEqual(metric(self.metrics(server), "waybill_connections"), 1)  # the one that asks
        self.assertEqual(server.stop(), 0)

    def test_a_limit_that_is_too_low_is_told(self):
        server = self.serve("\nserver:\n  max_connections: 10000000\n")
        told = server.wait_for_event("fewer connections can be held than server.max_connections allows: the system's limit of "
                                     "open files is too low; raise it (LimitNOFILE= in a systemd unit, ulimit -Hn) or lower "
                                     "max_connections")
        self.assertLess(told["open_files_limit"], told["open_files_needed"])
        self.assertEqual(server.get("/health").status, 200)


if __name__ == "__main__":
    blackbox.main()
