"""The mock provider of the tests (tests/mock_provider) for the demos: it does what it is told, and counts what reached it."""
import json
import subprocess
import urllib.request

from demo_screen import waybill_server

PROGRAM = waybill_server.BINARIES / "go/mock_provider"
PATIENCE_S = 120  # for a thing that takes a moment


class Mock:
    name = "a mock provider"

    def __init__(self, rule=""):
        self.port, self.standing = 0, rule
        self.start()

    def start(self):
        self.process = subprocess.Popen([str(PROGRAM), "-addr", f"127.0.0.1:{self.port}"], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True)
        self.port = int(self.process.stdout.readline().rsplit(":", 1)[1])
        self.url = f"http://127.0.0.1:{self.port}"
        self.rule(self.standing)

    def rule(self, spec, provider=""):
        self.ask(f"/__rule?provider={provider}&spec={urllib.request.quote(spec)}", b"")

    def ask(self, path, body=None):
        with urllib.request.urlopen(urllib.request.Request(self.url + path, body), timeout=PATIENCE_S) as answer:
            return json.load(answer)

    def stats(self):
        return self.ask("/__stats")

    def calls(self):
        return self.stats()["calls"]

    def kill(self):
        self.process.kill()
        self.process.wait()

    stop = kill
