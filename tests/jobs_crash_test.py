#!/usr/bin/env python3
"""Jobs across crashes: the server is killed at random instants, and loses its power, which takes with it what was not flushed; then
every promise is checked (tests/crash). The checker itself is held against a small server that breaks its promises on purpose."""
import subprocess
import sys
import tempfile
import unittest
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
import blackbox

CHECK = Path(__file__).resolve().parent / "crash/crash_check.py"
SMALL = ("--rounds", "4", "--clients", "16", "--up", "1", "--think", "0.06", "--delay", "8", "--drain", "10", "--limit", "60", "--seed", "11")


def check(*arguments):
    """(exit status, what it said)"""
    done = subprocess.run([sys.executable, CHECK, *arguments], capture_output=True, text=True, timeout=300, check=False)
    return done.returncode, done.stdout + done.stderr


def check_in_passing(*arguments):
    """The same, where a broken promise is what is wanted: nothing is kept to be looked at."""
    with tempfile.TemporaryDirectory(prefix="waybill-crash-") as folder:
        return check(*arguments, "--work", folder)


class Crashes(blackbox.Case):
    def setUp(self):
        super().setUp()
        self.need_model()

    def test_every_promise_holds(self):
        cases = {
            "killed": ("--rounds", "10"),
            "without power": ("--rounds", "10", "--power-cut", "1"),
            "killed while the provider fails": ("--rounds", "4", "--provider-fail", "0.2"),
        }
        with ThreadPoolExecutor(len(cases)) as pool:
            runs = {name: pool.submit(check, "waybill", "--program", blackbox.PROGRAM, "--up", "1", "--limit", "200", *more) for name, more in cases.items()}
        for name, run in runs.items():
            status, said = run.result()
            print(said, file=sys.stderr)
            with self.subTest(name):
                self.assertEqual(status, 0, said)

    def test_flushes_that_do_nothing_are_found(self):
        status, said = check_in_passing("waybill", "--program", blackbox.PROGRAM, "--rounds", "4", "--up", "0.6", "--power-cut", "1", "--ignore-flushes", "--drain", "5",
                             "--ready", "5", "--limit", "60")
        self.assertEqual(status, 1, said)
        self.assertRegex(said, "BROKEN (lost|no recovery):")


class TheChecker(unittest.TestCase):
    """A check that cannot fail is worth nothing."""

    BREAKS = {  # what the reference server does wrong -> (what is found, more arguments)
        "ack-early": ("lost",),
        "no-key": ("split key",),
        "no-requeue": ("stuck", "--drain", "4"),
        "forget-finish": ("flip", "--drain", "4"),
        "double-lease": ("billed twice",),
        "no-call": ("not executed",),
        "wrong-result": ("wrong result",),
        "no-doubt": ("unrecorded doubt", "--delay", "40"),
    }

    def test_a_server_that_keeps_its_promises_passes_and_each_broken_one_is_found(self):
        cases = {"": None, **self.BREAKS}
        with ThreadPoolExecutor(4) as pool:
            runs = {broken: pool.submit(check_in_passing, "reference", "--break", broken, *SMALL, *(found or ())[1:]) for broken, found in cases.items()}
        for broken, found in cases.items():
            status, said = runs[broken].result()
            with self.subTest(broken or "nothing broken"):
                self.assertEqual(status, 1 if found else 0, said)
                if found:
                    self.assertIn(f"BROKEN {found[0]}:", said)

    def test_a_missing_flush_shows_only_when_the_power_goes(self):
        with ThreadPoolExecutor(3) as pool:
            killed, cut, good = pool.map(lambda more: check_in_passing("reference", *SMALL, *more), [
                ("--break", "no-sync"), ("--break", "no-sync", "--power-cut", "1"), ("--power-cut", "1")])
        self.assertEqual(killed[0], 0, killed[1])
        self.assertIn("BROKEN lost:", cut[1])
        self.assertEqual(good[0], 0, good[1])


if __name__ == "__main__":
    blackbox.main()
