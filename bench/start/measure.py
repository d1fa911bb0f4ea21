"""From the start of the process to its first decision, and the memory it holds: cold, warm, and beside the Python stack's import."""
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

WAYBILL = Path("build/release/waybill").resolve()
MODEL = Path("models/all-MiniLM-L6-v2").resolve()
ROUNDS = 7


def run(config):
    """(seconds, resident MB at most) of one decision by a new process."""
    start = time.perf_counter()
    pid = os.posix_spawn(WAYBILL, [str(WAYBILL), "route", "--config", str(config), "--json", "solve 3x = 9"], os.environ,
                         file_actions=[(os.POSIX_SPAWN_OPEN, 1, "/dev/null", os.O_WRONLY, 0)])
    _, status, usage = os.wait4(pid, 0)
    if status != 0:
        sys.exit("waybill route failed")
    return time.perf_counter() - start, usage.ru_maxrss / 1024


def main():
    cold, warm = [], []
    for _ in range(ROUNDS):
        with tempfile.TemporaryDirectory() as scratch:
            model = Path(scratch) / "model"
            model.mkdir()
            for entry in MODEL.iterdir():  # links, so that nothing cached beside the model is found
                if entry.name != ".waybill":
                    (model / entry.name).symlink_to(entry)
            config = Path(scratch) / "waybill.yaml"
            text = Path("data/demo/waybill.yaml").read_text()
            config.write_text(text.replace("../../models/all-MiniLM-L6-v2", str(model)))
            cold.append(run(config))
            warm.append(min(run(config) for _ in range(3)))
            shutil.rmtree(Path(scratch) / ".waybill", ignore_errors=True)
    print("8 routes of 96 utterances; a new process decides one prompt. *Cold*: weights packed, utterances embedded, head fitted, "
          f"caches written. *Warm*: all of it found. Best of {ROUNDS}. Command: `make bench-start`.\n")
    print("| start | to the first decision, whole process | resident at most |\n| --- | ---: | ---: |")
    for name, got in (("cold", cold), ("warm", warm)):
        print(f"| {name} | {1e3 * min(t for t, _ in got):.0f} ms | {min(m for _, m in got):.0f} MB |")


if __name__ == "__main__":
    main()
