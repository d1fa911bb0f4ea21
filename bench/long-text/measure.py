"""Long prompts made of labelled texts: which part of them decides best.

No public labelled set of long prompts is in the tree, so they are made. A labelled sentence, or a paragraph of sentences
of one label, is put at the head, in the middle or at the end of 400 to 800 tokens of something else, which is of three
kinds: prose (this project's documents and its licence), source code, and small talk (CLINC150's out-of-scope texts). The
last sort is on its subject from one end to the other. One `waybill eval` for each sort and way, everything from seeds.
"""
import json
import random
import subprocess
import sys
import tempfile
from pathlib import Path

WAYBILL = "build/release/waybill"
SETS = {"CLINC150": "data/clinc150", "Banking77": "data/banking77"}
WAYS = ("head", "tail", "ends", "windows")
PLACES = ("head", "middle", "end")
SHOTS, TEXTS = 10, 60
BYTES_PER_TOKEN = {"prose": 4.3, "code": 2.9, "talk": 4.6}  # of this tokenizer on these texts, about
TOKENS = (400, 800)
PARAGRAPH = 100  # tokens


def read(path):
    return [tuple(line.split("\t", 1)) for line in Path(path).read_text().splitlines()]


def words_of(paths):
    return " ".join(Path(path).read_text() for path in sorted(map(str, paths))).split()


def fillers():
    talk = [text for name in ("oos_train", "oos_validation") for _, text in read(f"data/clinc150/{name}.tsv")]
    return {"prose": words_of([*Path("docs").rglob("*.md"), "LICENSE", "README.md"]),
            "code": words_of(Path("src/base").glob("*.cc")),
            "talk": talk}


def filler(pieces, kind, rng):
    """Pieces in a row from somewhere (talk: from anywhere), until there are enough bytes."""
    size = rng.uniform(*TOKENS) * BYTES_PER_TOKEN[kind]
    start, out, length = rng.randrange(len(pieces)), [], 0
    while length < size:
        piece = rng.choice(pieces) if kind == "talk" else pieces[(start + len(out)) % len(pieces)]
        out.append(piece)
        length += len(piece) + 1
    return out


def buried(texts, pieces, kind, place):
    rng = random.Random(f"{kind} {place}")
    for label, text in texts:
        around = filler(pieces, kind, rng)
        at = {"head": 0, "middle": len(around) // 2, "end": len(around)}[place]
        yield label, " ".join([*around[:at], text, *around[at:]])


def longer(texts, tokens):
    """Each text followed by others of its label until there are so many tokens."""
    rng = random.Random(tokens)
    of_label = {}
    for label, text in texts:
        of_label.setdefault(label, []).append(text)
    for label, text in texts:
        out = [text]
        while sum(map(len, out)) < tokens * BYTES_PER_TOKEN["talk"]:
            out.append(rng.choice(of_label[label]))
        yield label, " ".join(out)


def accuracy(folder, prompts, way, scratch):
    test, config = scratch / "test.jsonl", scratch / f"{way}.yaml"
    test.write_text("".join(json.dumps({"label": label, "text": text}) + "\n" for label, text in prompts))
    model = Path("models/all-MiniLM-L6-v2").resolve()
    config.write_text(f"encoder: {{model: {model}, long_text: {way}}}\ntiers: {{static: {{enabled: false}}}}\n"
                      "routes: [{name: any, utterances: [any]}]\n")
    command = [WAYBILL, "eval", str(test), "--train", f"{folder}/train.tsv", "--shots", str(SHOTS), "--config", str(config),
               "--json", "--latency-samples", "0"]
    return json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)["accuracy"]


def sorts_of(texts, validation, pieces):
    chosen = {text for _, text in texts}
    def made(tokens):
        return [long for long, (_, text) in zip(longer(validation, tokens), validation) if text in chosen]
    yield "short", texts
    for subject, prompts in (("a sentence", texts), ("a paragraph", made(PARAGRAPH))):
        for kind in pieces:
            for place in PLACES:
                yield f"{subject} at the {place} of {kind}", list(buried(prompts, pieces[kind], kind, place))
    yield "one subject throughout", made(TOKENS[0])


def main():
    print(f"Accuracy, %, thresholds set aside; {SHOTS} utterances a route, {TEXTS} validation texts of each set: as they are, then one "
          f"of them, or {PARAGRAPH} tokens of one label, within {TOKENS[0]} to {TOKENS[1]} tokens of something else, then {TOKENS[0]} tokens of one "
          "label. Command: `make bench-long-text`.\n")
    print("| prompts | " + " | ".join(f"{data}: {', '.join(WAYS)}" for data in SETS) + " |\n| --- |" + " ---: |" * len(SETS))
    pieces = fillers()
    buried_ones = []  # [sort][data][way]
    with tempfile.TemporaryDirectory() as name:
        sorts = []
        for folder in SETS.values():
            validation = read(f"{folder}/validation.tsv")
            sorts.append(sorts_of(random.Random(1).sample(validation, TEXTS), validation, pieces))
        for of_data in zip(*sorts):
            sort = of_data[0][0]
            print(sort, file=sys.stderr)
            got = [[100 * accuracy(folder, prompts, way, Path(name)) for way in WAYS]
                   for folder, (_, prompts) in zip(SETS.values(), of_data)]
            if " of " in sort:
                buried_ones.append(got)
            print(f"| {sort} | " + " | ".join(", ".join(f"{x:.1f}" for x in row) for row in got) + " |", flush=True)
    means = [[sum(got[d][w] for got in buried_ones) / len(buried_ones) for w in range(len(WAYS))] for d in range(len(SETS))]
    print("| **mean within something else** | " + " | ".join(", ".join(f"**{x:.1f}**" for x in row) for row in means) + " |")


if __name__ == "__main__":
    main()
