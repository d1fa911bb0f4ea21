#!/usr/bin/env python3
"""2,000 streams at once through the gateway, each a minute long: every token of each arrives, and nothing is held afterwards."""
import json
import subprocess
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
import blackbox
from provider import BUILD, MockProvider
from served import Server

STREAMS, TOKENS, PAUSE_MS = 2000, 60, 1000
CONFIG = """\
encoder: {model: "{model}"}
server: {io_threads: 2}
admission: {deadline: 10m, max_deadline: 10m}
providers:
  - {name: a, kind: openai, base_url: "{a}/v1", timeouts: {total: 10m}}
models:
  - {name: mock, targets: [{provider: a}]}
"""


class Streams(blackbox.Case):
    def test_none_is_lost(self):
        mock = MockProvider(self)
        mock.rule(f"stamp=1;tokens={TOKENS};itl={PAUSE_MS}")
        server = Server(self, self.write_config(CONFIG.replace("{a}", mock.url)))
        body = {"model": "mock", "stream": True, "messages": [{"role": "user", "content": "Say hello."}]}
        done = subprocess.run([str(BUILD / "go/gateway_load"), "-mode", "stream", "-url", f"http://127.0.0.1:{server.port}/v1/chat/completions",
                               "-body", json.dumps(body), "-H", "content-type: application/json", "-conns", str(STREAMS), "-rounds", "1",
                               "-frames", str(TOKENS), "-spread", "5s", "-limit", "10m"], capture_output=True, text=True, timeout=900)
        self.assertEqual(done.returncode, 0, done.stderr)
        said = json.loads(done.stdout)
        self.assertEqual((said["streams"], said["broken"], said["faults"]), (STREAMS, 0, {}))
        calls = mock.settled()
        self.assertEqual((calls["finished"], calls["max_in_flight"], calls["tokens"]), (STREAMS, STREAMS, STREAMS * TOKENS))
        ledger = server.settled_ledger()
        self.assertEqual((ledger["accepted"], ledger["completed"]), (STREAMS, STREAMS))
        for target in server.get("/v1/targets").json["data"]:
            self.assertEqual(target["in_flight"], 0, target)


if __name__ == "__main__":
    blackbox.main()
