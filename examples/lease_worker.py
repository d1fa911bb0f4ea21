#!/usr/bin/env python3
"""A worker for a queue with `workers: external`: it leases jobs from Waybill over HTTP, does them, and says what came of them.

    lease_worker.py --url http://127.0.0.1:8000 --queue gpu -- ./do-one-job

The command is run once for each job, with the job's request (JSON) on its stdin; what it prints (JSON) is the job's result. It
fails with exit code 75 (EX_TEMPFAIL) where trying again may help, with any other where it would not.

Python's standard library only. A job is leased for a short time that is renewed while the command runs: when this worker dies,
another has the job soon after. What has been lost is dropped, not finished twice: the server refuses the results of a lease that
it has given to another.
"""
import argparse
import json
import os
import signal
import subprocess
import sys
import threading
import urllib.error
import urllib.request

LEASE_LOST, TRY_AGAIN = 409, 75


class Waybill:
    def __init__(self, url, key):
        self.url = url.rstrip("/")
        self.headers = {"Content-Type": "application/json", **({"Authorization": f"Bearer {key}"} if key else {})}

    def post(self, path, body):
        """(the status, the answer)"""
        request = urllib.request.Request(self.url + path, json.dumps(body).encode(), self.headers)
        try:
            with urllib.request.urlopen(request, timeout=90) as answer:
                return answer.status, json.load(answer)
        except urllib.error.HTTPError as error:
            return error.code, json.load(error)

    def lease(self, queue, seconds, visibility):
        status, answer = self.post(f"/v1/queues/{queue}/lease", {"max": 1, "wait": seconds, "visibility": visibility})
        if status != 200:
            raise RuntimeError(f"no lease ({status}): {answer['error']['message']}")
        return answer["data"]


class Heartbeat:
    """Renews a lease while its job is done. `lost` is set when somebody else has it, or it was cancelled."""

    def __init__(self, waybill, token, visibility, on_lost):
        self.waybill, self.token, self.visibility, self.on_lost = waybill, token, visibility, on_lost
        self.ended = threading.Event()
        self.lost = False
        self.thread = threading.Thread(target=self.run)

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *error):
        self.ended.set()
        self.thread.join()

    def run(self):
        while not self.ended.wait(self.visibility / 3):
            try:
                status, _ = self.waybill.post(f"/v1/leases/{self.token}/heartbeat", {"visibility": self.visibility})
            except OSError:
                continue  # the lease is still ours for two thirds of its time
            if status == LEASE_LOST:
                self.lost = True
                self.on_lost()
                return


def work(waybill, leased, command, visibility):
    token = leased["token"]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    with Heartbeat(waybill, token, visibility, on_lost=process.kill) as heartbeat:
        out, err = process.communicate(json.dumps(leased["request"]).encode())
    if heartbeat.lost:
        return "lost"
    if process.returncode == 0:
        try:
            result = json.loads(out)
        except ValueError:
            result = out.decode(errors="replace")
        status, _ = waybill.post(f"/v1/leases/{token}/complete", {"result": result})
    else:
        error = {"code": f"exit_{process.returncode}", "message": err.decode(errors="replace")[-1000:] or "the command failed"}
        status, _ = waybill.post(f"/v1/leases/{token}/fail", {"error": error, "permanent": process.returncode != TRY_AGAIN})
    return "lost" if status == LEASE_LOST else "done" if process.returncode == 0 else "failed"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--url", default="http://127.0.0.1:8000")
    parser.add_argument("--queue", required=True)
    parser.add_argument("--visibility", type=float, default=30, help="seconds of a lease (30)")
    parser.add_argument("--wait", type=float, default=30, help="seconds that one question for jobs may wait (30)")
    parser.add_argument("--once", action="store_true", help="end when there is nothing to do")
    parser.add_argument("command", nargs="+")
    options = parser.parse_args()
    stopping = threading.Event()
    for name in (signal.SIGTERM, signal.SIGINT):
        signal.signal(name, lambda *_: stopping.set())  # what is under way is finished
    waybill = Waybill(options.url, os.environ.get("WAYBILL_KEY", ""))
    while not stopping.is_set():
        try:
            leased = waybill.lease(options.queue, options.wait, options.visibility)
        except OSError as error:
            print(f"no server: {error}; trying again", file=sys.stderr)
            stopping.wait(1)
            continue
        for each in leased:
            print(each["job"]["id"], work(waybill, each, options.command, options.visibility), flush=True)
        if options.once and not leased:
            break


if __name__ == "__main__":
    main()
