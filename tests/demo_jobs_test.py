#!/usr/bin/env python3
"""`tools/demo-jobs` from start to end: a thousand jobs, two kills, books that agree, a dead letter that is redriven; nothing left running."""
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
    def test_a_thousand_jobs_two_kills_and_a_poison_job(self):
        self.need_model()
        with socket.create_server(("127.0.0.1", 0)) as busy:  # the demo takes the next port that is free
            taken = busy.getsockname()[1]
            done = subprocess.run([blackbox.SOURCE / "tools/demo-jobs"], capture_output=True, text=True, timeout=600, check=False,
                                  env=dict(os.environ, PORT=str(taken), DEMO_ONCE="1"))
        out = done.stdout
        self.assertEqual(done.returncode, 0, out + done.stderr)
        self.assertNotIn("\033", out)

        self.assertRegex(out, r"1,000 jobs accepted in [\d.]+ s")
        kills = re.findall(r"✗ kill -9 with (\d+) calls under way: ready again after [\d,]+ ms", out)
        self.assertEqual(len(kills), 2, out)
        progress = [int(count.replace(",", "")) for count in re.findall(r"([\d,]+) of 1,000 done", out)]
        self.assertEqual(progress, sorted(progress))
        self.assertEqual(progress[-1], 1000)

        def told(what):
            found = re.search(rf"^  {re.escape(what)} +([\d,]+)  ✓$", out, re.MULTILINE)
            self.assertIsNotNone(found, f"{what}: {out}")
            return int(found.group(1).replace(",", ""))

        self.assertEqual(told("jobs that were accepted (202)"), 1000)
        self.assertEqual(told("completed, each with its answer"), 999)
        self.assertEqual(told("dead letters"), 1)
        self.assertGreaterEqual(told("answers that the provider gave for them"), 999)
        self.assertLessEqual(told("calls that a kill cut, made again"), told("receives that the jobs themselves count as in doubt"))
        self.assertLessEqual(told("most calls at the provider at a time"), 8)
        self.assertIn("every job was done exactly once", out)
        self.assertIn("all 1,000 sent once more with the same keys: 1,000 replays, 0 new jobs", out)

        poison = out[out.index("dead letter  "):]
        self.assertEqual(len(re.findall(r"^    receive \d", poison, re.MULTILINE)), 3, poison)
        self.assertRegex(poison, r"completed: w0 w1")
        self.assertRegex(out, r"ledger   [\d,]+ accepted = .* balanced\n")
        self.assertIn("Try next", out)
        url = re.search(r"curl (http://127.0.0.1:(\d+))/v1/jobs ", out)
        self.assertGreater(int(url.group(2)), taken)
        with self.assertRaises(urllib.error.URLError):
            urllib.request.urlopen(url.group(1) + "/health", timeout=1)


if __name__ == "__main__":
    blackbox.main()
