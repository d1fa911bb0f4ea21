"""Clients from the npm registry for black-box tests: in a folder of the build tree, kept from one run to the next."""
import fcntl
import os
import shutil
import subprocess
from pathlib import Path

import blackbox

BUILD = Path(os.environ.get("WAYBILL_BINARY_DIR", blackbox.SOURCE / "build/release"))


def folder_with(case, *packages):
    """A folder whose scripts can import the packages; skips the test, and says why, where they cannot be had."""
    for program in ("node", "npm"):
        if not shutil.which(program):
            case.skipTest(f"{program} is missing; tools/setup installs it (Debian packages nodejs and npm)")
    BUILD.mkdir(parents=True, exist_ok=True)
    folder = BUILD / ("node-" + "-".join(each.rpartition("@")[0].replace("/", "-").lstrip("@") for each in packages))
    with open(f"{folder}.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        made = folder / "made"
        if not made.exists() or made.read_text() != "\n".join(packages):
            shutil.rmtree(folder, ignore_errors=True)
            folder.mkdir()
            (folder / "package.json").write_text('{"private": true, "type": "module"}\n')
            done = subprocess.run(["npm", "install", "--ignore-scripts", "--no-audit", "--no-fund", "--save-exact", *packages], cwd=folder,
                                  capture_output=True, text=True)
            if done.returncode != 0:
                lines = (done.stderr or done.stdout).strip().splitlines()
                case.skipTest(f"{' '.join(packages)} cannot be installed: {lines[-1] if lines else done.returncode}")
            made.write_text("\n".join(packages))
    return folder


def run(case, folder, script, *arguments, environment=None):
    """Runs a script of tests/ as if it stood in that folder; its standard output."""
    copy = folder / script
    copy.write_bytes((blackbox.SOURCE / "tests" / script).read_bytes())
    done = subprocess.run(["node", str(copy), *arguments], cwd=folder, capture_output=True, text=True, timeout=300,
                          env={**os.environ, **(environment or {})})
    case.assertEqual(done.returncode, 0, done.stderr)
    return done.stdout
