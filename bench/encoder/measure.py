"""Waybill's encoder beside its peers, in one run: measure.py WAYBILL MODEL_FOLDER WORK_FOLDER

Every peer and every precision of Waybill runs in a process of its own, on the same tokens, in turn, over several
rounds; the best of the rounds counts (neighbours on the machine only ever make a run slower). Prints the table and,
with --write FILE, puts it into that document between its markers.
"""
import argparse
import json
import platform
import re
import subprocess
import sys
from importlib import metadata
from pathlib import Path

import workloads

HERE = Path(__file__).resolve().parent
PEERS = ["torch f32 (sentence-transformers)", "torch bf16", "ONNX Runtime f32", "ONNX Runtime int8", "OpenVINO f32",
         "OpenVINO bf16", "OpenVINO int8"]
PACKAGES = ["torch", "sentence-transformers", "transformers", "onnxruntime", "openvino", "nncf"]


def measure_peer(name, options, threads):
    done = subprocess.run([sys.executable, HERE / "peers.py", name, options.model, options.work, str(threads), str(options.seconds)],
                          capture_output=True, text=True)
    if done.returncode != 0:
        print(f"{name}: {done.stderr.strip().splitlines()[-1] if done.stderr.strip() else 'failed'}", file=sys.stderr)
        return None
    got = json.loads(done.stdout.strip().splitlines()[-1])
    return {"rates": {w: max(ways.values()) for w, ways in got["rates"].items()}, "ways": got["rates"],
            "latency_ms": got["latency_ms"], "cosine_min": got.get("cosine_min")}


def waybill(options, precision, threads, workload):
    command = [options.waybill, "bench", "encoder", "--json", "--model", options.model, "--precision", precision,
               "--threads", str(threads), "--seconds", str(options.seconds), "--texts", str(options.work / f"{workload}.txt")]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        print(f"waybill {precision}: {done.stderr.strip()}", file=sys.stderr)
        return None
    return json.loads(done.stdout)


def measure_waybill(precision, options, threads):
    mixed = waybill(options, precision, threads, "mixed")
    short = waybill(options, precision, threads, "tokens16")
    if mixed is None or short is None:
        return None
    return {"rates": {"mixed": mixed["sentences_per_second"], "tokens16": short["sentences_per_second"]},
            "latency_ms": short["latency_ms_p50"], "isa": mixed["isa"], "peak": mixed["gemm_peak_gops"],
            "share": mixed["share_of_gemm_peak"]}


def better(old, new):
    if old is None or new is None:
        return old or new
    return {**new, "rates": {w: max(old["rates"][w], new["rates"][w]) for w in new["rates"]},
            "latency_ms": min(old["latency_ms"], new["latency_ms"]),
            **({"share": max(old["share"], new["share"])} if "share" in new else {})}


def cpu():
    text = Path("/proc/cpuinfo").read_text()
    name = re.search(r"model name\s*:\s*(.*)", text).group(1)
    flags = set(re.search(r"flags\s*:\s*(.*)", text).group(1).split())
    sets = [label for label, flag in [("AVX2", "avx2"), ("AVX-VNNI", "avx_vnni"), ("AVX-512", "avx512f"), ("AVX-512 VNNI", "avx512_vnni"),
                                      ("AVX-512 BF16", "avx512_bf16"), ("AMX", "amx_tile")] if flag in flags]
    model = re.search(r"^model\s*:\s*(\d+)", text, re.M).group(1)
    family = re.search(r"cpu family\s*:\s*(\d+)", text).group(1)
    return f"{name} (family {family} model {model}; {', '.join(sets)})"


def table(results, base):
    """`base`: the best peer for each column."""
    lines = ["| encoder | mixed, sentences/s | × best peer | 16 tokens, sentences/s | × best peer | one 16-token prompt, ms | × best peer |",
             "| --- | ---: | ---: | ---: | ---: | ---: | ---: |"]
    for name, got in results.items():
        if got is None:
            lines.append(f"| {name} | did not run | | | | | |")
            continue
        mixed, short, latency = got["rates"]["mixed"], got["rates"]["tokens16"], got["latency_ms"]
        lines.append(f"| {name} | {mixed:,.0f} | {mixed / base['mixed']:.2f} | {short:,.0f} | {short / base['tokens16']:.2f} "
                     f"| {latency:.2f} | {latency / base['latency']:.2f} |")
    return lines


def asked(results, base, cpu_sets):
    """What was to be reached, by the fastest precision of Waybill. The goals in sentences/s were set for CPUs with AMX, and for those
    with AVX2 and no more; between them both are told without a verdict."""
    fastest = max((got for name, got in results.items() if got and "Waybill" in name), key=lambda got: got["rates"]["mixed"])
    mixed, short = (fastest["rates"][w] / base[w] for w in ("mixed", "tokens16"))
    latency = fastest["latency_ms"] / base["latency"]
    met = {True: "met", False: "**not met**"}

    def where(condition, verdict, what):
        return met[verdict] if condition else f"not measured: {what}"

    amx, avx2_only = "AMX" in cpu_sets, "AVX-512" not in cpu_sets and "AVX-VNNI" not in cpu_sets
    return ["", "| asked | measured | |", "| --- | --- | --- |",
            f"| with AMX 2.5 × the best peer on mixed lengths | {mixed:.2f} × | {where(amx, mixed >= 2.5, 'no AMX')} |",
            f"| with AMX 1.5 × on 16 tokens | {short:.2f} × | {where(amx, short >= 1.5, 'no AMX')} |",
            f"| with AVX2 alone 1.5 × on mixed lengths | {mixed:.2f} × | {where(avx2_only, mixed >= 1.5, 'more than AVX2')} |",
            f"| one 16-token prompt at most 0.7 × the best peer | {latency:.2f} × | {met[latency <= 0.7]} |",
            f"| half of the matrix-product peak | {100 * fastest['share']:.0f} % | {met[fastest['share'] >= 0.5]} |"]


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("waybill")
    parser.add_argument("model")
    parser.add_argument("work", type=Path)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=1.5, help="for each cell and round")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--precision", action="append", help="of Waybill; default: all that the CPU has")
    parser.add_argument("--write", type=Path, help="the document that takes the table")
    options = parser.parse_args()

    from tokenizers import Tokenizer
    tokenizer = Tokenizer.from_file(f"{options.model}/tokenizer.json")
    tokenizer.no_padding()
    tokenizer.enable_truncation(256)
    texts = workloads.make(lambda text: len(tokenizer.encode(text).ids))
    ids = {name: [tokenizer.encode(text).ids for text in of] for name, of in texts.items()}
    (options.work / "workloads.json").write_text(json.dumps(ids))
    for name, of in texts.items():
        (options.work / f"{name}.txt").write_text("\n".join(of) + "\n")

    precisions = options.precision or ["int8", "int16", "bf16", "f32"]
    results = {}
    for turn in range(options.rounds):
        for name in PEERS:
            print(f"round {turn + 1} of {options.rounds}: {name}", file=sys.stderr)
            results[name] = better(results.get(name), measure_peer(name, options, options.threads))
        for precision in precisions:
            print(f"round {turn + 1} of {options.rounds}: Waybill {precision}", file=sys.stderr)
            key = f"**Waybill {precision}**"
            results[key] = better(results.get(key), measure_waybill(precision, options, options.threads))

    peers = [results[name] for name in PEERS if results[name]]
    base = {w: max(p["rates"][w] for p in peers) for w in ("mixed", "tokens16")} | {"latency": min(p["latency_ms"] for p in peers)}
    mean = sum(map(len, ids["mixed"])) / len(ids["mixed"])
    versions = ", ".join(f"{p} {metadata.version(p)}" for p in PACKAGES)
    lines = [f"CPU: {cpu()}; {options.threads} threads; Linux {platform.release()}.",
             f"Peers: {versions}, each at its better of batch 1, padded batch 32, and padded batch 32 sorted by length.",
             f"Mixed: {len(ids['mixed'])} requests of {min(map(len, ids['mixed']))} to {max(map(len, ids['mixed']))} tokens, mean {mean:.1f}. "
             f"Best of {options.rounds} rounds. Command: `make bench-encoder`.", ""]
    lines += table(results, base)
    lines += ["", "Share of the matrix-product peak measured in the same run (one thread, weights in cache), mixed lengths: "
              + "; ".join(f"{key.strip('*')} on {got['isa']}: {100 * got['share']:.0f} % of {got['peak']:,.0f} GOP/s"
                          for key, got in results.items() if got and "share" in got) + "."]
    lines += ["", "Worst cosine of the peers against torch f32 on the mixed texts: "
              + "; ".join(f"{name} {results[name]['cosine_min']:.5f}" for name in PEERS if results[name] and results[name]["cosine_min"]) + "."]
    lines += asked(results, base, cpu())
    text = "\n".join(lines)
    print(text)
    if options.write:
        document = options.write.read_text()
        start, end = "<!-- bench-encoder -->", "<!-- /bench-encoder -->"
        head, rest = document.split(start)
        options.write.write_text(f"{head}{start}\n{text}\n{end}{rest.split(end)[1]}")


if __name__ == "__main__":
    main()
