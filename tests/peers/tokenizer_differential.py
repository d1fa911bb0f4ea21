#!/usr/bin/env python3
"""Compares the tokenizer with Hugging Face `tokenizers` on random texts; every id must be equal.

Texts are drawn over all planes, from blocks where the rules do most, from English, and mixed; with special tokens,
marks, controls and words around the length limit. The model's own rules and every other combination of them are run,
with the model's vocabulary and with one to which random pieces from all planes are added.

Needs the package `tokenizers` (0.23.3 was compared), and: ninja -C build/release tokenize
usage: tests/peers/tokenizer_differential.py [--texts N] [--seed N] [--model FOLDER] [--binary FILE]
"""
import argparse
import itertools
import json
import random
import subprocess
import sys
import tempfile
import unicodedata
from pathlib import Path

import tokenizers

ROOT = Path(__file__).resolve().parents[2]
MAX_IDS = 256
BLOCKS = [(0x20, 0x7F), (0, 0x20), (0x80, 0x250), (0x250, 0x370), (0x370, 0x530), (0x590, 0x700), (0x900, 0xE00),
          (0xE00, 0x1000), (0x1100, 0x1200), (0x1E00, 0x2000), (0x2000, 0x2070), (0x2070, 0x2C00), (0x3000, 0x3100),
          (0x3100, 0x4E00), (0x4E00, 0x9FFF), (0xA000, 0xAC00), (0xAC00, 0xD7B0), (0xF900, 0xFB00), (0xFB00, 0xFE00),
          (0xFE00, 0x10000), (0x10000, 0x11000), (0x11000, 0x12000), (0x1D000, 0x1D800), (0x1F000, 0x20000),
          (0x20000, 0x30000), (0x2F800, 0x2FA20), (0xE0000, 0xE0200)]
SPECIAL = ["[CLS]", "[SEP]", "[MASK]", "[PAD]", "[UNK]", "[cls]", "[", "]", "[SEP", "[[SEP]]", "[unused1]"]
WORDS = """the of a please cancel my order refund card balance what is weather tomorrow translate unaffable playing
embeddings tokenization Antidisestablishmentarianism naïve café Ångström Straße İstanbul ΣΑΣ ﬁne don't e-mail
x86_64 3.14 $5,000 http://example.com/a?b=c#d C++ rock'n'roll""".split()


def is_char(c):
    return not 0xD800 <= c < 0xE000


def any_char(r):
    while True:
        low, high = r.choice(BLOCKS) if r.random() < 0.7 else (0, 0x110000)
        c = r.randrange(low, high)
        if is_char(c):
            return chr(c)


def part(r):
    kind = r.random()
    if kind < 0.35:
        word = r.choice(WORDS)
        return r.choice([word, word.upper(), word.title(), word + r.choice(WORDS)])
    if kind < 0.65:
        return "".join(any_char(r) for _ in range(r.randint(1, 12)))
    if kind < 0.75:
        low, high = r.choice(BLOCKS)
        return "".join(chr(c) for c in (r.randrange(low, high) for _ in range(r.randint(1, 12))) if is_char(c))
    if kind < 0.82:
        return r.choice(SPECIAL)
    if kind < 0.9:
        return r.choice(WORDS) + "".join(chr(r.randrange(0x300, 0x370)) for _ in range(r.randint(1, 3)))
    if kind < 0.93:
        return unicodedata.normalize(r.choice(["NFD", "NFKC"]), "".join(any_char(r) for _ in range(6)))
    if kind < 0.96:
        return r.choice("aé中б가\u0301") * r.randint(96, 104)
    return "".join(r.choice(" \t\r\n\u00a0\u2003\u3000\u200b\u00ad\x00\ufffd") for _ in range(r.randint(1, 4)))


def text(r):
    return "".join(part(r) + r.choice(["", " ", " ", " "]) for _ in range(r.choice([1, 2, 3, 5, 8, 40])))


def ours(binary, folder, texts):
    request = b"".join(b"%d\n%s\n" % (len(t), t) for t in (t.encode() for t in texts))
    done = subprocess.run([binary, folder, str(MAX_IDS)], input=request, capture_output=True, check=False)
    if done.returncode != 0:
        sys.exit(done.stderr.decode())
    return [[int(i) for i in line.split()] for line in done.stdout.decode().splitlines()]


def variants(model):
    """(name, tokenizer.json) for the published rules first, then the others and other vocabularies."""
    base = json.loads((model / "tokenizer.json").read_text())
    base["padding"] = base["truncation"] = None
    yield "as published", base
    r = random.Random(7)
    more = json.loads(json.dumps(base))
    vocab = more["model"]["vocab"]
    lengths = [1, 1, 1, 2, 3]
    while len(vocab) < 60_000:
        piece = "".join(any_char(r) for _ in range(r.choice(lengths)))
        vocab.setdefault(r.choice(["", "##"]) + piece, len(vocab))
    more["model"]["max_input_chars_per_word"] = 98
    yield "more pieces", more
    for clean, chinese, strip, lower in itertools.product([True, False], [True, False], [True, False, None], [True, False]):
        other = dict(more, normalizer=dict(type="BertNormalizer", clean_text=clean, handle_chinese_chars=chinese,
                                           strip_accents=strip, lowercase=lower))
        yield f"clean_text {clean}, handle_chinese_chars {chinese}, strip_accents {strip}, lowercase {lower}", other


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--texts", type=int, default=100_000, help="for the published rules; a tenth for each variant")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--model", type=Path, default=ROOT / "models/all-MiniLM-L6-v2")
    parser.add_argument("--binary", default=ROOT / "build/release/tests/tokenize")
    options = parser.parse_args()
    r = random.Random(options.seed)
    total = differences = 0
    for number, (name, definition) in enumerate(variants(options.model)):
        texts = [text(r) for _ in range(options.texts if number == 0 else options.texts // 10)]
        reference = tokenizers.Tokenizer.from_str(json.dumps(definition))
        with tempfile.TemporaryDirectory() as folder:
            (Path(folder) / "tokenizer.json").write_text(json.dumps(definition))
            mine = ours(options.binary, folder, texts)
        wrong = 0
        for t, got in zip(texts, mine, strict=True):
            expected = reference.encode(t).ids
            if len(expected) > MAX_IDS:
                expected = expected[:MAX_IDS - 1] + expected[-1:]
            if got != expected:
                wrong += 1
                if wrong <= 3:
                    print(f"{name}: {t!r}\n  reference {expected}\n  ours      {got}")
        print(f"{name}: {len(texts)} texts, {wrong} differ", flush=True)
        total, differences = total + len(texts), differences + wrong
    print(f"{total} texts, {differences} differ (seed {options.seed}, tokenizers {tokenizers.__version__})")
    return 1 if differences else 0


if __name__ == "__main__":
    sys.exit(main())
