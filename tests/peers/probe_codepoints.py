#!/usr/bin/env python3
"""Asks the reference tokenizer what it does with every code point and writes src/embed/codepoint_table.inc.

Needs the package `tokenizers` (0.23.3 wrote the file that is checked in). The rules of the reference are asked one
by one (clean_text, handle_chinese_chars, strip_accents, lowercase, the pre-tokenizer); src/embed/codepoints.cc
applies them in its order. Before writing, the chain of all rules is held against tests/data/bert-codepoints.tsv,
which was found by asking for all of them at once.

usage: tests/peers/probe_codepoints.py > src/embed/codepoint_table.inc
"""
import sys
from pathlib import Path

from tokenizers.normalizers import BertNormalizer
from tokenizers.pre_tokenizers import BertPreTokenizer

ROOT = Path(__file__).resolve().parents[2]
CONTROL, SPACE, IDEOGRAPH, MARK, WHITE, PUNCTUATION = (1 << i for i in range(6))
HANGUL = range(0xAC00, 0xD7A4)  # decomposed by arithmetic


def one_rule(rule):
    rules = dict(clean_text=False, handle_chinese_chars=False, strip_accents=False, lowercase=False)
    return BertNormalizer(**{**rules, rule: True}).normalize_str


def code_points():
    return (c for c in range(0x110000) if not 0xD800 <= c < 0xE000)


def probe():
    """{code point: (flags, decomposition, lower case)} for those that do not simply stay as they are."""
    clean, pad, strip, lower = map(one_rule, ("clean_text", "handle_chinese_chars", "strip_accents", "lowercase"))
    split = BertPreTokenizer().pre_tokenize_str
    out = {}
    for c in code_points():
        char = chr(c)
        between = f"a{char}b"
        cleaned, words, bare, small = clean(between), split(between), strip(char), lower(char)
        flags = CONTROL * (cleaned == "ab") | SPACE * (cleaned == "a b") | IDEOGRAPH * (pad(char) == f" {char} ")
        flags |= MARK * (bare == "") | WHITE * (len(words) == 2) | PUNCTUATION * (len(words) == 3)
        decomposition = "" if bare == char or c in HANGUL else bare
        if flags or decomposition or small != char:
            out[c] = (flags, decomposition, small)
    return out


def hangul(c):
    i = c - HANGUL.start
    return [0x1100 + i // 588, 0x1161 + i % 588 // 28] + ([0x11A7 + i % 28] if i % 28 else [])


def whole_chain(table, c):
    """What src/embed/codepoints.cc makes of one code point with all rules on."""
    flags, decomposition, _ = table.get(c, (0, "", chr(c)))
    if flags & CONTROL:
        return ""
    if flags & SPACE:
        return " "
    if flags & MARK:
        return ""
    bare = "".join(map(chr, hangul(c))) if c in HANGUL else decomposition or chr(c)
    small = "".join(table.get(ord(b), (0, "", b))[2] for b in bare)
    return f" {small} " if flags & IDEOGRAPH else small


def check_against_truth(table):
    truth, white, punctuation = {}, set(), set()
    for line in (ROOT / "tests/data/bert-codepoints.tsv").read_text().splitlines():
        if line.startswith("#"):
            continue
        first, last, action = line.split("\t")
        for c in range(int(first, 16), int(last, 16) + 1):
            if action == "white":
                white.add(c)
            elif action == "punct":
                punctuation.add(c)
            elif action == "pad":
                truth[c] = f" {chr(c)} "
            else:
                truth[c] = "".join(chr(int(x, 16)) for x in action.split()[1:]) if action.startswith("map") else \
                    {"drop": "", "space": " "}[action]
    for c in code_points():
        expected = truth.get(c, "".join(map(chr, hangul(c))) if c in HANGUL else chr(c))
        if whole_chain(table, c) != expected:
            sys.exit(f"U+{c:04X}: the rules give {whole_chain(table, c)!r}, the whole chain {expected!r}")
        flags = table.get(c, (0,))[0]
        if bool(flags & WHITE) != (c in white) or bool(flags & PUNCTUATION) != (c in punctuation):
            sys.exit(f"U+{c:04X}: the pre-tokenizer differs")


def main():
    table = probe()
    check_against_truth(table)
    pool, where, rows = [], {}, []
    for c, (flags, decomposition, small) in sorted(table.items()):
        if len(small) != 1 and c != 0x130:
            sys.exit(f"U+{c:04X}: a lower case of several code points is not provided for")
        delta = 0 if c == 0x130 else ord(small) - c
        if decomposition and decomposition not in where:
            where[decomposition] = len(pool)
            pool += [ord(d) for d in decomposition]
        row = (delta, where.get(decomposition, 0), len(decomposition), flags)
        if rows and rows[-1][1] == c - 1 and rows[-1][2:] == row:
            rows[-1] = (rows[-1][0], c, *row)
        else:
            rows.append((c, c, *row))
    print("// Written by tests/peers/probe_codepoints.py; see there. Do not edit.\n// clang-format off")
    print(f"inline constexpr CodePointRange kRanges[] = {{  // {len(rows)} ranges")
    for i in range(0, len(rows), 4):
        print(" ".join(f"{{0x{f:X},0x{l:X},{','.join(map(str, rest))}}}," for f, l, *rest in rows[i:i + 4]))
    print(f"}};\ninline constexpr char32_t kDecompositions[] = {{  // {len(pool)} code points")
    for i in range(0, len(pool), 16):
        print(" ".join(f"0x{c:X}," for c in pool[i:i + 16]))
    print("};\n// clang-format on")


if __name__ == "__main__":
    main()
