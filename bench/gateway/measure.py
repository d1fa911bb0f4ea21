"""Waybill beside other gateways in front of a mock provider: measure.py WORK_FOLDER [options]

Each gateway runs alone on core 0 with one worker; the mock provider and the load share core 1. What a gateway adds is
measured against the direct call in the same minutes. Rates are measured against a provider that costs less than the mock (nginx with
one fixed answer), as they would else be the mock's. Ratios are to nginx and to vllm-router of the same run. CPU that
others used during a measurement is watched; a disturbed one is repeated, and the worst that remained is printed. The
table goes to standard output and into docs/performance.md. On a machine that others measure on too, BENCH_LOCK names a
file that is locked while a gateway is measured.
"""
import argparse
import contextlib
import json
import os
import re
import statistics
import subprocess
import sys
import threading
import time
from pathlib import Path

import gateways
import lanes
import report
from gateways import waybill_server

ROOT = waybill_server.ROOT
INSTALL = Path(__file__).resolve().parent / "install_peers"
MOCK = waybill_server.BINARIES / "go/mock_provider"
LOAD = waybill_server.BINARIES / "go/gateway_load"
GATEWAY_CORE, LOAD_CORE = 0, 1
CONNECTIONS, OPEN_CONNECTIONS, STREAMS, HELD_STREAMS = 64, 256, 200, 2000
BASELINES = ["nginx", "vllm-router"]
MOST_ADDED_MS = 10  # at the 99th percentile, for a rate to pass


def machine_cpu():
    """CPU seconds that all processes have used, and those that the host took away."""
    fields = [int(each) / gateways.TICK for each in Path("/proc/stat").read_text().splitlines()[0].split()[1:]]
    return fields[0] + fields[1] + fields[2] + fields[7]


class Peak:
    """The most memory that a process had while a block ran."""

    def __init__(self, process):
        self.process, self.mb, self.done = process, 0.0, threading.Event()
        self.thread = threading.Thread(target=self.run)

    def run(self):
        while not self.done.wait(0.5):
            self.mb = max(self.mb, self.process.resident_mb())

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.done.set()
        self.thread.join()


class Bench:
    def __init__(self, options, providers, mock_port, plain_port):
        self.options, self.providers = options, providers
        self.direct = gateways.Target("direct", mock_port)
        self.plain = gateways.Target("direct, plain", plain_port)
        self.direct_p99 = {}  # requests/s -> ms
        self.worst_noise = 0.0

    def run(self, command, target):
        """The load's standard output; again while strangers used the CPU, and then the least disturbed."""
        best = None
        for _ in range(self.options.repeats + 1):
            processes = self.providers + ([target.process] if target.process else [])
            ours, everything, own, begun = sum(each.cpu() for each in processes), machine_cpu(), os.times(), time.monotonic()
            done = subprocess.run(["taskset", "-c", str(LOAD_CORE), *map(str, command)], capture_output=True, text=True, check=False)
            wall, now = time.monotonic() - begun, os.times()
            if done.returncode != 0:
                raise waybill_server.Failure(f"{target.name}: {Path(str(command[0])).name}: {done.stderr[-400:]}")
            known = sum(each.cpu() for each in processes) - ours + sum(now[:4]) - sum(own[:4])
            noise = max(0.0, machine_cpu() - everything - known) / wall
            if best is None or noise < best[0]:
                best = noise, done.stdout
            if noise <= self.options.noise:
                break
        self.worst_noise = max(self.worst_noise, best[0])
        return best[1]

    def drive(self, target, *arguments, body=None, url=None):
        headers = [each for name, value in target.headers.items() for each in ("-H", f"{name}: {value}")]
        return json.loads(self.run([LOAD, "-url", url or target.url, "-body", body or target.body(), *arguments, *headers], target))

    def wrk(self, target):
        script = self.options.work / f"{target.name}.lua"
        lines = ["wrk.method = 'POST'", f"wrk.body = {json.dumps(target.body())}"]
        lines += [f"wrk.headers[{json.dumps(name)}] = {json.dumps(value)}" for name, value in target.headers.items()]
        lines.append('done = function(s, l, r) io.write(string.format("RESULT %d %d %d\\n", s.requests, s.duration, '
                     "s.errors.connect + s.errors.read + s.errors.write + s.errors.status + s.errors.timeout)) end")
        script.write_text("\n".join(lines))
        out = self.run(["wrk", "-t1", f"-c{CONNECTIONS}", f"-d{self.options.seconds + 1}s", "--timeout", "30s", "-s", script, target.url], target)
        requests, microseconds, errors = map(int, re.search(r"^RESULT (\d+) (\d+) (\d+)$", out, re.M).groups())
        return {"rate": requests / microseconds * 1e6, "requests": requests, "errors": errors}

    # What is measured.

    def added_latency(self, target):
        """At one connection, pairs of the direct call and the one through the gateway. Not by wrk: it corrects its
        percentiles for what it did not send during a stall, which drowns the 99th at one connection."""
        def one(which):
            return self.drive(which, "-mode", "closed", "-conns", 1, "-duration", f"{self.options.seconds}s")["latency_ms"]

        pairs = [(one(self.direct), one(target)) for _ in range(self.options.rounds)]
        middle = {side: {q: statistics.median(pair[side][q] for pair in pairs) for q in ("p50", "p99")} for side in (0, 1)}
        return {f"added_{q}_us": 1000 * (middle[1][q] - middle[0][q]) for q in ("p50", "p99")}

    def most_requests(self, target):
        best, cpu, errors = 0, [], 0
        for _ in range(self.options.rounds):
            before = target.process.cpu()
            got = self.wrk(target)
            # The last of several attempts counts for both, so that CPU and requests belong together.
            cpu.append((target.process.cpu() - before) / max(got["requests"], 1) * 1e6)
            best, errors = max(best, got["rate"]), errors + got["errors"]
        return {"max_rps": best, "errors": errors, "cpu_us": min(cpu)}

    def open_limit(self, target, ceiling):
        """The highest rate offered, whatever the answers do, with no error, 98 % of it achieved, and a P99 within 10 ms of
        the direct call's. A latency counts from when the request was due."""
        def at(which, rate):
            return self.drive(which, "-mode", "open", "-conns", OPEN_CONNECTIONS, "-rate", rate, "-duration", f"{self.options.seconds}s")

        def passes(rate):
            if rate not in self.direct_p99:
                self.direct_p99[rate] = at(self.plain, rate)["latency_ms"]["p99"]
            got = at(target, rate)
            return got["errors"] == 0 and got["achieved"] >= 0.98 * rate and got["latency_ms"]["p99"] - self.direct_p99[rate] <= MOST_ADDED_MS

        low, high = 0, rounded(ceiling * 1.1)
        for _ in range(self.options.steps):
            rate = rounded((low + high) / 2)
            if rate in (low, high) or rate <= 0:
                break
            if passes(rate) or passes(rate):  # once more, in case a stranger disturbed it
                low = rate
            else:
                high = rate
        return {"open_rps": low}

    def streams(self, target):
        """Pairs of the direct run and the one through the gateway, and their median: the 99th percentile of 600 streams that
        begin at one instant is that of six connections."""
        def held(which):
            return self.drive(which, "-mode", "stream", "-conns", STREAMS, "-rounds", self.options.rounds,
                              body=which.body(gateways.STREAM_MODEL, stream=True))

        pairs = [(held(self.direct), held(target)) for _ in range(self.options.rounds)]

        def added(what, q):
            differences = [through[what][q] - direct[what][q] for direct, through in pairs if through[what]]
            return statistics.median(differences) if differences else None

        worst = [through["ttft_ms"]["p99"] - direct["ttft_ms"]["p99"] for direct, through in pairs if through["ttft_ms"]]
        return {"streams_broken": sum(through["broken"] for _, through in pairs), "ttft_added_p50_ms": added("ttft_ms", "p50"),
                "ttft_added_p99_ms": added("ttft_ms", "p99"), "ttft_added_p99_worst_ms": max(worst, default=None),
                "frame_added_p99_ms": added("transit_ms", "p99")}

    def many_streams(self, target):
        with Peak(target.process) as peak:
            got = self.drive(target, "-mode", "stream", "-conns", HELD_STREAMS, "-rounds", 1, "-frames", 20, "-spread", "2s",
                             body=target.body(gateways.HELD_MODEL, stream=True))
        return {"held_broken": got["broken"], "held_mb": peak.mb}

    def auto(self, target):
        """Requests/s of `model: auto` and of decisions alone, each prompt another."""
        rates = {"auto_rps": 0.0, "route_rps": 0.0}
        for turn in range(self.options.rounds):
            for name in rates:
                prompt = f"my unit test #NUMBER# of {name} hangs when I mock the clock in turn {turn}"
                url, body = None, target.body("auto", prompt=prompt)
                if name == "route_rps":
                    url, body = target.root + "/v1/route", json.dumps({"prompt": prompt})
                got = self.drive(target, "-mode", "closed", "-conns", CONNECTIONS, "-duration", f"{self.options.seconds}s", body=body, url=url)
                if got["faults"]:
                    raise waybill_server.Failure(f"{target.name}: {name}: {got['faults']}")
                rates[name] = max(rates[name], got["achieved"])
        return rates

    def measure(self, target):
        time.sleep(2)
        result = {"idle_mb": target.process.resident_mb()}
        self.wrk(target)  # to warm up
        self.worst_noise = 0.0
        result |= self.added_latency(target)
        result |= self.streams(target)
        if target.name in ("nginx", "haproxy", "vllm-router", "envoy", "waybill"):  # the others take minutes for it
            result |= self.many_streams(target)
        if target.name == "waybill":
            result |= self.auto(target)
            result |= lanes.measure(target, self, self.options)
            result["auto_mb"] = target.process.resident_mb()
            result["ledger"] = json.loads(target.admin("/v1/ledger"))
        return {**result, "noise_cpus": self.worst_noise}

    def measure_rates(self, target):
        """Of a gateway in front of the plain provider."""
        self.wrk(target)  # to warm up
        self.worst_noise = 0.0
        result = self.most_requests(target)
        result |= self.open_limit(target, result["max_rps"])
        return {**result, "noise_cpus": self.worst_noise}


def rounded(rate):
    """To two and a half digits, so that gateways share the direct measurements."""
    step = 5 * 10 ** max(len(str(int(rate))) - 3, 0)
    return int(rate / step + 0.5) * step if rate >= 20 else max(int(rate), 0)


@contextlib.contextmanager
def mock_provider(work):
    port = waybill_server.free_port()
    with gateways.Pinned([str(MOCK), "-addr", f"127.0.0.1:{port}"], LOAD_CORE, work / "mock.log") as mock:
        time.sleep(0.5)
        yield mock, port


@contextlib.contextmanager
def plain_provider(work, mock_port):
    port = waybill_server.free_port()
    answer = gateways.Target("direct", mock_port).call()
    config = work / "provider.conf"
    config.write_text(gateways.fill((gateways.HERE / "configs/provider.conf").read_text(), {"PORT": port, "MOCK": mock_port, "ANSWER": answer}))
    with gateways.Pinned(["nginx", "-p", str(work), "-c", config.name, "-e", "provider.log"], LOAD_CORE, work / "provider.out") as provider:
        time.sleep(0.5)
        yield provider, port


def parse_options():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("work", type=Path)
    names = [gateway.name for gateway in gateways.GATEWAYS]
    parser.add_argument("--peers", default="nginx,haproxy,vllm-router,envoy", help=f"of {', '.join(names[:-1])}; always {' and '.join(BASELINES)}")
    parser.add_argument("--only", help="gateways to measure now; the others are taken from the last run")
    parser.add_argument("--smoke", action="store_true", help="only start each and make a call of each kind")
    parser.add_argument("--quick", action="store_true", help="short measurements, to see that it works; writes no document")
    parser.add_argument("--seconds", type=int, default=3, help="of one measurement")
    parser.add_argument("--rounds", type=int, default=3, help="the best, or the median, counts")
    parser.add_argument("--steps", type=int, default=6, help="of the search for the highest open-loop rate")
    parser.add_argument("--noise", type=float, default=0.05, help="CPUs that others may use before a measurement is repeated")
    parser.add_argument("--repeats", type=int, default=2)
    parser.add_argument("--json", type=Path, help="all figures, here too")
    options = parser.parse_args()
    options.work = options.work.resolve()
    wanted = {*options.peers.split(","), *BASELINES, "waybill"}
    if unknown := wanted - set(names):
        parser.error(f"there is no {', '.join(sorted(unknown))}; there are {', '.join(names)}")
    options.gateways = [gateway for gateway in gateways.GATEWAYS if gateway.name in wanted]
    if options.only:
        options.gateways = [gateway for gateway in options.gateways if gateway.name in options.only.split(",")]
    if options.quick:
        options.seconds, options.rounds, options.steps, options.repeats = 1, 1, 3, 0
    return options


def main():
    options = parse_options()
    if os.cpu_count() < 2:
        raise waybill_server.Failure("needs two cores, one for the gateway and one for the provider and the load")
    os.sched_setaffinity(0, {LOAD_CORE})
    subprocess.run([INSTALL, options.work / "peers", *(gateway.name for gateway in options.gateways)], check=True)
    kept = options.work / ("quick.json" if options.quick else "results.json")
    results = json.loads(kept.read_text()) if options.only and kept.exists() else {}
    for gateway in options.gateways:
        with waybill_server.machine_alone(), mock_provider(options.work) as (mock, mock_port), \
                plain_provider(options.work, mock_port) as (plain, plain_port):
            bench = Bench(options, [mock, plain], mock_port, plain_port)
            target, version = gateways.start(gateway, options.work, GATEWAY_CORE, mock_port)
            with target:
                if options.smoke:
                    print(f"{gateway.name} {version}: answers, and streams", flush=True)
                    continue
                result = {"version": version, **bench.measure(target)}
            rated, _ = gateways.start(gateway, options.work, GATEWAY_CORE, plain_port, streams=False)
            with rated:
                rates = bench.measure_rates(rated)
            results[gateway.name] = {**result, **rates, "noise_cpus": max(result["noise_cpus"], rates["noise_cpus"])}
        print(f"{gateway.name}: {json.dumps(results[gateway.name])}", file=sys.stderr, flush=True)
        kept.write_text(json.dumps(results, indent=1))
    if options.smoke:
        return
    text = report.text(results, [gateway.name for gateway in gateways.GATEWAYS], options)
    if options.json:
        options.json.write_text(json.dumps(results, indent=1))
    if options.quick:
        print(text)
    else:
        subprocess.run([sys.executable, ROOT / "bench/insert_table.py", ROOT / "docs/performance.md", "bench-gateway"], input=text, text=True, check=True)


if __name__ == "__main__":
    try:
        main()
    except waybill_server.Failure as failure:
        sys.exit(f"bench-gateway: {failure}")
