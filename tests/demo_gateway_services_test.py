#!/usr/bin/env python3
"""`tools/demo-gateway` with a real small LLM behind it."""
import re
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
import blackbox
from demo_gateway_test import run_demo


class RealLlm(blackbox.Case):
    def test_the_chat_is_answered_by_an_llm(self):
        out = run_demo(self)
        self.assertIn("llama.cpp's server", out)
        said = re.search(r"^  model   (.*?)first token after", out, re.MULTILINE | re.DOTALL)[1]
        self.assertGreater(len(set(said.split())), 5, said)
        self.assertNotIn("w0 w1", said)


if __name__ == "__main__":
    blackbox.main()
