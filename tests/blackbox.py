"""What the black-box tests share: the program, the model, a scratch folder, and a report that tools/test counts."""
import json
import os
import pty
import subprocess
import sys
import tempfile
import time
import unittest
import xml.etree.ElementTree as ElementTree
from pathlib import Path

SOURCE = Path(os.environ.get("WAYBILL_SOURCE_DIR", Path(__file__).resolve().parent.parent))
PROGRAM = Path(os.environ.get("WAYBILL_PROGRAM", SOURCE / "build/release/waybill"))
MODEL = Path(os.environ.get("WAYBILL_MODEL", SOURCE / "models/all-MiniLM-L6-v2"))

CONFIG = """\
encoder:
  model: {model}
default_route: chat
routes:
  - name: coding
    model: qwen-coder
    utterances:
      - why does my program segfault?
      - write a function that parses a date
      - how do I undo the last git commit?
      - my unit test fails with a null pointer
  - name: legal
    model: claude
    utterances:
      - is this clause enforceable?
      - what does indemnify mean in this contract?
      - can my landlord keep the deposit?
      - do I need a lawyer to write a will?
"""


class Case(unittest.TestCase):
    """Each test has an empty folder, in which the program runs unless told otherwise."""

    def setUp(self):
        scratch = tempfile.TemporaryDirectory(prefix="waybill-test-")
        self.addCleanup(scratch.cleanup)
        self.folder = Path(scratch.name)

    def need_model(self):
        if not (MODEL / "model.safetensors").exists():
            self.fail(f"there is no model in {MODEL}; `make test` fetches it, or set WAYBILL_MODEL")

    def write(self, name, text):
        path = self.folder / name
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        return path

    def write_config(self, text=CONFIG):
        self.need_model()
        return self.write("waybill.yaml", text.replace("{model}", str(MODEL)))

    def run_program(self, *arguments, stdin=b"", env=None, **more):
        """The finished process; stdout and stderr are text with U+FFFD for what is not UTF-8."""
        environment = {name: value for name, value in os.environ.items() if name not in ("WAYBILL_MODEL", "WAYBILL_CONFIG")}
        environment.update(env or {})
        more.setdefault("stdout", subprocess.PIPE)
        done = subprocess.run([str(PROGRAM), *map(str, arguments)], input=stdin.encode() if isinstance(stdin, str) else stdin,
                              stderr=subprocess.PIPE, cwd=self.folder, env=environment, timeout=300, **more)
        done.stdout = (done.stdout or b"").decode(errors="replace")
        done.stderr = done.stderr.decode(errors="replace")
        return done

    def on_a_terminal(self, *arguments, says="", env=None):
        """What is on the screen, and the exit code, where a person types `says`."""
        leader, follower = pty.openpty()
        process = subprocess.Popen([str(PROGRAM), *map(str, arguments)], stdin=follower, stdout=follower, stderr=follower,
                                   cwd=self.folder, env=dict(os.environ, **{"TERM": "xterm", **(env or {})}))
        os.close(follower)
        os.write(leader, says.encode())
        out = b""
        while True:
            try:
                block = os.read(leader, 65536)
            except OSError:  # nobody has the other end any more
                break
            if not block:
                break
            out += block
        os.close(leader)
        return out.decode(errors="replace"), process.wait()

    def succeed(self, *arguments, **more):
        done = self.run_program(*arguments, **more)
        self.assertEqual(done.returncode, 0, f"waybill {' '.join(map(str, arguments))}: {done.stderr}")
        return done.stdout

    def json_lines(self, *arguments, **more):
        return [json.loads(line) for line in self.succeed(*arguments, **more).splitlines()]

    def refuse(self, code, *arguments, says, **more):
        """The program ends with the code and one sentence on stderr that has the words `says` in it."""
        done = self.run_program(*arguments, **more)
        self.assertEqual(done.returncode, code, done.stderr)
        self.assertRegex(done.stderr, r"\Awaybill: [^\n]+\n\Z")
        self.assertIn(says, done.stderr)
        self.assertEqual(done.stdout, "")


class Reporter(unittest.TextTestResult):
    """Remembers each case for the report."""

    def __init__(self, *arguments, **more):
        super().__init__(*arguments, **more)
        self.cases = []
        self.started = 0.0

    def startTest(self, test):
        self.started = time.monotonic()
        super().startTest(test)

    def add_case(self, test, kind=None, text=""):
        self.cases.append((type(test).__name__, getattr(test, "_testMethodName", str(test)), time.monotonic() - self.started, kind, text))

    def addSuccess(self, test):
        super().addSuccess(test)
        self.add_case(test)

    def addFailure(self, test, error):
        super().addFailure(test, error)
        self.add_case(test, "failure", str(error[1]))

    def addError(self, test, error):
        super().addError(test, error)
        self.add_case(test, "failure", str(error[1]))

    def addSubTest(self, test, subtest, error):
        super().addSubTest(test, subtest, error)
        if error is not None:
            self.add_case(test, "failure", f"{subtest}: {error[1]}")

    def addSkip(self, test, reason):
        super().addSkip(test, reason)
        self.add_case(test, "skipped", reason)


def write_report(path, cases):
    suites = ElementTree.Element("testsuites")
    suite = ElementTree.SubElement(suites, "testsuite", name=path.stem)
    for class_name, name, seconds, kind, text in cases:
        case = ElementTree.SubElement(suite, "testcase", classname=class_name, name=name, time=f"{seconds:.3f}", status="run")
        if kind:
            printable = "".join(c for c in text if c.isprintable() or c in "\n\t")
            ElementTree.SubElement(case, kind, message=printable)
    ElementTree.ElementTree(suites).write(path, encoding="utf-8", xml_declaration=True)


def main():
    """Runs the tests of the calling file; GTEST_OUTPUT=xml:FOLDER/ asks for a report, as the C++ tests take it."""
    name = Path(sys.argv[0]).stem
    suite = unittest.defaultTestLoader.loadTestsFromModule(sys.modules["__main__"])
    result = unittest.TextTestRunner(verbosity=2, resultclass=Reporter).run(suite)
    target = os.environ.get("GTEST_OUTPUT", "")
    if target.startswith("xml:") and target.endswith("/"):
        write_report(Path(target[4:]) / f"{name}.xml", result.cases)
    sys.exit(0 if result.wasSuccessful() and result.testsRun > 0 else 1)
