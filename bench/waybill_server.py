"""A Waybill server for a measurement: started on a free port, asked for its ledger, stopped."""
import contextlib
import fcntl
import json
import os
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
BINARIES = Path(os.environ.get("WAYBILL_BINARY_DIR", ROOT / "build/release"))
PROGRAM = Path(os.environ.get("WAYBILL_PROGRAM", BINARIES / "waybill"))
BURST = BINARIES / "bench/incident/burst"


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


@contextlib.contextmanager
def machine_alone():
    """On a machine that others measure on too, BENCH_LOCK names a file that is locked meanwhile."""
    name = os.environ.get("BENCH_LOCK")
    if not name:
        yield
        return
    with open(name, "a") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


class Failure(Exception):
    """Told to the user in one sentence."""


class Process:
    """A server that is measured: `command` is started and awaited until /health answers."""

    def __init__(self, name, command, port, log, env=None, cwd=ROOT, patience_s=300):
        self.name, self.port, self.log = name, port, Path(log)
        self.url = f"http://127.0.0.1:{port}"
        with self.log.open("w") as out:
            self.process = subprocess.Popen(list(map(str, command)), cwd=cwd, env={**os.environ, **(env or {})},
                                            stdout=out, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL)
        deadline = time.monotonic() + patience_s
        while self.get("/health", timeout_s=1) is None:
            if self.process.poll() is not None or time.monotonic() > deadline:
                self.stop()
                last = self.log.read_text(errors="replace").strip().splitlines()[-1:]
                raise Failure(f"{name} does not serve: {last[0] if last else f'no answer from /health in {patience_s} s'}")
            time.sleep(0.1)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.stop()

    @property
    def pid(self):
        return self.process.pid

    def get(self, path, timeout_s=5):
        """The body of a 200, else None."""
        try:
            with urllib.request.urlopen(self.url + path, timeout=timeout_s) as answer:
                return answer.read().decode()
        except (OSError, urllib.error.URLError):
            return None

    def ledger(self):
        """The conservation ledger as /v1/ledger gives it, `balanced` checked by our own sum; None where there is none."""
        text = self.get("/v1/ledger")
        if text is None:
            return None
        ledger = json.loads(text)
        ended = sum(ledger[outcome] for outcome in ("completed", "failed", "rejected", "cancelled", "expired"))
        return {**ledger, "balanced": ledger["accepted"] == ended + ledger["in_flight"]}

    def resident_mb(self):
        status = Path(f"/proc/{self.pid}/status").read_text()
        return int(status.split("VmRSS:")[1].split()[0]) / 1024

    def descriptors(self):
        return len(os.listdir(f"/proc/{self.pid}/fd"))

    def stop(self):
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
            try:
                self.process.wait(60)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()


def waybill(config, log, name="waybill", prefix=(), port=None):
    """`waybill serve` with this configuration. prefix: a command that starts it, such as taskset."""
    port = port or free_port()
    return Process(name, [*prefix, PROGRAM, "serve", "--config", config, "--listen", f"127.0.0.1:{port}"], port, log)


def publish(name, lines, document, figures=None, json_file=None):
    """The end of a measurement: its table goes into docs/performance.md, or is printed where it is only a trial; its figures go to json_file."""
    text = "\n".join(lines)
    if json_file:
        json_file.write_text(json.dumps(figures, indent=1))
    if document:
        subprocess.run([sys.executable, ROOT / "bench/insert_table.py", ROOT / "docs/performance.md", name], input=text, text=True, check=True)
    else:
        print(text)


def run(name, measure):
    """Runs the program `measure`; a Failure ends it with a sentence."""
    try:
        measure()
    except Failure as failure:
        sys.exit(f"{name}: {failure}")


def cpu_name():
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.split(":", 1)[1].strip()
    return "unknown"
