"""The figures of bench-incident as tables, and held against what was asked for."""
import statistics

import servers

NOT_DROPPED = ("burst300", "qps240", "closed100")


class Figures:
    """Medians over the runs of each server; servers that were not measured are left out."""

    def __init__(self, results):
        self.runs = {s.name: results["servers"][s.name] for s in servers.SERVERS if results["servers"].get(s.name)}

    def has(self, name, scenario):
        return any(scenario in run for run in self.runs.get(name, []))

    def values(self, name, scenario, key):
        return [run[scenario].get(key, 0) for run in self.runs.get(name, []) if scenario in run]

    def get(self, name, scenario, key):
        """None where it was not measured."""
        values = self.values(name, scenario, key)
        return statistics.median(values) if values else None

    def ratio(self, name, scenario, key):
        """÷ tuned's; None where one of both is not known or nought."""
        ours, theirs = self.get(name, scenario, key), self.get("tuned", scenario, key)
        return ours / theirs if ours is not None and theirs else None

    def memory_mb(self, name, ramp):
        """Resident at most; with or without the ramp, which takes each server to a rate of its own."""
        peaks = [[m["server_peak_rss_mb"] for scenario, m in run.items() if ramp or scenario != "ramp"] for run in self.runs.get(name, [])]
        peaks = [max(each) for each in peaks if each]
        return statistics.median(peaks) if peaks else None

    def ledgers(self, name):
        return [m.get("ledger") for run in self.runs.get(name, []) for m in run.values()]


def number(value):
    if value is None:
        return "-"
    if value >= 100 or value == int(value):
        return f"{value:,.0f}"
    return f"{value:.1f}" if value >= 10 else f"{value:.2f}"


def percent(share):
    return "-" if share is None else f"{100 * share:.1f}"


def milliseconds(value):
    return "> 5 s" if value is not None and value >= 5000 else number(value)


def label(figures, server):
    runs = len(figures.runs[server.name])
    name = f"**{server.name}**" if server.waybill else server.name
    return f"{name} ({runs})"


def scenario_table(figures, scenario):
    rows = ["| server (runs) | sent | dropped | refused | P50 ms | P95 ms | P99 ms | P95 ÷ tuned | right % | degraded % | right of these % |",
            "| --- |" + " ---: |" * 10]
    for server in servers.SERVERS:
        if not figures.has(server.name, scenario):
            continue
        get = lambda key, name=server.name: figures.get(name, scenario, key)  # noqa: E731
        degraded = get("degraded_share") if server.waybill else None
        rows.append(f"| {label(figures, server)} | {number(get('sent'))} | {number(get('dropped') + get('broken'))} | {number(get('refused'))} "
                    f"| {milliseconds(get('p50_ms'))} | {milliseconds(get('p95_ms'))} | {milliseconds(get('p99_ms'))} "
                    f"| {ratio_text(figures.ratio(server.name, scenario, 'p95_ms'))} | {percent(get('right_share'))} "
                    f"| {percent(degraded)} | {percent(get('degraded_right_share')) if degraded else '-'} |")
    return rows if len(rows) > 2 else []


def closed_table(figures):
    rows = ["| server (runs) | sent | dropped | refused | answers/s | × tuned | P50 ms | P95 ms | P99 ms |", "| --- |" + " ---: |" * 8]
    for server in servers.SERVERS:
        if figures.has(server.name, "closed100"):
            get = lambda key, name=server.name: figures.get(name, "closed100", key)  # noqa: E731
            rows.append(f"| {label(figures, server)} | {number(get('sent'))} | {number(get('dropped') + get('broken'))} | {number(get('refused'))} "
                        f"| {number(get('answers_per_s'))} | {ratio_text(figures.ratio(server.name, 'closed100', 'answers_per_s'))} "
                        f"| {milliseconds(get('p50_ms'))} | {milliseconds(get('p95_ms'))} | {milliseconds(get('p99_ms'))} |")
    return rows if len(rows) > 2 else []


def ramp_table(figures):
    rows = ["| server (runs) | holds, requests/s | × tuned | P95 ms there | right % | degraded % | right of these % | server, cores | driver, cores |",
            "| --- |" + " ---: |" * 8]
    for server in servers.SERVERS:
        if figures.has(server.name, "ramp"):
            get = lambda key, name=server.name: figures.get(name, "ramp", key)  # noqa: E731
            degraded = get("degraded_share") if server.waybill else None
            rows.append(f"| {label(figures, server)} | {number(get('held_per_s'))} | {ratio_text(figures.ratio(server.name, 'ramp', 'held_per_s'))} "
                        f"| {number(get('p95_ms'))} | {percent(get('right_share'))} | {percent(degraded)} "
                        f"| {percent(get('degraded_right_share')) if degraded else '-'} | {get('server_cores'):.2f} | {get('driver_cores'):.2f} |")
    return rows if len(rows) > 2 else []


def memory_table(figures):
    rows = ["| server (runs) | resident at most in loads that are the same for all, MB | ÷ tuned | and in its ramp, MB | ÷ tuned |",
            "| --- |" + " ---: |" * 4]
    for server in servers.SERVERS:
        cells = []
        for ramp in (False, True):
            ours, theirs = figures.memory_mb(server.name, ramp), figures.memory_mb("tuned", ramp)
            cells += [number(ours), ratio_text(ours / theirs if ours and theirs else None)]
        if cells[2] != "-":
            rows.append(f"| {label(figures, server)} | " + " | ".join(cells) + " |")
    return rows


def ratio_text(value):
    """A ratio with two digits that mean something, however small."""
    if value is None:
        return "-"
    if value >= 10:
        return f"{value:,.0f}"
    return f"{value:.2f}" if value >= 0.1 else f"{value:.3f}"


def targets(figures):
    """[(what, asked, measured, met)]; what was not measured is left out."""
    found = []
    ours = [s.name for s in servers.SERVERS if s.waybill and s.name in figures.runs]

    def at_most(what, limit, value):
        if value is not None:
            found.append((what, f"≤ {limit:g}", ratio_text(value), value <= limit))

    def at_least(what, limit, value):
        if value is not None:
            found.append((what, f"≥ {limit:g}", ratio_text(value), value >= limit))

    for name in ours:
        lost = [sum(figures.values(name, s, key)) for s in NOT_DROPPED for key in ("dropped", "refused", "broken", "set_aside_lost")]
        if any(figures.has(name, s) for s in NOT_DROPPED):
            found.append((f"{name}: dropped, refused or broken in burst300, qps240 and closed100, all runs", "0", number(sum(lost)), sum(lost) == 0))
    ledgers = [ledger for name in ours for ledger in figures.ledgers(name)]
    if ledgers:
        balanced = sum(1 for ledger in ledgers if ledger and ledger["balanced"])
        found.append(("ledger balanced after each load", f"{len(ledgers)}", f"{balanced}", balanced == len(ledgers)))
    peers = [figures.get(s.name, scenario, "right_share") for s in servers.SERVERS if not s.waybill for scenario in ("burst300", "qps240")]
    best = max((share for share in peers if share), default=None)
    for name in ours:
        share = figures.get(name, "qps240", "right_share")
        if best and share is not None:
            found.append((f"{name}: right in qps240, %, beside the best peer's", f"≥ {percent(best)}", percent(share), share >= best))
    for name in ours:
        at_most(f"{name}: P95 in qps240 ÷ tuned's", 1 / 50, figures.ratio(name, "qps240", "p95_ms"))
        at_most(f"{name}: P95 in burst300 ÷ tuned's", 1 / 4, figures.ratio(name, "burst300", "p95_ms"))
    at_least("waybill-encoder: ramp held ÷ tuned's", 3.5, figures.ratio("waybill-encoder", "ramp", "held_per_s"))
    at_least("waybill: ramp held ÷ tuned's, degraded decisions allowed", 20, figures.ratio("waybill", "ramp", "held_per_s"))
    at_least("waybill: answers/s in closed100 ÷ tuned's", 15, figures.ratio("waybill", "closed100", "answers_per_s"))
    for ramp, where in ((False, "in the loads that are the same for all"), (True, "in its ramp")):
        theirs = figures.memory_mb("tuned", ramp)
        for name in ours:
            if theirs and (not ramp or figures.has(name, "ramp")):
                at_most(f"{name}: resident memory {where} ÷ tuned's", 1 / 4, figures.memory_mb(name, ramp) / theirs)
    return found


def text(results):
    figures = Figures(results)
    lines = [f"CPU: {results['cpu']}; {results['cores']} threads; Linux {results['linux']}. Peers: {results['versions']}.",
             "Server and driver share the cores, none is pinned; clients give up after 5 s, and what is dropped counts as 5 s. "
             "Medians of the runs; a load during which others used the machine was repeated, and the least disturbed counts. Prompts are all distinct (cold cache), 33 tokens on average, except with waybill-warm."
             + (f" {', '.join(results['earlier'])}: from an earlier run." if results.get("earlier") else "")
             + (f" Others worked on the machine; servers and driver had priority (nice {results['nice']})." if results.get("nice", 0) < 0 else "")
             + " Command: `make bench-incident`.", ""]
    lines += [f"- {label(figures, s)}: {s.what}" for s in servers.SERVERS if s.name in figures.runs]
    for title, rows in [("burst300: 300 requests over 10 s and 300 more in one instant", scenario_table(figures, "burst300")),
                        ("qps240: 240 requests/s for 30 s", scenario_table(figures, "qps240")),
                        ("ramp: the highest rate at which every request gets a 2xx and P95 is at most 320 ms", ramp_table(figures)),
                        ("closed100: 100 clients ask one and the same question, 10 times each", closed_table(figures)),
                        ("Memory", memory_table(figures))]:
        if rows:
            lines += ["", f"**{title}**", "", *rows]
    found = targets(figures)
    if found:
        lines += ["", "**What was asked for**", "", "| | asked | measured | met |", "| --- | ---: | ---: | --- |"]
        lines += [f"| {what} | {asked} | {measured} | {'yes' if met else '**no**'} |" for what, asked, measured, met in found]
    use = [(m.get("other_cores", 0), m.get("stolen_cores", 0)) for runs in figures.runs.values() for run in runs for m in run.values()]
    if use:
        lines += ["", f"Cores that others used during a load, at most {max(o for o, _ in use):.2f} (mean {statistics.mean(o for o, _ in use):.2f}); "
                  f"taken by the host at most {max(s for _, s in use):.2f}."]
    hits = [m.get("tier_cache_share", 0) for name, runs in figures.runs.items() if name != "waybill-warm" for run in runs
            for scenario, m in run.items() if scenario != "closed100"]
    if hits:
        lines[-1] += f" Of the distinct prompts, at most {100 * max(hits):.1f} % had been asked in an earlier load and were in the cache."
    return "\n".join(lines)
