"""Real services for black-box tests: tests/services/NAME.sh, installed or built on first use."""
import os
import socket
import subprocess
import time

import blackbox

SERVICES = blackbox.SOURCE / "tests/services"


def free_ports(n=1):
    """The first of n ports in a row that are free now."""
    while True:
        with socket.socket() as s:
            s.bind(("127.0.0.1", 0))
            port = s.getsockname()[1]
        try:
            for i in range(n):
                with socket.socket() as s:
                    s.bind(("127.0.0.1", port + i))
            return port
        except OSError:
            continue


def until(condition, what, seconds=120):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        found = condition()
        if found:
            return found
        time.sleep(0.1)
    raise AssertionError(f"waited in vain for {what}")


class Case(blackbox.Case):
    def start(self, name, port, **environment):
        """Starts tests/services/NAME.sh and waits until it is ready."""
        process = subprocess.Popen(["bash", str(SERVICES / f"{name}.sh"), str(self.folder / name), str(port)], stdout=subprocess.PIPE,
                                   stderr=subprocess.PIPE, text=True, env=dict(os.environ, **environment))
        self.addCleanup(process.communicate)
        self.addCleanup(process.terminate)
        line = process.stdout.readline()
        if not line.startswith("READY"):
            process.terminate()
            self.fail(f"{name} did not start: {process.stderr.read()[-2000:]}")
