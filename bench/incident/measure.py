"""The incident's gateway and Waybill, driven by the same load in one run: measure.py WORK_FOLDER [options]

Each server is started anew for each run, and takes the scenarios one after the other. The table goes to standard
output and into docs/performance.md; progress goes to standard error. On a machine that others measure on too,
BENCH_LOCK names a file that is locked while a server is measured.
"""
import argparse
import json
import os
import platform
import subprocess
import sys
from pathlib import Path

import report
import servers
import waybill_server

ROOT = waybill_server.ROOT
QUICK = ["--seconds", "2", "--rounds", "2", "--ramp-start", "20", "--ramp-max", "40", "--ramp-growth", "2", "--ramp-step-s", "1"]
OTHERS = 0.2  # cores in use by others, above which a load is repeated
RAMP_START = {True: "100", False: "10"}  # of a server that holds more than 100/s, and of the others


def load(server, running, scenario, seed, options):
    """The metrics of one load on a running server."""
    out = options.work / "burst.json"
    command = [waybill_server.BURST, "--url", running.url, "--pid", running.pid, "--label", server.name, "--runs", 1, "--seed", seed,
               "--scenario", scenario, "--json", out, "--ramp-start", RAMP_START[server.waybill], *server.burst,
               *(QUICK if options.quick else [])]
    done = subprocess.run(list(map(str, command)), stdout=subprocess.PIPE, text=True, check=False)
    if done.returncode != 0:
        raise waybill_server.Failure(f"{server.name}: {scenario} could not be measured")
    print("    " + done.stdout.strip().splitlines()[1], file=sys.stderr, flush=True)
    metrics = json.loads(out.read_text())["scenarios"][scenario]["median"]
    if server.waybill:
        metrics["ledger"] = running.ledger()
    return metrics


def measure(server, turn, options):
    """{scenario: metrics} of one run, each with the ledger after it where there is one.

    A load during which others used the machine is repeated, with prompts of its own, and the least disturbed counts.
    """
    got = {}
    with servers.start(server, options.work) as running:
        for scenario in [s for s in server.scenarios if s in options.scenarios]:
            attempts = []
            while len(attempts) <= options.repeats and (not attempts or attempts[-1]["other_cores"] > OTHERS):
                attempts.append(load(server, running, scenario, 1 + turn + 100 * len(attempts), options))
            best = min(attempts, key=lambda metrics: metrics["other_cores"])
            best["set_aside_lost"] = sum(m["dropped"] + m["refused"] + m["broken"] for m in attempts if m is not best)
            got[scenario] = best
    return got


def versions(work):
    pinned = (work / "installed.txt").read_text().split()
    wanted = ("semantic-router", "sentence-transformers", "transformers", "torch", "openvino", "fastapi", "uvicorn", "uvloop")
    python = subprocess.run([work / "venv/bin/python", "--version"], capture_output=True, text=True, check=False).stdout.strip()
    return ", ".join([python] + [line.replace("==", " ") for line in pinned if line.split("==")[0] in wanted])


def parse_options():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("work", type=Path)
    parser.add_argument("--only", action="append", choices=[s.name for s in servers.SERVERS], help="measure this one (may be given again)")
    parser.add_argument("--merge", action="store_true", help="with --only: take the others from the last run")
    parser.add_argument("--scenarios", default=",".join(servers.ALL), help="comma-separated")
    parser.add_argument("--runs", type=int, default=3, help="of tuned and Waybill")
    parser.add_argument("--untuned-runs", type=int, help="of blocking, to_thread and acall (default: --runs)")
    parser.add_argument("--repeats", type=int, default=2, help=f"of a load during which others used more than {OTHERS} cores")
    parser.add_argument("--quick", action="store_true", help="small loads and one run, to see that it works; writes no document")
    parser.add_argument("--json", type=Path, help="all figures, here too")
    options = parser.parse_args()
    options.work = options.work.resolve()
    options.scenarios = options.scenarios.split(",")
    if unknown := set(options.scenarios) - set(servers.ALL):
        parser.error(f"there is no scenario {', '.join(unknown)}; there are {', '.join(servers.ALL)}")
    if options.quick:
        options.runs = options.untuned_runs = 1
        options.repeats = 0
    return options


def main():
    options = parse_options()
    kept = options.work / ("quick.json" if options.quick else "results.json")
    results = {"servers": {}}
    if options.merge and kept.exists():
        results = json.loads(kept.read_text())
    chosen = [s for s in servers.SERVERS if not options.only or s.name in options.only]
    results |= {"cpu": waybill_server.cpu_name(), "cores": os.cpu_count(), "linux": platform.release(), "versions": versions(options.work),
                "nice": os.nice(0), "earlier": sorted(set(results["servers"]) - {s.name for s in chosen})}
    for server in chosen:
        results["servers"][server.name] = []
    for turn in range(options.runs):
        for server in chosen:
            if not (server.tuned or server.waybill) and options.untuned_runs is not None and turn >= options.untuned_runs:
                continue
            print(f"{server.name}, run {turn + 1} of {options.runs}", file=sys.stderr, flush=True)
            with waybill_server.machine_alone():
                if server.waybill and turn == 0:
                    servers.prepare(server, options.work)
                results["servers"][server.name].append(measure(server, turn, options))
            kept.write_text(json.dumps(results, indent=1))
    waybill_server.publish("bench-incident", [report.text(results)], not options.quick, results, options.json)


if __name__ == "__main__":
    waybill_server.run("bench-incident", main)
