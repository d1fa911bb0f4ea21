#!/usr/bin/env python3
"""Kills an HTTP job server at random instants and checks that every promise held.

    crash_check.py waybill [--program build/release/waybill] [--rounds 20] [--seed N] [--power-cut 0.5] ...
    crash_check.py reference [--break NAME] ...

Exit status: 0 all promises held, 1 a promise was broken, 2 the run itself failed. README.md says what each check means.
"""
import argparse
import asyncio
import collections
import json
import os
import random
import shutil
import sys
import tempfile
import zlib
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
import contracts
import powercut
from under_test import Server, fill
from wire import Client, Provider, now


def dig(doc, path):
    for part in path.split("."):
        doc = doc[int(part)] if isinstance(doc, list) else doc.get(part) if isinstance(doc, dict) else None
        if doc is None:
            return None
    return doc


def padding(marker):
    """Every fifth job, and its answer, is larger than what a store keeps in its rows."""
    return "x" * 6000 if zlib.crc32(marker.encode()) % 5 == 0 else ""


class Run:
    def __init__(self, contract, a):
        self.c, self.a = contract, a
        # the kill plan has its own stream: the clients' draws depend on timing
        self.rng, self.plan, self.dice = random.Random(a.seed), random.Random(a.seed + 2), random.Random(a.seed + 3)
        self.keys = {}  # key -> id once acknowledged, else None
        self.open = set()  # those that are not
        self.owner = {}  # id -> key
        self.waiting = collections.deque()  # keys whose answer never came
        self.kills = []
        self.terminal = {}  # id -> (state, first seen at)
        self.doubts = {}  # id -> calls of which nobody knows what became, as the server counts them
        self.broken = collections.defaultdict(list)
        self.statuses = collections.Counter()
        self.resent = self.cuts = 0

    def fail(self, check, what):
        self.broken[check].append(what)

    # -- clients
    def new_key(self):
        key = f"job-{self.a.seed:x}-{len(self.keys)}"
        self.keys[key] = None
        self.open.add(key)
        return key

    def acknowledged(self, key, doc):
        job = dig(doc, self.c["submit"].get("id", "id"))
        if not job:
            return self.fail("no id", f"{key}: accepted without an id: {str(doc)[:80]}")
        before = self.keys[key]
        if before and before != job:
            self.fail("split key", f"{key} is both {before} and {job}")
        if self.owner.setdefault(job, key) != key:
            self.fail("shared id", f"{job} answers {key} and {self.owner[job]}")
        self.keys[key] = job
        self.open.discard(key)

    async def submit(self, client, key):
        """True once the key is acknowledged; False if the server said it is busy. OSError: unknown."""
        s = self.c["submit"]
        headers = {k: fill(v, key=key) for k, v in s.get("headers", {}).items()}
        status, _, body = await client.call(s.get("method", "POST"), s["path"], headers, fill(s["body"], marker=key, padding=padding(key)))
        self.statuses[status] += 1
        if status in s.get("accepted", [202]):
            try:
                self.acknowledged(key, json.loads(body))
            except ValueError:
                self.fail("no id", f"{key}: the answer is not JSON: {body[:80]!r}")
            return True
        if status not in s.get("busy", [429, 503]):
            self.fail("refused", f"{key}: status {status}: {body[:120]!r}")
        return False

    async def client(self, server, until):
        link = Client(server.port, self.a.timeout)
        while now() < until:
            acked = self.rng.random() < self.a.retry_rate and self.owner
            if acked:  # an impatient client sends an acknowledged job once more
                key, self.resent = self.rng.choice(list(self.owner.values())), self.resent + 1
            elif self.waiting and self.rng.random() < 0.5:
                key = self.waiting.popleft()
            elif len(self.keys) < self.a.max_jobs:
                key = self.new_key()
            else:
                key = None
            try:
                if key is None:
                    await asyncio.sleep(0.05)
                elif not await self.submit(link, key):
                    self.waiting.append(key)
                    await asyncio.sleep(0.02)
            except OSError:
                if not self.keys[key]:
                    self.waiting.append(key)
                await asyncio.sleep(0.01)
            await asyncio.sleep(self.rng.expovariate(1 / self.a.think) if self.a.think else 0)
        link.close()

    # -- status
    async def look(self, client, job):
        """Reads one job, compares with all that was seen of it before, returns its state."""
        s = self.c["status"]
        status, _, body = await client.call("GET", fill(s["path"], id=job))
        if status == 404:
            self.fail("lost", f"{self.owner[job]} = {job} was acknowledged and is unknown now")
            return "lost"
        if status != 200:
            return None
        doc = json.loads(body)
        state = dig(doc, s.get("field", "status"))
        self.doubts[job] = dig(doc, s["in_doubt"])
        before = self.terminal.get(job)
        if before and before[0] != state:
            self.fail("flip", f"{job} was {before[0]} and is {state} now")
        if state in s["terminal"] and not before:
            self.terminal[job] = (state, now())
            if s.get("echo") and state in s.get("success", ["completed"]) and f"echo:{self.owner[job]} {padding(self.owner[job])}\"".encode() not in body:
                self.fail("wrong result", f"{job} of {self.owner[job]} answers {body[:160]!r}")
        return state

    async def watcher(self, server, until):
        link = Client(server.port, self.a.timeout)
        while now() < until:
            try:
                if self.owner:
                    await self.look(link, self.rng.choice(list(self.owner)))
            except OSError:
                pass
            await asyncio.sleep(0.01)
        link.close()

    async def drain(self, server):
        links = [Client(server.port, self.a.timeout) for _ in range(8)]
        end = now() + self.a.drain
        todo = collections.deque(sorted(self.open))

        async def resubmit(link):
            while todo and now() < end:
                key = todo.popleft()
                try:
                    if not await self.submit(link, key):
                        todo.append(key)
                        await asyncio.sleep(0.05)
                except OSError:
                    todo.append(key)
                    await asyncio.sleep(0.05)
        await asyncio.gather(*(resubmit(l) for l in links))
        for key in todo:
            self.fail("never accepted", key)
        jobs = collections.deque(j for j in self.owner if j not in self.terminal)
        lost = set()

        async def poll(link):
            while jobs and now() < end:
                job = jobs.popleft()
                try:
                    state = await self.look(link, job)
                except OSError:
                    state = None
                if state == "lost":
                    lost.add(job)
                elif state not in self.c["status"]["terminal"]:
                    jobs.append(job)
                    await asyncio.sleep(0.02)
        await asyncio.gather(*(poll(l) for l in links))
        for job in jobs:
            self.fail("stuck", f"{self.owner[job]} = {job} has no terminal state after {self.a.drain} s")
        return lost

    async def look_at_all(self, server, lost):
        jobs = [job for job in self.terminal if job not in lost]

        async def some(link, mine):
            for job in mine:
                await self.look(link, job)
        await asyncio.gather(*(some(Client(server.port, self.a.timeout), jobs[k::8]) for k in range(8)))

    async def listed(self, server):
        s = self.c.get("list")
        if not s:
            return
        link, path, seen = Client(server.port, 10), s["path"], 0
        for _ in range(10_000):
            status, _, body = await link.call("GET", path)
            if status != 200:
                return self.fail("list", f"{path}: status {status}")
            doc = json.loads(body)
            for item in dig(doc, s.get("items", "data")) or []:
                seen += 1
                job = dig(item, s.get("id", "id"))
                if job not in self.owner:
                    self.fail("phantom job", f"{job} is listed, but no client was given it")
            after = dig(doc, s["next"]) if s.get("next") else None
            if not after:
                return
            path = fill(s["next_path"], after=after)

    # -- the rounds
    async def round(self, server, provider):
        server.start()
        if self.plan.random() < self.a.early_kill:  # a crash during recovery
            await asyncio.sleep(self.plan.uniform(0, 0.3))
        else:
            await server.ready(self.a.ready)
            up = self.plan.uniform(0.02, self.a.up)
            until = now() + up
            tasks = [asyncio.create_task(self.client(server, until + 5)) for _ in range(self.a.clients)]
            tasks.append(asyncio.create_task(self.watcher(server, until + 5)))
            await asyncio.sleep(up)
            await self.crash(server, provider)
            for t in tasks:
                t.cancel()
            self.waiting = collections.deque(sorted(self.open))  # whatever was in flight is unknown to its client
            for e in await asyncio.gather(*tasks, return_exceptions=True):
                if isinstance(e, Exception) and not isinstance(e, OSError):
                    raise e
            return
        await self.crash(server, provider)

    async def crash(self, server, provider):
        self.kills.append(now())
        server.kill()
        if server.cut and self.plan.random() < self.a.power_cut:
            self.cuts += 1
            server.cut.apply(self.dice)
        await asyncio.sleep(0.05)  # lets the provider take in what the dead server had sent
        provider.life += 1

    def judge(self, provider, lost):
        doubt, repeated, billed = 0, collections.Counter(), 0
        for key, job in self.keys.items():
            calls = sorted(provider.calls.get(key, []))
            billed += sum(c.billed for c in calls)
            if job in lost:
                continue
            state, seen = self.terminal.get(job, (None, None))
            if state in self.c["status"].get("success", ["completed"]) and not any(c.billed for c in calls):
                self.fail("not executed", f"{key} = {job} is {state} but the provider never answered a call for it")
            for a, b in zip(calls, calls[1:]):
                if a.end and not a.billed:
                    continue  # the provider failed: a retry is right
                repeated[key] += 1
                died = self.kills[a.life] if a.life < b.life else None
                if died is None:
                    self.fail("billed twice", f"{key}: called again {1000 * (b.start - a.start):.0f} ms later, no crash in between")
                elif a.end and died - a.end > self.a.doubt / 1000:
                    self.fail("billed twice", f"{key}: answered {1000 * (died - a.end):.0f} ms before the crash, called again after it")
                elif seen and seen < b.start:
                    self.fail("billed twice", f"{key}: called again although {job} had been {state}")
                else:
                    doubt += 1
            recorded = self.doubts.get(job)
            if repeated[key] > (recorded or 0):
                self.fail("unrecorded doubt", f"{key} = {job}: {repeated[key]} calls again across a crash, the server counts {recorded} in doubt")
        for key in provider.calls:
            if key not in self.keys:
                self.fail("phantom call", f"the provider was called for {key}")
        return doubt, repeated, billed


async def main(contract, a):
    work = a.work or tempfile.mkdtemp(prefix="crash_check.")
    os.makedirs(work, exist_ok=True)
    run = Run(contract, a)
    provider = Provider(random.Random(a.seed + 1), a.delay, a.provider_fail, padding)
    await provider.start()
    server = Server(contract, work, provider.port, powercut.Cut(work, a.ignore_flushes) if a.power_cut else None)
    t0, lost = now(), set()
    try:
        async with asyncio.timeout(a.limit):
            for n in range(a.rounds):
                await run.round(server, provider)
                if a.verbose and (n + 1) % 10 == 0:
                    print(f"round {n + 1}: {len(run.owner)} acknowledged, {len(run.waiting)} unknown, {len(run.terminal)} seen finished", flush=True)
            server.start()
            await server.ready(a.ready)
            lost = await run.drain(server)
            await run.listed(server)
            await run.crash(server, provider)  # finished jobs must stay finished
            server.start()
            await server.ready(a.ready)
            await run.look_at_all(server, lost)
            await asyncio.sleep(0.3)  # would show calls that a needless recovery makes
    except RuntimeError as e:
        if not run.kills:
            raise
        run.fail("no recovery", f"after {len(run.kills)} crashes {e}")
    finally:
        server.kill()
    doubt, repeated, billed = run.judge(provider, lost)
    states = collections.Counter(s for s, _ in run.terminal.values())
    print(f"{contract['name']}: seed {a.seed}, {a.rounds} rounds, {len(run.kills)} kills, {run.cuts} of them with the power, {now() - t0:.1f} s")
    print(f"  {len(run.keys)} keys, {len(run.owner)} acknowledged, {run.resent} acknowledged jobs sent again, answers {dict(run.statuses)}")
    print(f"  final states {dict(states)}; {billed} billed calls for {len(run.keys)} keys")
    print(f"  called again across a crash (in doubt, cannot be told apart): {doubt}; most for one key: {max(repeated.values(), default=0) + 1}; "
          f"the server counts {sum(filter(None, run.doubts.values()))} in doubt")
    if provider.unknown:
        run.fail("phantom call", f"{len(provider.unknown)} calls without a marker, first {provider.unknown[0]!r}")
    if len(run.owner) < a.rounds and not run.broken:
        print("  the run proves nothing: fewer acknowledged jobs than rounds")
        return 2
    for check, cases in sorted(run.broken.items()):
        print(f"  BROKEN {check}: {len(set(cases))}, e.g. {cases[0]}")
    print("FAILED" if run.broken else "held: no acknowledged job lost, none stuck, none changed, none billed twice without a crash")
    if not run.broken and not a.work:
        shutil.rmtree(work)
    else:
        print(f"  data and server log: {work}")
    return 1 if run.broken else 0


def arguments():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("server", choices=["waybill", "reference"])
    p.add_argument("--program", default="build/release/waybill")
    p.add_argument("--break", dest="broken", default="", help="what the reference server does wrong")
    p.add_argument("--rounds", type=int, default=20)
    p.add_argument("--seed", type=int, default=int.from_bytes(os.urandom(4), "big"))
    p.add_argument("--clients", type=int, default=32)
    p.add_argument("--up", type=float, default=1.5, help="most seconds a server lives before its kill")
    p.add_argument("--early-kill", type=float, default=0.15, help="share of rounds killed within 0.3 s of their start, so during recovery")
    p.add_argument("--think", type=float, default=0.02, help="mean seconds between one client's requests")
    p.add_argument("--retry-rate", type=float, default=0.05, help="share of requests that repeat an acknowledged key")
    p.add_argument("--max-jobs", type=int, default=100_000)
    p.add_argument("--delay", type=float, default=20, help="mean ms until the provider answers")
    p.add_argument("--provider-fail", type=float, default=0.0, help="share of provider calls answered 503")
    p.add_argument("--doubt", type=float, default=1000, help="ms the server has to record an answer before a repeat counts as billed twice")
    p.add_argument("--ready", type=float, default=20)
    p.add_argument("--drain", type=float, default=60)
    p.add_argument("--timeout", type=float, default=5, help="seconds a client waits for an answer")
    p.add_argument("--limit", type=float, default=300, help="seconds for the whole run")
    p.add_argument("--power-cut", type=float, default=0.0, help="share of kills that also drop what was written but not fsynced (LD_PRELOAD, needs cc)")
    p.add_argument("--ignore-flushes", action="store_true", help="with --power-cut: the program's flushes do nothing, which has to be found")
    p.add_argument("--work", help="folder to keep the data in")
    p.add_argument("-v", "--verbose", action="store_true")
    return p.parse_args()


if __name__ == "__main__":
    args = arguments()
    print("seed", args.seed, flush=True)
    try:
        sys.exit(asyncio.run(main(contracts.reference(args.broken) if args.server == "reference" else contracts.waybill(args.program), args)))
    except Exception as e:  # whatever it is: no promise was seen broken
        print("the run failed:", e or type(e).__name__)
        sys.exit(2)
