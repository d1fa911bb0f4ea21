"""The texts that every encoder is given: real requests, cut and joined to the lengths wanted.

mixed    5 to 128 tokens, mean about 23 (most requests are short, some are long)
tokens16 exactly 16 tokens ([CLS] and [SEP] counted)
"""
import random
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
SENTENCES = 256


def _words():
    texts = []
    for name in ("clinc150", "banking77"):
        for line in (ROOT / "data" / name / "validation.tsv").read_text(encoding="utf-8").splitlines():
            texts.append(line.split("\t", 1)[1])
    random.Random(1).shuffle(texts)
    while True:
        for text in texts:
            yield from text.split()


def _text_of(tokens, words, length):
    """Adds words until the text has exactly `length` tokens; starts again when a word overshoots."""
    chosen = []
    while True:
        chosen.append(next(words))
        count = tokens(" ".join(chosen))
        if count == length:
            return " ".join(chosen)
        if count > length:
            chosen.pop()


def _mixed_length(rng):
    # Log-normal, cut to 5..128: median 18, mean 23.
    return min(128, max(5, round(rng.lognormvariate(2.9, 0.7))))


def make(tokens):
    """{name: [text]}; `tokens` counts the ids of a text."""
    words = _words()
    rng = random.Random(2)
    return {
        "mixed": [_text_of(tokens, words, _mixed_length(rng)) for _ in range(SENTENCES)],
        "tokens16": [_text_of(tokens, words, 16) for _ in range(SENTENCES)],
    }
