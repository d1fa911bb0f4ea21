"""Clients from the Python package index for black-box tests: in a virtual environment of the build tree, kept from one
run to the next."""
import fcntl
import os
import shutil
import subprocess
import sys
import unittest
from pathlib import Path

import blackbox

BUILD = Path(os.environ.get("WAYBILL_BINARY_DIR", blackbox.SOURCE / "build/release"))


def _make(folder, requirements):
    """None when the environment stands, else why it cannot."""
    made = folder / "made"
    if made.exists() and made.read_text() == "\n".join(requirements):
        return None
    shutil.rmtree(folder, ignore_errors=True)
    for command in ([sys.executable, "-m", "venv", str(folder)],
                    [str(folder / "bin/python"), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *requirements]):
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode != 0:
            return (done.stderr or done.stdout).strip().splitlines()[-1]
    made.write_text("\n".join(requirements))
    return None


def need(*requirements):
    """Goes on under a Python that has the packages, or reports one skipped test that says why there is none."""
    if os.environ.get("WAYBILL_TEST_PACKAGES") == " ".join(requirements):
        return
    BUILD.mkdir(parents=True, exist_ok=True)
    folder = BUILD / ("python-" + "-".join(each.split("==")[0] for each in requirements))
    with open(f"{folder}.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        reason = _make(folder, requirements)
    if reason is None:
        os.environ["WAYBILL_TEST_PACKAGES"] = " ".join(requirements)
        os.execv(folder / "bin/python", [str(folder / "bin/python"), *sys.argv])

    class Packages(unittest.TestCase):
        def test_packages(self):
            self.skipTest(f"{' '.join(requirements)} cannot be installed: {reason}")

    module = sys.modules["__main__"]
    module.Packages = Packages
    blackbox.main()
