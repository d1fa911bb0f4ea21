"""Durable jobs, Waybill beside others: measure.py WORK_FOLDER [options]

The load, the provider and all peers are started by jobs_bench (queue/, in Go); this says what is measured, keeps the
figures, and writes the table to standard output and into docs/performance.md. On a machine that others measure on too,
BENCH_LOCK names a file that is locked while a part runs.
"""
import argparse
import json
import os
import subprocess
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
import report
import waybill_server

HERE = Path(__file__).resolve().parent
PARTS = {  # what to give jobs_bench
    "submit": ["-rounds", "3"],
    "brokers": ["-rounds", "2"],
    "idle": [],
    "life": ["-conc", "64,256", "-rounds", "2"],
    "depth": ["-rounds", "3"],
    "waiting": [],
    "restart": ["-jobs", "100000", "-rounds", "3"],
}
PATIENCE_S = 600


def parse_options():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("work", type=Path)
    parser.add_argument("--only", default=",".join(PARTS), help=f"of {', '.join(PARTS)}; writes no document")
    parser.add_argument("--peers", default="", help="beside these only, such as redis-stream,go-redis; writes no document")
    parser.add_argument("--secs", type=float, default=1.5, help="of one cell")
    parser.add_argument("--json", type=Path, help="all figures, here too")
    options = parser.parse_args()
    options.work = options.work.resolve()
    options.parts = options.only.split(",")
    if unknown := set(options.parts) - set(PARTS):
        parser.error(f"there is no {', '.join(sorted(unknown))}; there are {', '.join(PARTS)}")
    return options


def measure(part, options):
    command = [options.work / "jobs_bench", part, "-work", options.work / "data", "-waybill", waybill_server.PROGRAM, "-config", HERE / "waybill.yaml",
               "-node", options.work / "node", "-peers", options.peers, "-secs", options.secs, *PARTS[part]]
    print(f"== {part}", file=sys.stderr, flush=True)
    try:
        done = subprocess.run(list(map(str, command)), stdout=subprocess.PIPE, text=True, timeout=PATIENCE_S, check=False)
    except subprocess.TimeoutExpired as late:
        raise waybill_server.Failure(f"{part} takes longer than {PATIENCE_S} s") from late
    if done.returncode != 0:
        raise waybill_server.Failure(f"{part} failed; what it said stands above")
    return json.loads(done.stdout)


def version(*command):
    """The first line with a digit that the command prints."""
    try:
        said = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    except OSError:
        return "absent"
    return next((line.strip() for line in (said.stdout + said.stderr).splitlines() if any(c.isdigit() for c in line)), "unknown")


def debian(package):
    return version("dpkg-query", "-W", "-f=${Version}\n", package).split("-")[0].split(":")[-1].split("+")[0]


def versions():
    modules = (HERE / "queue/go.mod").read_text()
    wanted = json.loads((HERE / "queue/node/package.json").read_text())["dependencies"]
    return {"Redis": debian("redis-server"), "PostgreSQL": debian("postgresql-15"), "RabbitMQ": debian("rabbitmq-server"), "webdis": debian("webdis"),
            "River": modules.split("riverqueue/river v")[1].split()[0], "pgx": modules.split("pgx/v5 v")[1].split()[0], "pg-boss": wanted["pg-boss"],
            "BullMQ": wanted["bullmq"], "Go": version("go", "version").split()[2].removeprefix("go"), "Node": version("node", "--version").removeprefix("v")}


def main():
    options = parse_options()
    (options.work / "data").mkdir(parents=True, exist_ok=True)
    results, begun = {}, time.monotonic()
    for part in options.parts:
        with waybill_server.machine_alone():
            since = time.monotonic()
            results[part] = measure(part, options)
            print(f"{part}: {time.monotonic() - since:.0f} s", file=sys.stderr)
    figures = {"cpu": waybill_server.cpu_name(), "cores": os.cpu_count(), "versions": versions(), "secs": options.secs, "parts": results}
    (options.work / "results.json").write_text(json.dumps(figures, indent=1))
    print(f"bench-jobs: {time.monotonic() - begun:.0f} s", file=sys.stderr)
    whole = set(options.parts) == set(PARTS) and not options.peers
    waybill_server.publish("bench-jobs", report.lines(figures), whole, figures, options.json)


if __name__ == "__main__":
    waybill_server.run("bench-jobs", main)
