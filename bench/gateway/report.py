"""The table of `make bench-gateway`: what each gateway did, ratios to nginx and vllm-router, and what was asked for."""
from gateways import waybill_server

ROWS = [  # key, title, digits, in ratio to nginx and vllm-router
    ("version", "version", None, False),
    ("max_rps", "requests/s, closed loop, 64 connections", 0, True),
    ("errors", "its errors", 0, False),
    ("cpu_us", "CPU of the gateway, µs a request", 1, True),
    ("open_rps", "requests/s, open loop, P99 within 10 ms of direct", 0, True),
    ("added_p50_us", "added at one connection, P50, µs", 0, True),
    ("added_p99_us", "added at one connection, P99, µs", 0, True),
    ("ttft_added_p50_ms", "200 streams: added to the first token, P50, ms", 2, False),
    ("ttft_added_p99_ms", "the same, P99, ms", 2, False),
    ("ttft_added_p99_worst_ms", "the same, worst of the pairs of runs, ms", 2, False),
    ("frame_added_p99_ms", "added to a frame, P99, ms", 2, False),
    ("streams_broken", "broken streams", 0, False),
    ("idle_mb", "memory, idle, MB", 0, False),
    ("held_mb", "memory at 2,000 streams, MB", 0, False),
    ("held_broken", "of these broken", 0, False),
    ("auto_mb", "memory at the end, after `model: auto`, MB", 0, False),
    ("noise_cpus", "CPUs that others used (worst)", 2, False),
]


def shown(value, digits):
    if value is None:
        return "·"
    return str(value) if digits is None else f"{value:,.{digits}f}"


def table(results, names):
    lines = ["| | " + " | ".join(names) + " |", "| --- |" + " ---: |" * len(names)]
    for key, title, digits, ratio in ROWS:
        cells = []
        for name in names:
            value = results[name].get(key)
            cell = shown(value, digits)
            base = results["nginx"].get(key)
            if ratio and name != "nginx" and value and base and base > 0:
                cell += f" ({value / base:.2f} ×)" if value / base < 10 else f" ({value / base:.0f} ×)"
            cells.append(cell)
        lines.append(f"| {title} | " + " | ".join(cells) + " |")
    return lines


def met(condition):
    return "met" if condition else "**not met**"


def asked(results):
    """[(what was asked for, what was measured, whether it was met)]"""
    ours, nginx, router = results["waybill"], results["nginx"], results["vllm-router"]
    moved = ours["lane_p95_ms"] / ours["lane_p95_alone_ms"] - 1
    ledger = ours["ledger"]
    return [
        ("requests/s at least 2 × vllm-router", f"{ours['max_rps'] / router['max_rps']:.2f} ×; {ours['max_rps'] / nginx['max_rps']:.2f} × nginx (aim: 0.7); "
         f"by CPU a request {router['cpu_us'] / ours['cpu_us']:.2f} × and {nginx['cpu_us'] / ours['cpu_us']:.2f} ×",
         ours["max_rps"] >= 2 * router["max_rps"] and ours["errors"] == 0),
        ("open loop at least 2 × vllm-router", f"{ours['open_rps'] / max(router['open_rps'], 1):.2f} ×", ours["open_rps"] >= 2 * router["open_rps"]),
        ("at most 40 µs of CPU a request", f"{ours['cpu_us']:.1f} µs", ours["cpu_us"] <= 40),
        ("added P50 at one connection at most 80 µs", f"{ours['added_p50_us']:.0f} µs", ours["added_p50_us"] <= 80),
        ("added P99 at most 2 × nginx", f"{ours['added_p99_us'] / nginx['added_p99_us']:.2f} ×", ours["added_p99_us"] <= 2 * nginx["added_p99_us"]),
        ("200 streams: added to the first token P99 under 1 ms, none broken", f"{ours['ttft_added_p99_ms']:.2f} ms (worst of the pairs {ours['ttft_added_p99_worst_ms']:.2f}), {ours['streams_broken']} broken",
         ours["ttft_added_p99_ms"] < 1 and ours["streams_broken"] == 0),
        ("memory idle under 60 MB", f"{ours['idle_mb']:.0f} MB", ours["idle_mb"] < 60),
        ("memory at 2,000 streams under 100 MB", f"{ours['held_mb']:.0f} MB, {ours['held_broken']} broken", ours["held_mb"] < 100 and ours["held_broken"] == 0),
        ("`model: auto` on distinct prompts: the encoder's rate, no less (5 % for the call itself, on the same core)", f"{ours['auto_rps']:,.0f}/s, decisions alone {ours['route_rps']:,.0f}/s "
         f"({ours['auto_rps'] / ours['route_rps']:.2f} ×)", ours["auto_rps"] >= 0.95 * ours["route_rps"]),
        ("5,000 batch calls move the interactive P95 by at most 10 %", f"{ours['lane_p95_alone_ms']:.1f} → {ours['lane_p95_ms']:.1f} ms ({moved:+.1%}); "
         f"{ours['lane_batch_answered']:,} of 5,000 answered, {ours['lane_batch_left']:,} still to do when it ended", moved <= 0.1),
        ("the ledger balances afterwards", f"{ledger['accepted']:,} accepted, {ledger['completed']:,} completed, {ledger['in_flight']} in flight", ledger["balanced"]),
    ]


def text(results, order, options):
    names = [name for name in order if name in results]
    lines = [f"CPU: {waybill_server.cpu_name()}; the gateway on core 0 (one worker, one event loop), the provider and the load on core 1; rates "
             "in front of a provider that gives one fixed answer, the rest in front of the mock provider. The prompt is a "
             f"sentence, the answer 16 tokens. {options.rounds} rounds of {options.seconds} s; in brackets × nginx. Waybill with keys, limits, waybills, metrics and cost "
             "accounting on, `busy_poll_us: 100`, and with the encoder loaded. Command: `make bench-gateway`.", ""]
    if "nginx" in results:
        lines += table(results, names)
    if {"waybill", "nginx", "vllm-router"} <= set(names):
        lines += ["", "| asked | measured | |", "| --- | --- | --- |", *(f"| {what} | {value} | {met(good)} |" for what, value, good in asked(results))]
    return "\n".join(lines)
