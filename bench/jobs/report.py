"""The tables of `make bench-jobs`: who takes how many jobs, and what was asked of Waybill."""
BASELINE = "redis-stream"
CLIENTS = (1, 16, 64, 256)
NAMES = {"redis-stream": "Redis stream, its own protocol", "redis-list": "Redis list, its own protocol", "go-redis": "HTTP: Go + Redis",
         "go-pg": "HTTP: Go + PostgreSQL", "go-pg-batch": "HTTP: Go + PostgreSQL, group commit", "webdis": "HTTP: webdis + Redis, no key",
         "pg": "PostgreSQL, SKIP LOCKED", "pg-batch": "PostgreSQL, SKIP LOCKED, in groups", "river": "River (PostgreSQL)", "pg-boss": "pg-boss (PostgreSQL)",
         "bullmq": "BullMQ (Redis)", "rabbitmq": "RabbitMQ, quorum queue", "redis-stream-again": "Redis stream, again at the end", "waybill": "**Waybill**, HTTP"}


def cells(part, peer, kind, conc=None):
    return [cell for cell in part["cells"] if cell["peer"] == peer and cell["kind"] == kind and conc in (None, cell["conc"]) and not cell.get("error")]


def best(part, peer, kind, conc=None):
    """The quickest round; None where there is none."""
    return max(cells(part, peer, kind, conc), key=lambda cell: cell["per_s"], default=None)


def calmest(part, peer, kind):
    return min(cells(part, peer, kind), key=lambda cell: cell["p99_ms"], default=None)


def rate(cell):
    return f"{cell['per_s']:,.0f}" if cell else "·"


def row(*columns):
    return f"| {' | '.join(map(str, columns))} |"


def submit_table(part):
    yield row("jobs acknowledged/s", *(f"{n} client{'s' * (n > 1)}" for n in CLIENTS), "P50, P99 at 64, ms", "CPU at 64, µs a job", "flushes a job at 1, at 64",
              "open loop at half of its best, P99 ms")
    yield row("---", *["---:"] * 8)
    for peer in part["peers"]:
        one, many, calm = best(part, peer, "enqueue", 1), best(part, peer, "enqueue", 64), calmest(part, peer, "open")
        yield row(NAMES[peer], *(rate(best(part, peer, "enqueue", n)) for n in CLIENTS), f"{many['p50_ms']:.1f}, {many['p99_ms']:.1f}" if many else "·",
                  f"{many['server_us']:.0f}" if many else "·", f"{one['flushes']:.2f}, {many['flushes']:.3f}" if one and many else "·",
                  f"{calm['p99_ms']:.1f} at {calm['conc']:,}/s" if calm else "·")


def brokers_table(part):
    yield row("from taking a job to its acknowledgement", "jobs taken/s, 64 producers", "through, 16 consumers, jobs/s", "P50, P99 ms", "CPU, µs a job")
    yield row("---", *["---:"] * 4)
    for peer in part["peers"]:
        through = best(part, peer, "e2e")
        yield row(NAMES[peer], rate(best(part, peer, "enqueue")), rate(through), f"{through['p50_ms']:.1f}, {through['p99_ms']:.1f}" if through else "·",
                  f"{through['server_us']:.0f}" if through else "·")


def line(what, value, good):
    return row(what, value, "met" if good else "**not met**")


def asked_of_submit(part):
    keyed = [peer for peer in part["keyed"] if peer != "waybill"]
    for clients in (64, 256):
        ours, theirs = best(part, "waybill", "enqueue", clients), [found for peer in keyed if (found := best(part, peer, "enqueue", clients))]
        if ours and theirs:
            other = max(theirs, key=lambda cell: cell["per_s"])
            plain = best(part, "webdis", "enqueue", clients)
            beside = f"; {ours['per_s'] / plain['per_s']:.2f} × webdis, which checks no key" if plain else ""
            yield line(f"202s/s at {clients} clients at least 1.5 × the best that is reached over HTTP and checks the key",
                       f"{ours['per_s'] / other['per_s']:.2f} × {NAMES[other['peer']].removeprefix('HTTP: ')}{beside}", ours["per_s"] >= 1.5 * other["per_s"])
    ours = best(part, "waybill", "enqueue", 1)
    if ours and part["syncs_per_s"]:
        syncs = max(part["syncs_per_s"])
        yield line("at one client at least 0.8 × half of the disk's syncs/s", f"{ours['per_s']:,.0f}/s, the disk {syncs:,.0f}/s: {ours['per_s'] / (syncs / 2):.2f} ×",
                   ours["per_s"] >= 0.4 * syncs)
        yield line("flushed before it is acknowledged: a flush a job at one client", f"{ours['flushes']:.2f}", ours["flushes"] > 0.99)
    if calm := calmest(part, "waybill", "open"):
        yield line("P99 at half of the highest rate under 10 ms", f"{calm['p99_ms']:.1f} ms at {calm['conc']:,}/s, {calm['errors']} errors", calm["p99_ms"] < 10 and calm["errors"] == 0)


def asked_of_depth(part):
    for kind, what in (("submit", "submits, 64 clients"), ("claim", "claims, 16 workers, 16 jobs a call")):
        full, empty = best(part, "full", kind), best(part, "empty", kind)
        if full and empty:
            yield line(f"{part['jobs']:,} jobs queued: {what}, as with none within 20 %", f"{full['per_s'] / empty['per_s']:.2f} × ({rate(full)}/s, {rate(empty)}/s)",
                       full["per_s"] >= 0.8 * empty["per_s"])


def asked(parts):
    if "submit" in parts:
        yield from asked_of_submit(parts["submit"])
    if idle := parts.get("idle"):
        yield line("idle: from submitting until the provider's call arrives, P50 under 3 ms, P99 under 10 ms", f"{idle['p50_ms']:.2f} ms, {idle['p99_ms']:.2f} ms",
                   idle["p50_ms"] < 3 and idle["p99_ms"] < 10)
    if "life" in parts and (lives := [cell for cell in parts["life"] if not cell.get("error")]):
        most = max(lives, key=lambda cell: cell["per_s"])
        yield line("whole lives (submit, lease, call, finish, poll) at least 5,000/s, all on these cores", f"{rate(most)}/s at {most['conc']} clients; {most['server_us']:.0f} µs of CPU a job",
                   most["per_s"] >= 5000)
    if "depth" in parts:
        yield from asked_of_depth(parts["depth"])
    for waiting in parts.get("waiting", []):
        cell = waiting["cell"]
        yield line(f"{waiting['waiting']:,} {waiting['how']}: memory under 200 MB", f"{waiting['memory_mb']:.0f} MB", waiting["memory_mb"] < 200 and not cell["errors"])
        yield line("the same, 500 jobs ending a second: from the end of a job until its client has it, P99 under 50 ms",
                   f"{cell['p99_ms']:.1f} ms, P50 {cell['p50_ms']:.1f} ms; {cell['ops']:,} told at {cell['per_s']:,.0f}/s{'; ' + cell['error'] if cell.get('error') else ''}",
                   cell["p99_ms"] < 50 and cell["ops"] > 0 and not cell.get("error"))
    if restart := parts.get("restart"):
        worst = max(restart["ready_ms"] + restart["killed_ms"])
        yield line(f"restart with {restart['jobs']:,} jobs queued: ready within 1 s", f"{worst:.0f} ms at worst, {max(restart['killed_ms']):.0f} ms after a kill; {min(restart['empty_ms']):.0f} ms without jobs",
                   worst < 1000)
        yield line("the same: memory under 200 MB", f"{restart['memory_mb']:.0f} MB", restart["memory_mb"] < 200)


def lines(figures):
    parts = figures["parts"]
    told = ", ".join(f"{name} {number}" for name, number in figures["versions"].items())
    foreign = max((cell["foreign"] for part in parts.values() if isinstance(part, dict) for cell in part.get("cells", [])), default=0)
    out = [f"CPU: {figures['cpu']}, {figures['cores']} cores shared by servers, provider and load; the store on the disk of the build tree. Jobs of 512 bytes, "
           f"cells of {figures['secs']:g} s in which all take turns, the best of the rounds. Other programs used {foreign:.2f} cores at most. {told}. Command: `make bench-jobs`."]
    if "submit" in parts:
        out += ["", *submit_table(parts["submit"])]
    if "brokers" in parts:
        out += ["", *brokers_table(parts["brokers"])]
    return [*out, "", row("asked", "measured", ""), row("---", "---", "---"), *asked(parts)]
