#!/usr/bin/env python3
"""The load driver of bench/incident counts what a server does, and nothing else: against a server whose faults are known."""
import asyncio
import json
import os
import subprocess
import sys
import threading
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
import blackbox

BURST = Path(os.environ.get("WAYBILL_BINARY_DIR", blackbox.SOURCE / "build/release")) / "bench/incident/burst"
sys.path.insert(0, str(blackbox.SOURCE / "bench/incident"))
import report  # noqa: E402
import servers  # noqa: E402


class FakeGateway:
    """Answers POST /route as `behaviour(number of the request, prompt)` says: (status, object, way), or None for never.

    way: "length", "chunked", "last" (and the connection ends) or "reset" (the connection ends instead of an answer).
    """

    def __init__(self, behaviour, delay_s=0.0):
        self.behaviour, self.delay_s = behaviour, delay_s
        self.prompts = []
        self.hang_ups = 0
        self.loop = asyncio.new_event_loop()
        ready = threading.Event()
        self.thread = threading.Thread(target=self.run, args=(ready,), daemon=True)
        self.thread.start()
        ready.wait()

    def run(self, ready):
        async def start():
            self.server = await asyncio.start_server(self.serve, "127.0.0.1", 0, backlog=1000)
            self.port = self.server.sockets[0].getsockname()[1]
            ready.set()

        self.loop.run_until_complete(start())
        self.loop.run_forever()

    async def serve(self, reader, writer):
        try:
            while True:
                head = (await reader.readuntil(b"\r\n\r\n")).decode()
                length = next((int(line.split(":")[1]) for line in head.splitlines() if line.lower().startswith("content-length")), 0)
                body = await reader.readexactly(length)
                if head.startswith("GET"):
                    self.write(writer, 200, {"status": "ok"}, "length")
                    continue
                prompt = json.loads(body)["prompt"]
                self.prompts.append(prompt)
                answer = self.behaviour(len(self.prompts) - 1, prompt)
                if self.delay_s:
                    await asyncio.sleep(self.delay_s)
                if answer is None:
                    await reader.read(1)
                    self.hang_ups += 1
                    break
                if answer[2] == "reset":
                    break
                self.write(writer, *answer)
                if answer[2] == "last":
                    break
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()

    @staticmethod
    def write(writer, status, content, way):
        body = json.dumps(content).encode()
        head = f"HTTP/1.1 {status} Whatever\r\nContent-Type: application/json\r\n"
        if way == "chunked":
            parts = b"".join(b"%x\r\n%s\r\n" % (len(p), p) for p in (body[:7], body[7:])) + b"0\r\n\r\n"
            writer.write((head + "Transfer-Encoding: chunked\r\n\r\n").encode() + parts)
        else:
            close = "Connection: close\r\n" if way == "last" else ""
            writer.write((head + f"{close}Content-Length: {len(body)}\r\n\r\n").encode() + body)

    def stop(self):
        async def end():
            self.server.close()
            others = asyncio.all_tasks() - {asyncio.current_task()}
            for task in others:
                task.cancel()
            await asyncio.gather(*others, return_exceptions=True)

        asyncio.run_coroutine_threadsafe(end(), self.loop).result(10)
        self.loop.call_soon_threadsafe(self.loop.stop)
        self.thread.join()
        self.loop.close()


def decided(route, degraded=False):
    return {"route": route, "model": "route", "score": 0.5, "tier": "static" if degraded else "encoder", "degraded": degraded}


class Driver(blackbox.Case):
    def drive(self, gateway, *options):
        """The metrics of one run."""
        self.addCleanup(gateway.stop)
        out = self.folder / "out.json"
        command = [BURST, "--url", f"http://127.0.0.1:{gateway.port}", "--runs", 1, "--warmup", 0, "--json", out, *options]
        done = subprocess.run(list(map(str, command)), capture_output=True, text=True, timeout=120)
        self.assertEqual(done.returncode, 0, done.stderr)
        scenarios = json.loads(out.read_text())["scenarios"]
        return next(iter(scenarios.values()))["median"]

    def topics(self, scenario, count):
        """{prompt: the route it is meant for} of run 1 with seed 1."""
        done = subprocess.run([BURST, "--seed", str(1000 + 10 * ord(scenario[0])), "--dump-prompts", str(count)],
                              capture_output=True, text=True, check=True)
        return {prompt: topic for topic, prompt in (line.split("\t") for line in done.stdout.splitlines())}

    def test_every_fate_is_counted_as_what_it_is(self):
        topics = self.topics("qps240", 2000)

        def behaviour(i, prompt):
            return [(503, {"error": {}}, "length"),
                    None,
                    (200, {}, "reset"),
                    (200, decided(topics[prompt], degraded=True), "length"),
                    (200, decided("nonsense", degraded=True), "chunked"),
                    (200, decided(topics[prompt]), "chunked"),
                    (200, decided(topics[prompt]), "last"),
                    (200, decided(topics[prompt]), "length"),
                    (200, decided("nonsense"), "length"),
                    (200, decided(topics[prompt]), "length")][i % 10]

        gateway = FakeGateway(behaviour)
        got = self.drive(gateway, "--scenario", "qps240", "--rate", 100, "--seconds", 2, "--timeout-s", 2)
        seen = len(gateway.prompts)
        fates = [sum(1 for i in range(seen) if i % 10 == kind) for kind in range(10)]
        self.assertGreater(seen, 100)
        self.assertEqual(got["refused"], fates[0])
        self.assertEqual(got["status_503"], fates[0])
        self.assertEqual(got["dropped"], fates[1])
        self.assertEqual(got["answered_2xx"], sum(fates[3:]))
        # A reset on a connection that has answered before is tried once more, so that one of these can be two of ours.
        self.assertLessEqual(got["broken"], fates[2])
        self.assertEqual(got["sent"], got["answered_2xx"] + got["refused"] + got["dropped"] + got["broken"])
        self.assertEqual(got["degraded"], fates[3] + fates[4])
        self.assertAlmostEqual(got["degraded_right_share"], fates[3] / (fates[3] + fates[4]), places=4)
        self.assertAlmostEqual(got["tier_encoder_share"], sum(fates[5:]) / sum(fates[3:]), places=4)
        self.assertAlmostEqual(got["right_share"], (fates[3] + fates[5] + fates[6] + fates[7] + fates[9]) / sum(fates[3:]), places=4)
        self.assertEqual(got["max_ms"], 2000)
        self.assertLess(got["p50_ms"], 2000)
        deadline = time.monotonic() + 10
        while gateway.hang_ups < fates[1] and time.monotonic() < deadline:
            time.sleep(0.01)
        self.assertEqual(gateway.hang_ups, fates[1])

    def test_latency_counts_from_when_a_request_was_due(self):
        gateway = FakeGateway(lambda i, prompt: (200, decided("chat"), "length"), delay_s=0.2)
        got = self.drive(gateway, "--scenario", "burst300")
        self.assertEqual((got["sent"], got["answered_2xx"]), (600, 600))
        self.assertGreaterEqual(got["p50_ms"], 200)
        self.assertEqual(len(set(gateway.prompts)), 600)

    def test_clients_hang_up(self):
        gateway = FakeGateway(lambda i, prompt: None)
        got = self.drive(gateway, "--scenario", "qps240", "--rate", 100, "--seconds", 1, "--hang-up", 1, "--hang-up-s", 0.05)
        self.assertEqual(got["hung_up"], got["sent"])
        self.assertEqual((got["dropped"], got["answered_2xx"]), (0, 0))

    def test_the_pool_is_asked_once_before(self):
        gateway = FakeGateway(lambda i, prompt: (200, decided("chat"), "length"))
        got = self.drive(gateway, "--scenario", "qps240", "--rate", 200, "--seconds", 1, "--pool", 40)
        self.assertEqual(len(set(gateway.prompts[:40])), 40)
        self.assertEqual(set(gateway.prompts[40:]) - set(gateway.prompts[:40]), set())
        self.assertEqual(len(gateway.prompts), 40 + got["sent"])

    def test_closed_clients_wait_for_their_answers(self):
        gateway = FakeGateway(lambda i, prompt: (200, decided("chat"), "length"), delay_s=0.05)
        got = self.drive(gateway, "--scenario", "closed100", "--clients", 5, "--rounds", 4)
        self.assertEqual(got["sent"], 20)
        self.assertEqual(set(gateway.prompts), {"Explain quantum computing"})
        self.assertGreaterEqual(got["p50_ms"], 50)

    def test_a_rate_is_held_only_if_everything_is_answered(self):
        gateway = FakeGateway(lambda i, prompt: (200, decided("chat"), "length") if i < 60 else (503, {}, "length"))
        got = self.drive(gateway, "--scenario", "ramp", "--ramp-start", 20, "--ramp-step-s", 1, "--ramp-growth", 2)
        self.assertIn(got["held_per_s"], (20, 25, 30, 35, 40))
        self.assertEqual(got["refused"], 0)

    def test_what_it_does_not_know_it_says(self):
        for arguments in (["--scenario", "flood"], ["--frobnicate", "1"], ["--rate"], ["--url", "http://example.com:80"]):
            with self.subTest(arguments):
                done = subprocess.run([BURST, *arguments], capture_output=True, text=True)
                self.assertEqual(done.returncode, 2)
                self.assertIn("usage:", done.stderr)


class Report(blackbox.Case):
    @staticmethod
    def results(**changes):
        """Figures with which everything asked for is met; changes: {"server.scenario.key": value}."""
        base = {"sent": 600, "dropped": 0, "refused": 0, "broken": 0, "p50_ms": 1, "p95_ms": 1, "p99_ms": 1, "answers_per_s": 100,
                "right_share": 0.9, "degraded_share": 0, "degraded_right_share": 0, "held_per_s": 100, "server_peak_rss_mb": 600,
                "server_cores": 1, "driver_cores": 0.1}
        ours = {"p95_ms": 0.01, "answers_per_s": 2000, "held_per_s": 2500, "server_peak_rss_mb": 100, "right_share": 0.95}
        runs = {}
        for server in servers.SERVERS:
            runs[server.name] = [{scenario: dict(base, **(ours if server.waybill else {})) for scenario in server.scenarios}]
            for metrics in runs[server.name][0].values() if server.waybill else ():
                metrics["ledger"] = {"balanced": True}
        for path, value in changes.items():
            server, scenario, key = path.split("/")
            runs[server][0][scenario][key] = value
        return {"cpu": "a CPU", "cores": 2, "linux": "6", "versions": "some", "servers": runs}

    def unmet(self, **changes):
        return [what for what, _, _, met in report.targets(report.Figures(self.results(**changes))) if not met]

    def test_good_figures_meet_everything(self):
        self.assertEqual(self.unmet(), [])
        self.assertIn("| met |", report.text(self.results()))

    def test_each_fault_is_seen(self):
        for path, value, words in [("waybill/burst300/dropped", 1, "dropped"), ("waybill-encoder/qps240/refused", 1, "refused"),
                                   ("waybill/qps240/ledger", {"balanced": False}, "ledger"), ("waybill/ramp/ledger", None, "ledger"),
                                   ("waybill/qps240/right_share", 0.89, "right"), ("waybill/qps240/p95_ms", 0.03, "qps240"),
                                   ("waybill-encoder/burst300/p95_ms", 0.3, "burst300"), ("waybill-encoder/ramp/held_per_s", 349, "ramp"),
                                   ("waybill/ramp/held_per_s", 1999, "ramp"), ("waybill/closed100/answers_per_s", 1499, "closed100"),
                                   ("waybill/ramp/server_peak_rss_mb", 151, "memory in its ramp")]:
            with self.subTest(path):
                found = self.unmet(**{path: value})
                self.assertEqual(len(found), 1, found)
                self.assertIn(words, found[0])

    def test_memory_in_the_common_loads_counts_apart_from_the_ramp(self):
        found = self.unmet(**{"waybill/burst300/server_peak_rss_mb": 151})
        self.assertEqual(len(found), 2, found)

    def test_what_was_not_measured_is_left_out(self):
        results = self.results()
        results["servers"] = {"tuned": results["servers"]["tuned"]}
        self.assertNotIn("**waybill", report.text(results))
        self.assertEqual(report.targets(report.Figures(results)), [])


if __name__ == "__main__":
    blackbox.main()
