#!/usr/bin/env python3
"""`waybill route`, `eval`, `fit` and `bench route` with the real model."""
import json
import re
import subprocess
import sys
import time
from html.parser import HTMLParser
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
import blackbox

LABELLED = """\
coding\tmy loop never ends
coding\texplain this stack trace
coding\tthe compiler complains about a missing semicolon
legal\tcan I break my lease early?
legal\twhat is a power of attorney?
legal\tthe other party broke our agreement
oos\twhat should I cook tonight?
oos\ttell me a joke about penguins
"""


class Route(blackbox.Case):
    def setUp(self):
        super().setUp()
        self.write_config()

    def test_prompts_go_where_they_belong(self):
        coding, legal = self.json_lines("route", "--json", "my program crashes with a segmentation fault", "must I sign this contract?")
        self.write_config(blackbox.CONFIG.replace("model: qwen-coder", "model: qwen-coder\n    threshold: 0.99"))
        chat = self.json_lines("route", "--json", "what should I cook tonight?")[0]
        self.assertEqual((coding["route"], coding["model"]), ("coding", "qwen-coder"))
        self.assertEqual((legal["route"], legal["model"]), ("legal", "claude"))
        self.assertEqual((chat["route"], chat["reason"]), ("chat", "below threshold"))
        for decision in (coding, legal, chat):
            self.assertLessEqual({"route", "model", "score", "tier", "degraded", "reason"}, set(decision))
            self.assertTrue(0 <= decision["score"] <= 1)
            self.assertIs(decision["degraded"], False)

    def test_one_line_for_each_prompt_in_order(self):
        prompts = ["my program crashes", "must I sign this contract?", "", "   "] * 30
        decisions = self.json_lines("route", "--json", stdin="\n".join(prompts) + "\n")
        self.assertEqual(len(decisions), len(prompts))
        for i, decision in enumerate(decisions):
            self.assertEqual(decision["route"], decisions[i % 4]["route"])

    def test_plain_output_names_route_and_model(self):
        line = self.succeed("route", "my program crashes with a segmentation fault")
        self.assertRegex(line, r"\Acoding +qwen-coder +[01]\.\d\d +\w+\n\Z")

    def test_an_explanation_has_threshold_runners_up_and_nearest_utterances(self):
        prompt = "why does my program crash?"
        told = self.json_lines("route", "--explain", "--json", prompt)[0]
        self.assertGreater(told["threshold"], 0)
        self.assertEqual(told["runners_up"][0]["route"], "coding")
        self.assertEqual([r["score"] for r in told["runners_up"]], sorted((r["score"] for r in told["runners_up"]), reverse=True))
        self.assertEqual(told["nearest"][0]["text"], "why does my program segfault?")
        text = self.succeed("route", "--explain", prompt)
        for word in ("coding", "qwen-coder", "threshold", "why does my program segfault?"):
            self.assertIn(word, text)

    def test_any_bytes_are_a_prompt(self):
        for prompt in (b"", b"\x00\x00", b"\xff\xfe\x80", b" " * 1_000_000, b"a" * 10_000_000, b"\xed\xa0\x80 lone", "日本語".encode()):
            with self.subTest(prompt[:20]):
                self.assertEqual(len(self.json_lines("route", "--json", stdin=prompt + b"\n")), 1)
                self.assertEqual(len(self.json_lines("route", "--json", "--explain", stdin=prompt + b"\n")), 1)

    def test_a_second_start_embeds_nothing_and_decides_the_same(self):
        prompts = "my program crashes\nmust I sign this?\nhello there\n"
        begin = time.monotonic()
        first = self.succeed("route", "--json", stdin=prompts)
        middle = time.monotonic()
        second = self.succeed("route", "--json", stdin=prompts)
        print(f"start to three decisions: {middle - begin:.2f} s cold, {time.monotonic() - middle:.3f} s with the caches", file=sys.stderr)
        self.assertEqual(first, second)
        self.assertTrue((self.folder / ".waybill").is_dir())

    def test_a_cache_folder_that_cannot_be_written_only_gives_a_note(self):
        self.write(".waybill", "a file where the folder should be")
        done = self.run_program("route", "--json", "my program crashes")
        self.assertEqual(done.returncode, 0)
        self.assertEqual(json.loads(done.stdout)["route"], "coding")
        self.assertIn("waybill: note:", done.stderr)

    def test_the_configuration_is_found_by_option_folder_and_environment(self):
        elsewhere = self.folder / "elsewhere.yaml"
        (self.folder / "waybill.yaml").rename(elsewhere)
        self.succeed("route", "--config", elsewhere, "x")
        self.succeed("route", "x", env={"WAYBILL_CONFIG": str(elsewhere)})
        self.refuse(66, "route", "x", says="waybill.yaml")

    def test_the_model_can_be_named_instead(self):
        self.write("waybill.yaml", blackbox.CONFIG.replace("{model}", "/nowhere"))
        self.refuse(66, "route", "x", says="/nowhere")
        self.succeed("route", "--model", blackbox.MODEL, "x")
        self.succeed("route", "x", env={"WAYBILL_MODEL": str(blackbox.MODEL)})

    def test_every_precision_decides_the_same_here(self):
        prompts = ["my program crashes with a segmentation fault", "must I sign this contract?"]
        available = self.json_lines("model", "info", "--json")[0]["available"]
        for precision in (name for name, sets in available.items() if sets):
            self.assertEqual([d["route"] for d in self.json_lines("route", "--json", "--precision", precision, *prompts)], ["coding", "legal"])

    def test_resident_memory_stays_under_150_megabytes(self):
        self.succeed("route", "x")
        process = subprocess.Popen([blackbox.PROGRAM, "route", "--json"], cwd=self.folder, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        process.stdin.write(b"my program crashes\n")
        process.stdin.flush()
        process.stdout.readline()
        status = Path(f"/proc/{process.pid}/status").read_text()
        process.stdin.close()
        process.wait()
        process.stdout.close()
        resident = int(re.search(r"VmRSS:\s+(\d+)", status).group(1)) / 1e3
        print(f"route, one decision: {resident:.0f} MB resident", file=sys.stderr)
        self.assertLess(resident, 150)


class WellFormed(HTMLParser):
    """Counts elements and collects what a page would load."""

    def __init__(self):
        super().__init__()
        self.plots = 0
        self.loaded = []

    def handle_starttag(self, tag, attributes):
        self.plots += tag == "svg"
        self.loaded += [value for name, value in attributes if name in ("src", "href")]


class Evaluate(blackbox.Case):
    def setUp(self):
        super().setUp()
        self.write_config()
        self.write("labelled.tsv", LABELLED)

    def test_figures_come_as_json(self):
        got = json.loads(self.succeed("eval", "labelled.tsv", "--json"))
        self.assertEqual(got["accuracy"], 1)
        self.assertEqual(json.loads(self.succeed("eval", "labelled.tsv", "--json", "--latency-samples", "0"))["accuracy"], 1)

    def test_formats_do_not_matter(self):
        rows = [line.split("\t") for line in LABELLED.splitlines()]
        self.write("labelled.jsonl", "".join(json.dumps({"label": label, "text": text}) + "\n" for label, text in rows))
        self.write("labelled.csv", "label,text\n" + "".join(f'{label},"{text}"\n' for label, text in rows))
        figures = [json.loads(self.succeed("eval", f"labelled.{kind}", "--json", "--latency-samples", "0"))["accuracy"]
                   for kind in ("tsv", "csv", "jsonl")]
        self.assertEqual(figures, [1, 1, 1])

    def test_a_labelled_file_makes_routes(self):
        (self.folder / "waybill.yaml").unlink()
        self.write("oos.tsv", "oos\twhat should I cook tonight?\n")
        got = json.loads(self.succeed("eval", "labelled.tsv", "--train", "labelled.tsv", "--shots", "2", "--seed", "7", "--oos-file", "oos.tsv",
                                      "--json", "--model", blackbox.MODEL, env={"XDG_CACHE_HOME": str(self.folder / "cache")}))
        self.assertGreaterEqual(got["accuracy"], 0.5)

    def test_the_page_is_complete_in_itself(self):
        self.succeed("eval", "labelled.tsv", "--html", "report.html")
        text = (self.folder / "report.html").read_text()
        page = WellFormed()
        page.feed(text)
        self.assertGreaterEqual(page.plots, 4)
        self.assertEqual(page.loaded, [])
        self.assertNotRegex(text, r"nan|inf[^o]")
        self.assertIn("prefers-color-scheme", text)
        for word in ("Confusion matrix", "Reliability", "Routes", "Latency", "Out of scope"):
            self.assertIn(word, text)

    def test_the_text_report_shows_figures_routes_and_tiers(self):
        text = self.succeed("eval", "labelled.tsv")
        for word in ("accuracy", "out of scope found", "coding", "legal", "encoder"):
            self.assertIn(word, text)

    def test_unknown_labels_are_named_with_their_line(self):
        self.write("labelled.tsv", "coding\ta\ncodnig\tb\n")
        self.refuse(65, "eval", "labelled.tsv", says="labelled.tsv:2")
        self.refuse(65, "fit", "labelled.tsv", says='did you mean "coding"?')
        self.refuse(66, "eval", "nowhere.tsv", says="nowhere.tsv")

    def test_precisions_can_be_compared(self):
        self.assertIn("same decision", self.succeed("eval", "labelled.tsv", "--precision", "f32", "--compare", "f32"))


class Fit(blackbox.Case):
    def setUp(self):
        super().setUp()
        self.write_config()
        self.write("labelled.tsv", LABELLED)

    def test_what_was_fitted_is_used_from_then_on_and_can_be_forgotten(self):
        prompt = "the other party broke our agreement"
        before = self.json_lines("route", "--explain", "--json", prompt)[0]
        told = json.loads(self.succeed("fit", "labelled.tsv", "--json"))
        self.assertEqual(told["examples"], 8)
        self.assertEqual([r["route"] for r in told["routes"]], ["coding", "legal"])
        after = self.json_lines("route", "--explain", "--json", prompt)[0]
        self.assertEqual(after["nearest"][0]["text"], prompt)
        self.assertNotEqual(before["nearest"][0]["text"], prompt)
        self.succeed("fit", "--forget")
        self.assertEqual(self.json_lines("route", "--explain", "--json", prompt)[0], before)

    def test_it_says_what_changed(self):
        text = self.succeed("fit", "labelled.tsv")
        for word in ("coding", "threshold", "leave-one-out accuracy", "→", ".waybill"):
            self.assertIn(word, text)

    def test_nothing_to_fit_is_a_wrong_command_line(self):
        self.refuse(2, "fit", says="--forget")


class Bench(blackbox.Case):
    def test_tiers_are_timed_in_their_order(self):
        self.write_config()
        tiers = json.loads(self.succeed("bench", "route", "--seconds", "0.1", "--json"))["tiers"]
        self.assertLess(tiers["cache"]["median_seconds"], tiers["encoder"]["median_seconds"])
        if "static" in tiers:
            self.assertLess(tiers["static"]["median_seconds"], tiers["encoder"]["median_seconds"])
        self.assertIn("encoder", self.succeed("bench", "route", "--seconds", "0.05"))


if __name__ == "__main__":
    blackbox.main()
