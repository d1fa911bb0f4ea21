"""Does anything leak under overload? measure.py WORK_FOLDER [--minutes 10]

A short ramp finds the rate that the encoder alone sustains. Then a new server takes twice that rate, in minutes of
open-loop load with prompts that are all distinct, while a fifth of the clients hang up. After each minute, when the
driver has closed its connections: resident memory, descriptors and the ledger. Two servers, one after the other: one
that refuses what it cannot do (encoder only), one that may degrade.
"""
import argparse
import json
import subprocess
import sys
import time
from pathlib import Path

BENCH = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(BENCH), str(BENCH / "incident")]
import servers  # noqa: E402
import waybill_server  # noqa: E402

ROOT = waybill_server.ROOT
HANG_UP_SHARE = 0.2
BY_NAME = {server.name: server for server in servers.SERVERS}


def burst(running, out, *options):
    command = [waybill_server.BURST, "--url", running.url, "--pid", running.pid, "--runs", 1, "--json", out, *options]
    done = subprocess.run(list(map(str, command)), stdout=subprocess.PIPE, text=True, check=False)
    if done.returncode != 0:
        raise waybill_server.Failure("the load could not be driven")
    return next(iter(json.loads(out.read_text())["scenarios"].values()))["median"]


def sustainable_rate(work):
    with servers.start(BY_NAME["waybill-encoder"], work) as running:
        return burst(running, work / "burst.json", "--scenario", "ramp", "--ramp-start", 100, "--ramp-step-s", 3)["held_per_s"]


def reading(running):
    """Once the server has seen that the driver's connections are closed, and has given back what they needed."""
    for _ in range(50):
        before = running.descriptors()
        time.sleep(0.2)
        if running.descriptors() == before:
            break
    time.sleep(3)
    return {"resident_mb": running.resident_mb(), "descriptors": running.descriptors(), "ledger": running.ledger()}


def soak(name, rate, options):
    """[(metrics, reading)] for each minute."""
    minutes = []
    servers.prepare(BY_NAME[name], options.work)
    with servers.start(BY_NAME[name], options.work) as running:
        for minute in range(options.minutes):
            metrics = burst(running, options.work / "burst.json", "--label", name, "--scenario", "qps240", "--rate", rate, "--seconds", options.seconds,
                            "--hang-up", HANG_UP_SHARE, "--seed", 10 + minute)
            minutes.append((metrics, reading(running)))
            got = minutes[-1][1]
            print(f"{name}, minute {minute + 1} of {options.minutes}: {metrics['sent']:,.0f} sent, {metrics['answered_2xx']:,.0f} answered, "
                  f"{metrics['refused']:,.0f} refused, {metrics['hung_up']:,.0f} hung up, {metrics['dropped']:.0f} dropped; {got['resident_mb']:.1f} MB, "
                  f"{got['descriptors']} descriptors, ledger {got['ledger']}", file=sys.stderr, flush=True)
    return minutes


def row(name, minutes):
    total = {key: sum(m[key] for m, _ in minutes) for key in ("sent", "answered_2xx", "degraded", "refused", "hung_up", "dropped", "broken")}
    (_, first), (_, last) = minutes[0], minutes[-1]
    balanced = all(got["ledger"]["balanced"] for _, got in minutes)
    ledger = last["ledger"]
    return (f"| **{name}** | {total['sent']:,.0f} | {total['answered_2xx']:,.0f} | {total['degraded']:,.0f} | {total['refused']:,.0f} "
            f"| {total['hung_up']:,.0f} | {total['dropped'] + total['broken']:,.0f} | {first['resident_mb']:.1f} → {last['resident_mb']:.1f} "
            f"({100 * (last['resident_mb'] / first['resident_mb'] - 1):+.1f} %) | {first['descriptors']} → {last['descriptors']} "
            f"| {'balanced' if balanced else '**not balanced**'}, {ledger['in_flight']} in flight, {ledger['cancelled']:,} cancelled |")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("work", type=Path)
    parser.add_argument("--minutes", type=int, default=10, help="of each server, at least 2")
    parser.add_argument("--seconds", type=float, default=60, help="of a minute, to see quickly that it works; then no document is written")
    parser.add_argument("--rate", type=float, help="requests/s; default: twice what a ramp finds")
    parser.add_argument("--only", choices=("waybill-encoder", "waybill"))
    parser.add_argument("--json", type=Path, help="all figures, here too")
    options = parser.parse_args()
    options.work = options.work.resolve()
    options.minutes = max(2, options.minutes)
    rate = options.rate or 2 * sustainable_rate(options.work)
    found = {name: soak(name, rate, options) for name in ("waybill-encoder", "waybill") if options.only in (None, name)}
    lines = [f"CPU: {waybill_server.cpu_name()}, shared with the driver. {rate:,.0f} requests/s, "
             f"{'as given' if options.rate else 'twice what the encoder alone sustained in a ramp'}, for {options.minutes} minutes each; "
             f"{100 * HANG_UP_SHARE:.0f} % of the clients hang up, half of these at once and the others within 100 ms. *waybill-encoder* refuses what it cannot do, *waybill* may degrade. "
             "Memory and descriptors after the first minute and after the last. Command: `make bench-soak`.", "",
             "| server | sent | answered | of these degraded | refused | hung up | dropped | resident MB | descriptors | ledger |",
             "| --- |" + " ---: |" * 8 + " --- |"]
    lines += [row(name, minutes) for name, minutes in found.items()]
    waybill_server.publish("bench-soak", lines, options.seconds >= 60, found, options.json)


if __name__ == "__main__":
    waybill_server.run("bench-soak", main)
