#!/usr/bin/env python3
"""`waybill embed` and `waybill model` with the real model."""
import json
import math
import subprocess
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
import blackbox

VECTORS = blackbox.SOURCE / "tests/data/minilm-l6-v2.jsonl"


def cosine(a, b):
    return sum(x * y for x, y in zip(a, b)) / math.sqrt(sum(x * x for x in a) * sum(y * y for y in b))


class Embed(blackbox.Case):
    def setUp(self):
        super().setUp()
        self.need_model()
        self.model = ["--model", blackbox.MODEL]

    def test_the_reference_vectors_come_out(self):
        lines = VECTORS.read_bytes()
        expected = [json.loads(line) for line in lines.splitlines()]
        self.assertGreater(len(expected), 400)
        got = self.json_lines("embed", "--json", "--input-format", "jsonl", "--precision", "f32", *self.model, stdin=lines)
        self.assertEqual(len(got), len(expected))
        for want, have in zip(expected, got):
            self.assertEqual(have["ids"], want["ids"], want["text"][:80])
            self.assertGreaterEqual(cosine(have["embedding"], want["embedding"]), 0.99999, want["text"][:80])
            self.assertAlmostEqual(sum(x * x for x in have["embedding"]), 1, delta=1e-5)

    def test_every_precision_of_this_machine_is_near_the_reference(self):
        lines = VECTORS.read_bytes()
        expected = [json.loads(line)["embedding"] for line in lines.splitlines()]
        available = self.json_lines("model", "info", "--json", *self.model)[0]["available"]
        least = {"f32": 0.99999, "bf16": 0.9995, "int16": 0.998, "int8": 0.99}
        for precision, sets in available.items():
            if not sets:
                self.refuse(65, "embed", "--precision", precision, *self.model, "x", says=precision)
                continue
            got = self.json_lines("embed", "--json", "--input-format", "jsonl", "--precision", precision, *self.model, stdin=lines)
            self.assertGreaterEqual(min(cosine(h["embedding"], w) for h, w in zip(got, expected)), least[precision], precision)

    def test_arguments_lines_and_json_lines_give_the_same(self):
        texts = ["one text", "", "naïve [SEP] text", "[SEP]", "[a, b]", "{}", "++", "日本語"]
        from_arguments = self.succeed("embed", "--json", *self.model, "--", *texts)
        from_lines = self.succeed("embed", "--json", *self.model, stdin="\n".join(texts))
        from_json = self.succeed("embed", "--json", "--input-format", "jsonl", *self.model,
                                 stdin="\n".join(json.dumps(t) if i % 2 else json.dumps({"text": t}) for i, t in enumerate(texts)))
        self.assertEqual(from_lines.splitlines(), from_json.splitlines())
        self.assertEqual(from_arguments.splitlines(), from_lines.splitlines())
        self.assertEqual(len(from_lines.splitlines()), len(texts))

    def test_order_is_kept_over_batches_and_threads(self):
        texts = [f"{'word ' * (i % 40)}number {i}" for i in range(700)]
        together = self.succeed("embed", "--threads", "3", *self.model, stdin="\n".join(texts)).splitlines()
        self.assertEqual(len(together), len(texts))
        for i in (0, 39, 350, 699):
            self.assertEqual(self.succeed("embed", "--threads", "1", *self.model, texts[i]).splitlines(), [together[i]])

    def test_plain_output_is_numbers_with_spaces(self):
        line = self.succeed("embed", *self.model, "a text")
        self.assertRegex(line, r"\A(-?[0-9.e-]+ ){383}-?[0-9.e-]+\n\Z")

    def test_unpaired_surrogates_and_invalid_bytes_read_as_the_replacement_character(self):
        want = self.json_lines("embed", "--json", *self.model, "a \ufffd b")[0]["ids"]
        self.assertEqual(self.json_lines("embed", "--json", "--input-format", "jsonl", *self.model, stdin=b'"a \\ud800 b"')[0]["ids"], want)
        self.assertEqual(self.json_lines("embed", "--json", *self.model, stdin=b"a \xff b")[0]["ids"], want)
        self.assertEqual(self.json_lines("embed", "--json", *self.model, stdin=b"a \x00b")[0]["ids"],
                         self.json_lines("embed", "--json", *self.model, stdin=b"a b")[0]["ids"])

    def test_very_long_input_is_cut_and_answered(self):
        for text in (b"word " * 2_000_000, b" " * 1_000_000, b"x" * 10_000_000):
            ids = self.json_lines("embed", "--json", *self.model, stdin=text)[0]["ids"]
            self.assertLessEqual(len(ids), 256)

    def test_how_long_text_is_cut_can_be_chosen(self):
        text = "begin " + "filler " * 600 + "end"
        head, tail, windows = (self.json_lines("embed", "--json", "--long-text", how, *self.model, stdin=text)[0]
                               for how in ("head", "tail", "windows"))
        self.assertEqual((len(head["ids"]), len(tail["ids"])), (256, 256))
        self.assertNotEqual(head["ids"], tail["ids"])
        self.assertGreater(len(windows["ids"]), 512)

    def test_a_line_that_is_no_text_ends_with_65_after_what_stood_before(self):
        done = self.run_program("embed", "--input-format", "jsonl", *self.model, stdin='"a"\n{"txt": 1}\n')
        self.assertEqual(done.returncode, 65)
        self.assertIn("line 2", done.stderr)
        self.assertEqual(len(done.stdout.splitlines()), 1)

    def test_a_full_disk_ends_with_74(self):
        with open("/dev/full", "wb") as full:
            done = self.run_program("embed", *self.model, "x", stdout=full)
        self.assertEqual(done.returncode, 74)
        self.assertIn("No space left", done.stderr)

    def test_a_reader_that_goes_away_ends_the_program_quietly(self):
        script = f"yes 'some text' | head -n 3000 | '{blackbox.PROGRAM}' embed --model '{blackbox.MODEL}' | head -n 1 | wc -l"
        done = subprocess.run(["bash", "-c", script], capture_output=True, text=True)
        self.assertEqual((done.stdout.strip(), done.stderr), ("1", ""))

    def test_lines_are_answered_as_they_come(self):
        process = subprocess.Popen([blackbox.PROGRAM, "embed", *self.model], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        for text in (b"first\n", b"second\n"):
            process.stdin.write(text)
            process.stdin.flush()
            self.assertEqual(len(process.stdout.readline().split()), 384)
        process.stdin.close()
        self.assertEqual(process.wait(), 0)
        process.stdout.close()


class Model(blackbox.Case):
    def setUp(self):
        super().setUp()
        self.need_model()

    def test_info_tells_shape_precisions_and_memory(self):
        info = self.json_lines("model", "info", "--json", "--model", blackbox.MODEL)[0]
        self.assertEqual((info["layers"], info["hidden"], info["heads"], info["vocabulary"], info["max_tokens"]), (6, 384, 12, 30522, 256))
        self.assertIn(info["precision"], info["available"])
        self.assertRegex(info["hash"], r"\A[0-9a-f]{16}\Z")
        text = self.succeed("model", "info", "--model", blackbox.MODEL)
        for word in ("6 layers", "30522", info["hash"], info["isa"], "f32"):
            self.assertIn(word, text)

    def test_resident_memory_stays_under_150_megabytes(self):
        for precision in ("auto", "f32"):
            self.succeed("embed", "--precision", precision, "--model", blackbox.MODEL, "x")  # packs the cache file, if none is there
            info = self.json_lines("model", "info", "--json", "--precision", precision, "--model", blackbox.MODEL)[0]
            print(f"{info['precision']}: {info['resident_bytes'] / 1e6:.0f} MB resident, {info['peak_resident_bytes'] / 1e6:.0f} MB at most",
                  file=sys.stderr)
            self.assertLess(info["resident_bytes"], 150e6)

    def test_the_environment_and_the_folder_name_a_model(self):
        self.succeed("embed", "x", env={"WAYBILL_MODEL": str(blackbox.MODEL)})
        (self.folder / "models").mkdir()
        (self.folder / "models/all-MiniLM-L6-v2").symlink_to(blackbox.MODEL.resolve())
        self.succeed("embed", "x")

    def test_damaged_folders_are_refused_with_a_sentence(self):
        names = ["config.json", "tokenizer.json", "model.safetensors", "modules.json"]
        for damaged in names:
            for damage in ("missing", "truncated", "empty", "noise"):
                if (damaged, damage) == ("modules.json", "missing"):
                    continue  # optional
                with self.subTest(f"{damaged} {damage}"), tempfile.TemporaryDirectory() as folder:
                    for path in Path(blackbox.MODEL).iterdir():
                        if path.name != damaged and path.name != "vocab.txt" and not path.name.startswith(".") and "waybill" not in path.name:
                            (Path(folder) / path.name).symlink_to(path.resolve())
                    with open(blackbox.MODEL / damaged, "rb") as file:
                        bytes_ = file.read(1_000_000)
                    target = Path(folder) / damaged
                    if damage == "truncated":
                        target.write_bytes(bytes_[:len(bytes_) // 2])
                    elif damage == "empty":
                        target.write_bytes(b"")
                    elif damage == "noise":
                        target.write_bytes(bytes(reversed(bytes_)))
                    done = self.run_program("embed", "--model", folder, "x")
                    self.assertIn(done.returncode, (65, 66), done.stderr)
                    self.assertRegex(done.stderr, r"\Awaybill: [^\n]+\n\Z")


if __name__ == "__main__":
    blackbox.main()
