#!/usr/bin/env python3
"""`tools/demo-gateway` from start to end: a chat, a provider that dies, a client that leaves; the waybill of each, and nothing left
running. With a mock provider in the place of the LLM; demo_gateway_services_test.py has the real one."""
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


def run_demo(case, **environment):
    """What it printed, once all that is promised of any run was seen in it."""
    case.need_model()
    with socket.create_server(("127.0.0.1", 0)) as busy:  # the demo takes the next port that is free
        taken = busy.getsockname()[1]
        done = subprocess.run([blackbox.SOURCE / "tools/demo-gateway"], capture_output=True, text=True, timeout=900,
                              env=dict(os.environ, PORT=str(taken), DEMO_ONCE="1", **environment))
    case.assertEqual(done.returncode, 0, done.stderr)
    out = done.stdout
    case.assertNotIn("\033", out)

    chat, died, left = re.findall(r"waybill [0-9a-f-]{36}   (\w+), (\d+), in [^\n]+\n(.*?)(?=\n\n|\Z)", out, re.DOTALL)
    case.assertEqual((chat[0], chat[1]), ("completed", "200"))
    case.assertRegex(chat[2], r"decided +route chat, .*model small\n +called +1 call, to llm/")
    case.assertRegex(out, r"first token after [\d,]+ ms")

    case.assertIn("200 requests, not one failed", out)
    rows = [(int(second), int(llm.replace("·", "0")), int(spare.replace("·", "0")), failed)
            for second, llm, spare, failed in re.findall(r"^ +(\d+)   █* *(\d+|·) +█* *(\d+|·) +(\S+)$", out, re.MULTILINE)]
    case.assertEqual([row[0] for row in rows], list(range(1, 11)), out)
    case.assertTrue(all(llm + spare == 20 and failed == "·" for _, llm, spare, failed in rows), rows)
    case.assertGreater(sum(row[1] for row in rows[:4]), 0, rows)
    case.assertEqual([row[1:3] for row in rows[5:]], [(0, 20)] * 5)
    case.assertEqual(died[0], "completed")
    case.assertRegex(died[2], r"called .* to spare/mock-small")

    case.assertRegex(out, r"the provider counts 1 cancelled, seen [\d,]+ ms later: \d{1,2} tokens made of 10,000")
    case.assertEqual(left[0], "cancelled")
    case.assertRegex(left[2], r"ended +The client went away\.")

    case.assertRegex(out, r"ledger   202 accepted = 201 completed \+ 0 failed \+ 0 rejected \+ 1 cancelled .* balanced\n")
    case.assertIn("Try next", out)
    url = re.search(r"waybill  (http://127.0.0.1:(\d+))", out)
    case.assertGreater(int(url.group(2)), taken)
    with case.assertRaises(urllib.error.URLError):
        urllib.request.urlopen(url.group(1) + "/health", timeout=1)
    return out


class Demo(blackbox.Case):
    def test_a_chat_a_provider_that_dies_and_a_client_that_leaves(self):
        out = run_demo(self, DEMO_LLM="mock")
        self.assertIn("A mock provider stands in for the LLM", out)

    def test_without_an_llm_it_says_so_and_goes_on(self):
        (self.folder / "bin").mkdir()
        stub = self.write("bin/bash", "#!/bin/sh\necho 'FAILED llm: no index of packages' >&2\nexit 1\n")
        stub.chmod(0o755)
        out = run_demo(self, PATH=f"{stub.parent}:{os.environ['PATH']}")
        self.assertIn("There is no LLM here (FAILED llm: no index of packages): a mock provider stands in for it", out)


if __name__ == "__main__":
    blackbox.main()
