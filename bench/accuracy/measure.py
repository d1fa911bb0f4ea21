"""Accuracy and agreement of the default head and precision on the validation splits, beside aurelio's scoring.

Means over draws of the shots (seeds); two evaluations a draw by `waybill eval`, one with each scoring. It is work for
the processor and not a timing, so it may run beside other things. What a run of the same program has found is kept in
FOLDER/runs.jsonl: a run that was stopped goes on where it was. Progress on stderr, the table on stdout.
usage: measure.py FOLDER [--program build/release/waybill] [--model models/all-MiniLM-L6-v2]
"""
import argparse
import hashlib
import json
import os
import subprocess
import sys
import time
from pathlib import Path

SETS = {"CLINC150": ("data/clinc150", True), "Banking77": ("data/banking77", False)}
SHOTS = (5, 10, 20, 0)
SEEDS = (1, 2, 3)
KEPT = ("accuracy", "kept", "out_of_scope_recall", "out_of_scope_auroc", "calibration_error", "rechecked", "agreement", "static")


class Runs:
    """Evaluations by the arguments they were made with, each written as it comes."""

    def __init__(self, options):
        self.program, self.folder = options.program, Path(options.folder)
        self.folder.mkdir(parents=True, exist_ok=True)
        self.file = self.folder / "runs.jsonl"
        self.hash = hashlib.sha256(Path(self.program).read_bytes()).hexdigest()[:16]
        # Embeddings are kept here, so that no draw embeds what another has, and no other program's are used.
        self.environment = {**os.environ, "XDG_CACHE_HOME": str((self.folder / self.hash).resolve())}
        self.model = str(Path(options.model).resolve())
        lines = self.file.read_text().splitlines() if self.file.exists() else []
        found = [json.loads(line) for line in lines if line.endswith("}")]
        self.known = {entry["arguments"]: entry["found"] for entry in found if entry["program"] == self.hash}

    def get(self, *arguments):
        key = " ".join(arguments)
        if key not in self.known:
            out = subprocess.run([self.program, "eval", *arguments, "--json", "--latency-samples", "0", "--model", self.model],
                                 stdout=subprocess.PIPE, text=True, check=True, env=self.environment).stdout
            whole = json.loads(out)
            self.known[key] = {name: whole.get(name) for name in KEPT}
            with self.file.open("a") as file:
                file.write(json.dumps({"program": self.hash, "arguments": key, "found": self.known[key]}) + "\n")
        return self.known[key]


def plan(aurelio):
    """(data, shots) and the arguments of its runs: ours, and aurelio's."""
    for name, (folder, out_of_scope) in SETS.items():
        for shots in SHOTS:
            ours, theirs = [], []
            for seed in SEEDS if shots else SEEDS[:1]:
                arguments = [f"{folder}/validation.tsv", "--train", f"{folder}/train.tsv"]
                arguments += ["--shots", str(shots), "--seed", str(seed)] if shots else []
                arguments += ["--oos-file", f"{folder}/oos_validation.tsv"] if out_of_scope else []
                ours.append([*arguments, "--compare", "f32"])
                theirs.append([*arguments, "--config", aurelio])
            yield (name, shots), ours, theirs


def mean(runs, key, digits=1):
    values = [run[key] for run in runs if run.get(key) is not None]
    return f"{100 * sum(values) / len(values):.{digits}f}" if values else "-"


def row(name, shots, runs, theirs):
    same = [run["agreement"] for run in runs if run.get("agreement")]
    static = [run["static"] for run in runs if run.get("static")]
    cells = [f"{name}, {shots or 'all'}", mean(runs, "accuracy"), mean(theirs, "accuracy"), mean(runs, "kept"),
             mean(runs, "out_of_scope_recall"), mean(runs, "out_of_scope_auroc"), mean(runs, "calibration_error"),
             mean(same, "same_decision", 2), mean(runs, "rechecked"), mean(static, "accuracy"), mean(static, "decided"),
             mean(static, "decided_agreement")]
    return f"| {' | '.join(cells)} |"


def asked(found):
    """[(what, asked %, measured %)]. Kernel ridge regression, the yardstick, has its figures on these splits from four draws
    (src/route/decision_quality_test.cc)."""
    def value(key, data, shots, part=None, digits=1):
        return float(mean([run[part] if part else run for run in found[data, shots]], key, digits))

    ridge = {("Banking77", 10): 83.9, ("Banking77", 20): 87.6, ("CLINC150", 10): 90.5, ("CLINC150", 20): 93.1}
    rows = [(f"accuracy, {data}, {shots}: kernel ridge regression's", least, value("accuracy", data, shots)) for (data, shots), least in ridge.items()]
    rows.append(("accuracy, CLINC150, all", 95.5, value("accuracy", "CLINC150", 0)))
    for what, key, least in (("in scope kept", "kept", 93), ("out of scope found", "out_of_scope_recall", 88), ("AUROC", "out_of_scope_auroc", 97)):
        rows.append((f"{what}, CLINC150, 20, thresholds from the utterances alone", least, value(key, "CLINC150", 20)))
    for data, least in (("CLINC150", 85), ("Banking77", 76)):
        rows.append((f"static tier alone, {data}, 10", least, value("accuracy", data, 10, "static")))
    for data in SETS:
        rows.append((f"static tier as the encoder where it decides ({value('decided', data, 10, 'static')} %), {data}, 10", 99,
                     value("decided_agreement", data, 10, "static")))
    draws = {setting: min(100 * run["agreement"]["same_decision"] for run in runs if run.get("agreement"))
             for setting, runs in found.items()}
    lowest = min(draws, key=draws.get)
    rows.append((f"same decision as float32, the lowest single draw ({lowest[0]}, {lowest[1] or 'all'})", 99.9, round(draws[lowest], 2)))
    return rows


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder")
    parser.add_argument("--program", default="build/release/waybill")
    parser.add_argument("--model", default="models/all-MiniLM-L6-v2")
    options = parser.parse_args()
    runs = Runs(options)
    aurelio = runs.folder / "aurelio.yaml"
    aurelio.write_text(f"encoder: {{model: {runs.model}}}\nhead: {{scoring: aurelio}}\nroutes: [{{name: any, utterances: [any]}}]\n")

    rows, kept, precisions, begun = [], {}, set(), time.monotonic()
    groups = list(plan(str(aurelio)))
    total, done = sum(len(ours) + len(theirs) for _, ours, theirs in groups), 0
    for (name, shots), ours, theirs in groups:
        found = []
        for arguments in [*ours, *theirs]:
            found.append(runs.get(*arguments))
            done += 1
            print(f"{done}/{total} {name}, {shots or 'all'}: accuracy {100 * found[-1]['accuracy']:.1f} ({time.monotonic() - begun:.0f} s)",
                  file=sys.stderr, flush=True)
        own = kept[name, shots] = found[:len(ours)]
        precisions |= {run["agreement"]["precision"] for run in own if run.get("agreement")}
        rows.append(row(name, shots, own, found[len(ours):]))

    print(f"Validation splits, %, precision {', '.join(sorted(precisions))} (mean of {len(SEEDS)} draws of the shots; \"all\" is one run). "
          "*Aurelio*: semantic-router's scoring (mean of the 5 nearest) on the same embeddings. *Same*: decisions equal to float32's, "
          "rejections included (965 texts of Banking77: one is 0.10 of a draw, 0.03 of three). *Asked again*: close calls that float32 decided. Command: `make bench-accuracy`.\n")
    print("| data, utterances a route | accuracy | aurelio | in scope kept | out of scope found | AUROC | calibration error | same | "
          "asked again | static tier alone | decided by it | agreeing there |")
    print("| --- |" + " ---: |" * 11)
    print("\n".join(rows))
    print("\n| asked, at least | % | measured, % | |\n| --- | ---: | ---: | --- |")
    for what, least, measured in asked(kept):
        print(f"| {what} | {least} | {measured} | {'met' if measured >= least else '**not met**'} |")


if __name__ == "__main__":
    main()
