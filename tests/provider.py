"""The mock provider (tests/mock_provider) for black-box tests: a provider that does what it is told, and counts what reached it."""
import json
import os
import subprocess
import time
import urllib.parse
import urllib.request
from pathlib import Path

import blackbox

BUILD = Path(os.environ.get("WAYBILL_BINARY_DIR", blackbox.SOURCE / "build/release"))
PROGRAM = BUILD / "go/mock_provider"


def words(count=16):
    """The text of an answer of so many tokens."""
    return "".join(f"w{i} " for i in range(count))


class MockProvider:
    """`port` stays the same when it is stopped and started again. record: how many requests it keeps for `requests`."""

    def __init__(self, case, record=0):
        self.case = case
        self.record = record
        self.port = 0
        self.process = None
        case.addCleanup(self.stop)
        self.start()

    @property
    def url(self):
        return f"http://127.0.0.1:{self.port}"

    def start(self):
        if not PROGRAM.exists():
            self.case.fail(f"there is no {PROGRAM}; `ninja -C {BUILD} mock_provider` builds it")
        self.process = subprocess.Popen([str(PROGRAM), "-addr", f"127.0.0.1:{self.port}", "-record", str(self.record)],
                                        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True)
        line = self.process.stdout.readline()
        if "mockprovider on" not in line:
            self.case.fail(f"the mock provider did not start: {line}")
        self.port = int(line.rsplit(":", 1)[1])

    def stop(self):
        """Ends it, with all connections; connecting is refused from now on."""
        if self.process and self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        if self.process:
            self.process.stdout.close()

    def _ask(self, path, body=None):
        with urllib.request.urlopen(urllib.request.Request(self.url + path, body), timeout=60) as answer:
            return json.load(answer)

    def rule(self, spec, provider=""):
        """A standing fault (tests/mock_provider/README.md); an empty one removes it."""
        self._ask("/__rule?" + urllib.parse.urlencode({"provider": provider, "spec": spec}), b"")

    def reset(self):
        """Forgets all rules and counts."""
        self._ask("/__reset", b"")

    def stats(self):
        return self._ask("/__stats")

    def calls(self, provider=""):
        """started = finished + failed + cancelled + aborted + in_flight, and billed, tokens, max_in_flight."""
        stats = self.stats()
        none = dict.fromkeys(("started", "finished", "failed", "cancelled", "aborted", "in_flight", "billed", "tokens", "max_in_flight"), 0)
        return stats["by_provider"].get(provider, none) if provider else stats["calls"]

    def requests(self):
        """The last requests: each with `line`, `head` and `body` as they came."""
        return self._ask("/__requests") or []

    def wait_for(self, condition, provider="", patience=60):
        """The counts, once `condition` holds for them."""
        deadline = time.monotonic() + patience
        while not condition(calls := self.calls(provider)):
            self.case.assertLess(time.monotonic(), deadline, f"the provider never saw it: {calls}")
            time.sleep(0.01)
        return calls

    def settled(self, provider=""):
        """The counts once no call is under way."""
        return self.wait_for(lambda calls: calls["in_flight"] == 0, provider)
