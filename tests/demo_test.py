#!/usr/bin/env python3
"""`tools/demo` from start to end: the table, the ledger, and nothing left running."""
import os
import re
import socket
import subprocess
import sys
import urllib.error
import urllib.request
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
import blackbox


class Demo(blackbox.Case):
    def test_the_burst_is_replayed_and_nothing_is_lost(self):
        self.need_model()
        with socket.create_server(("127.0.0.1", 0)) as busy:  # the demo takes the next port that is free
            taken = busy.getsockname()[1]
            environment = dict(os.environ, PORT=str(taken), DEMO_ONCE="1")
            done = subprocess.run([blackbox.SOURCE / "tools/demo"], capture_output=True, text=True, timeout=600, env=environment)
        self.assertEqual(done.returncode, 0, done.stderr)
        encoder, public = map(float, re.search(r"^ +encoder +([\d.]+) +([\d.]+) .*[µm]s$", done.stdout, re.MULTILINE).groups())
        static, _ = map(float, re.search(r"^ +static +([\d.]+) +([\d.]+) .*[µm]s$", done.stdout, re.MULTILINE).groups())
        self.assertTrue(85 < encoder <= 100 and 88 < public <= 100 and 60 < static < encoder, done.stdout)
        self.assertRegex(done.stdout, r"blocking: the incident +600 +356 +· +244 ")
        sent, answered, _, dropped = re.search(r"waybill serve +(\d+) +(\d+) +(\d+) +(\d+) ", done.stdout).groups()
        self.assertEqual((sent, answered, dropped), ("600", "600", "0"))
        self.assertIn("balanced", done.stdout)
        self.assertNotIn("NOT BALANCED", done.stdout)
        self.assertNotIn("\033", done.stdout)
        url = re.search(r"replaying it against (http://127.0.0.1:(\d+))", done.stdout)
        self.assertGreater(int(url.group(2)), taken)
        with self.assertRaises(urllib.error.URLError):
            urllib.request.urlopen(url.group(1) + "/health", timeout=1)


if __name__ == "__main__":
    blackbox.main()
