#!/usr/bin/env python3
"""A tiny job server that keeps the contract (SQLite, one writer thread, group commit), to test the checker with.

--break NAME makes it break one promise on purpose; see BREAKS.
"""
import argparse
import http.client
import json
import queue
import sqlite3
import threading
import time
import urllib.parse
import uuid
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

BREAKS = {
    "ack-early": "answers 202 before the commit",
    "no-sync": "commits without fsync (WAL, synchronous=NORMAL): only --power-cut can show it",
    "no-key": "ignores the Idempotency-Key",
    "late-finish": "records results every 4 s",
    "double-lease": "hands one job to two workers now and then",
    "no-requeue": "forgets jobs that ran at the crash",
    "wrong-result": "mixes up two results now and then",
    "no-call": "now and then completes a job without calling the provider",
    "forget-finish": "acknowledges, runs, but keeps final states in memory",
    "no-doubt": "does not count the calls of which it cannot know what became",
}
SCHEMA = """
CREATE TABLE IF NOT EXISTS jobs(id TEXT PRIMARY KEY, idem TEXT UNIQUE, state TEXT NOT NULL, receives INTEGER NOT NULL DEFAULT 0,
  fence INTEGER NOT NULL DEFAULT 0, in_doubt INTEGER NOT NULL DEFAULT 0, body TEXT NOT NULL, result TEXT) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS ready ON jobs(state, id) WHERE state IN ('queued', 'running');
"""


class Store(threading.Thread):
    """The one writer: collects waiting operations, runs them in one transaction, then wakes their callers."""

    def __init__(self, a):
        super().__init__(daemon=True)
        self.a, self.inbox = a, queue.SimpleQueue()
        self.db = sqlite3.connect(a.db, check_same_thread=False, isolation_level=None)
        self.db.execute("PRAGMA journal_mode=WAL")
        self.db.execute(f"PRAGMA synchronous={'NORMAL' if a.broken == 'no-sync' else 'FULL'}")
        self.db.executescript(SCHEMA)
        if a.broken != "no-requeue":
            self.db.execute(f"UPDATE jobs SET state='queued', in_doubt=in_doubt+{0 if a.broken == 'no-doubt' else 1} WHERE state='running'")
        self.reader = sqlite3.connect(a.db, check_same_thread=False, isolation_level=None)
        self.lock = threading.Lock()
        self.memory = {}

    def run(self):
        while True:
            batch = [self.inbox.get()]
            while len(batch) < 256 and not self.inbox.empty():
                batch.append(self.inbox.get())
            if self.a.broken == "ack-early":
                time.sleep(0.02)
            self.db.execute("BEGIN IMMEDIATE")
            for op in batch:
                op["out"] = op["do"](self.db)
            self.db.execute("COMMIT")
            for op in batch:
                op["done"].set()

    def write(self, do, wait=True):
        op = {"do": do, "done": threading.Event(), "out": None}
        self.inbox.put(op)
        if wait:
            op["done"].wait()
        return op["out"]

    def read(self, sql, *args):
        with self.lock:
            return self.reader.execute(sql, args).fetchall()

    def submit(self, key, body):
        job = str(uuid.uuid4())
        if self.a.broken == "no-key":
            key = job

        def do(db):
            db.execute("INSERT INTO jobs(id, idem, state, body) VALUES(?, ?, 'queued', ?) ON CONFLICT(idem) DO NOTHING", (job, key, body))
            return db.execute("SELECT id, state FROM jobs WHERE idem=?", (key,)).fetchone()
        return self.write(do, wait=self.a.broken != "ack-early") or (job, "queued")

    def claim(self):
        def do(db):
            got = db.execute("""UPDATE jobs SET state='running', receives=receives+1, fence=fence+1 WHERE id=
                (SELECT id FROM jobs WHERE state='queued' ORDER BY id LIMIT 1) RETURNING id, fence, body""").fetchall()
            return got[0] if got else None
        return self.write(do)

    def finish(self, job, fence, state, result):
        if self.a.broken == "forget-finish":
            self.memory[job] = (state, result)
            return
        self.write(lambda db: db.execute("UPDATE jobs SET state=?, result=? WHERE id=? AND fence=? AND state='running'", (state, result, job, fence)))


class Workers:
    def __init__(self, store, a):
        self.store, self.a, self.wake, self.late, self.n, self.last = store, a, threading.Semaphore(0), [], 0, None
        for _ in range(a.workers):
            threading.Thread(target=self.work, daemon=True).start()
        if a.broken == "late-finish":
            threading.Thread(target=self.flush, daemon=True).start()

    def flush(self):
        while True:
            time.sleep(4)
            late, self.late = self.late, []
            for args in late:
                self.store.finish(*args)

    def work(self):
        url = urllib.parse.urlsplit(self.a.provider)
        link = http.client.HTTPConnection(url.hostname, url.port, timeout=30)
        while True:
            got = self.store.claim()
            if not got:
                self.wake.acquire(timeout=0.2)
                continue
            job, fence, body = got
            self.n += 1
            if self.a.broken == "no-call" and self.n % 40 == 0:
                self.store.finish(job, fence, "completed", "{}")
                continue
            if self.a.broken == "double-lease" and self.n % 40 == 0:
                threading.Thread(target=self.call, args=(http.client.HTTPConnection(url.hostname, url.port), body), daemon=True).start()
            state, result = "failed", "null"
            for _ in range(3):
                try:
                    status, answer = self.call(link, body)
                except (OSError, http.client.HTTPException):
                    link.close()
                    continue
                if status == 200:
                    state, result = "completed", answer
                    break
            if self.a.broken == "wrong-result" and self.n % 40 == 0 and self.last:
                result = self.last
            self.last = result
            if self.a.broken == "late-finish":
                self.late.append((job, fence, state, result))
            else:
                self.store.finish(job, fence, state, result)

    def call(self, link, body):
        link.request("POST", "/v1/chat/completions", json.dumps(json.loads(body)["request"]), {"Content-Type": "application/json"})
        r = link.getresponse()
        return r.status, r.read().decode()


class Api(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    wbufsize = -1  # one packet an answer
    store = workers = None

    def log_message(self, *_):
        pass

    def reply(self, status, doc):
        raw = json.dumps(doc).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(raw)))
        self.end_headers()
        self.wfile.write(raw)

    def do_POST(self):
        body = self.rfile.read(int(self.headers.get("Content-Length", 0))).decode()
        key = self.headers.get("Idempotency-Key")
        if self.path != "/v1/jobs" or not key:
            return self.reply(400, {"error": "POST /v1/jobs with an Idempotency-Key"})
        job, state = self.store.submit(key, body)
        self.workers.wake.release()
        self.reply(202, {"id": job, "status": state})

    def do_GET(self):
        url = urllib.parse.urlsplit(self.path)
        if url.path == "/healthz":
            return self.reply(200, {"ok": True})
        if url.path == "/v1/jobs":
            after = urllib.parse.parse_qs(url.query).get("after", [""])[0]
            rows = self.store.read("SELECT id, state FROM jobs WHERE id > ? ORDER BY id LIMIT 500", after)
            return self.reply(200, {"data": [{"id": i, "status": s} for i, s in rows], "next": rows[-1][0] if len(rows) == 500 else None})
        job = url.path.removeprefix("/v1/jobs/")
        rows = self.store.read("SELECT state, result, in_doubt FROM jobs WHERE id=?", job)
        if not rows:
            return self.reply(404, {"error": "no such job"})
        state, result = self.store.memory.get(job, rows[0][:2])
        self.reply(200, {"id": job, "status": state, "in_doubt": rows[0][2], "result": json.loads(result) if result else None})


class HttpServer(ThreadingHTTPServer):
    request_queue_size, daemon_threads = 512, True


if __name__ == "__main__":
    p = argparse.ArgumentParser(description=__doc__)
    p.add_argument("--port", type=int, required=True)
    p.add_argument("--db", required=True)
    p.add_argument("--provider", required=True)
    p.add_argument("--workers", type=int, default=8)
    p.add_argument("--break", dest="broken", default="", choices=["", *BREAKS])
    a = p.parse_args()
    Api.store = Store(a)
    Api.store.start()
    Api.workers = Workers(Api.store, a)
    HttpServer(("127.0.0.1", a.port), Api).serve_forever()
