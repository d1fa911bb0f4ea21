"""Accuracy and agreement of the default head and precision on the validation splits, beside aurelio's scoring.

Means over draws of the shots (seeds); one evaluation a draw by `waybill eval`.
"""
import json
import subprocess
import sys
import tempfile
from pathlib import Path

WAYBILL = "build/release/waybill"
SETS = {"CLINC150": ("data/clinc150", True), "Banking77": ("data/banking77", False)}
SEEDS = (1, 2, 3)


def evaluate(folder, shots, seed, out_of_scope, *more):
    command = [WAYBILL, "eval", f"{folder}/validation.tsv", "--train", f"{folder}/train.tsv", "--json", "--latency-samples", "0", *more]
    if shots:
        command += ["--shots", str(shots), "--seed", str(seed)]
    if out_of_scope:
        command += ["--oos-file", f"{folder}/oos_validation.tsv"]
    return json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)


def mean(runs, key):
    values = [run[key] for run in runs if run.get(key) is not None]
    return f"{100 * sum(values) / len(values):.1f}" if values else "-"


def main():
    print("Validation splits, % (mean of 3 draws of the shots; \"all\" is one run). *Aurelio*: semantic-router's scoring (mean of the "
          "5 nearest) on the same embeddings. *Same*: decisions equal to float32's, rejections included. *Asked again*: close calls "
          "that int16 decided. Command: `make bench-accuracy`.\n")
    print("| data, utterances a route | accuracy | aurelio | in scope kept | out of scope found | AUROC | calibration error | same | asked again | static tier alone | decided by it | agreeing there |")
    print("| --- |" + " ---: |" * 11)
    with tempfile.TemporaryDirectory() as scratch:
        aurelio = Path(scratch) / "waybill.yaml"
        model = Path("models/all-MiniLM-L6-v2").resolve()
        aurelio.write_text(f"encoder: {{model: {model}}}\nhead: {{scoring: aurelio}}\nroutes: [{{name: any, utterances: [any]}}]\n")
        for name, (folder, out_of_scope) in SETS.items():
            for shots in (5, 10, 20, 0):
                seeds = SEEDS if shots else SEEDS[:1]
                print(f"{name}, {shots or 'all'}", file=sys.stderr)
                runs = [evaluate(folder, shots, seed, out_of_scope, *(["--compare", "f32"] if shots else [])) for seed in seeds]
                theirs = [evaluate(folder, shots, seed, out_of_scope, "--config", str(aurelio)) for seed in seeds]
                same = [run["agreement"] for run in runs if run.get("agreement")]
                static = [run["static"] for run in runs if run.get("static")]
                print(f"| {name}, {shots or 'all'} | {mean(runs, 'accuracy')} | {mean(theirs, 'accuracy')} | {mean(runs, 'kept')} "
                      f"| {mean(runs, 'out_of_scope_recall')} | {mean(runs, 'out_of_scope_auroc')} | {mean(runs, 'calibration_error')} "
                      f"| {100 * sum(s['same_decision'] for s in same) / len(same) if same else float('nan'):.2f} "
                      f"| {mean(runs, 'rechecked')} | {mean(static, 'accuracy')} | {mean(static, 'decided')} "
                      f"| {mean(static, 'decided_agreement')} |".replace("| nan |", "| - |"), flush=True)


if __name__ == "__main__":
    main()
