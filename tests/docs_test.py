#!/usr/bin/env python3
"""What the README and docs/ show works: links lead somewhere, configurations are accepted, commands run."""
import re
import shlex
import subprocess
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
import blackbox

LABELLED = "\n".join(f"{label}\t{text}" for label, text in [
    ("coding", "my loop never ends"), ("coding", "explain this stack trace"), ("coding", "rename a git branch"),
    ("legal", "can I break my lease early?"), ("legal", "what is a power of attorney?"), ("legal", "who owns the copyright?"),
    ("oos", "what should I cook tonight?"), ("oos", "tell me a joke")]) + "\n"


def documents():
    root = blackbox.SOURCE
    return [path for path in [root / "README.md", root / "CONTRIBUTING.md", *sorted((root / "docs").rglob("*.md")),
                              *sorted((root / "examples").glob("*.md")), *sorted((root / "src").rglob("README.md"))] if path.exists()]


def fenced_blocks(text):
    """[(language, body)]"""
    return re.findall(r"^```(\w*)\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)


def shown_commands(text):
    """The waybill commands of a document: `$ waybill ...` in any block, `waybill ...` in blocks marked sh."""
    commands = []
    for language, body in fenced_blocks(text):
        for line in body.replace("\\\n", " ").splitlines():
            if line.startswith("$ waybill ") or (language in ("sh", "bash") and line.startswith("waybill ")):
                commands.append(line.removeprefix("$ "))
    return commands


class Links(blackbox.Case):
    def test_relative_links_lead_to_files(self):
        for path in documents():
            text = re.sub(r"^```.*?^```$", "", path.read_text(), flags=re.MULTILINE | re.DOTALL)
            for target in re.findall(r"\]\(([^)#\s]+)[^)]*\)", text):
                if not target.startswith(("http:", "https:", "mailto:")):
                    with self.subTest(f"{path.relative_to(blackbox.SOURCE)}: {target}"):
                        self.assertTrue((path.parent / target).exists())

    def test_make_targets_exist(self):
        makefile = (blackbox.SOURCE / "Makefile").read_text()
        known = set(re.findall(r"^([a-z-]+):", makefile, re.MULTILINE)) | {"bench-NAME"}
        patterns = [re.escape(p).replace("%", "[a-zA-Z-]+") for p in re.findall(r"^([a-z-]+%):", makefile, re.MULTILINE)]
        for path in documents():
            for name in re.findall(r"`make ([a-zA-Z]+(?:-[a-zA-Z]+)*)(?![-\w])", path.read_text()):
                with self.subTest(f"{path.relative_to(blackbox.SOURCE)}: make {name}"):
                    self.assertTrue(name in known or any(re.fullmatch(p, name) for p in patterns))


class Configurations(blackbox.Case):
    def test_whole_configurations_are_accepted(self):
        checked = 0
        for path in documents():
            for language, body in fenced_blocks(path.read_text()):
                if language not in ("yaml", "yml") or not re.search(r"^(routes|models):", body, re.MULTILINE):
                    continue
                with self.subTest(path.relative_to(blackbox.SOURCE)):
                    self.write("waybill.yaml", body)
                    for name in re.findall(r"utterances_file: (\S+)", body):
                        target = self.folder / name
                        target.parent.mkdir(parents=True, exist_ok=True)
                        target.write_text("one utterance\nanother one\n")
                    self.succeed("config", "check")
                    checked += 1
        self.assertGreater(checked, 0)

    def test_the_examples_are_accepted(self):
        self.succeed("config", "check", blackbox.SOURCE / "examples/waybill.yaml")


class Commands(blackbox.Case):
    def setUp(self):
        super().setUp()
        self.need_model()
        readme = (blackbox.SOURCE / "README.md").read_text()
        config = next(body for language, body in fenced_blocks(readme) if language == "yaml" and "routes:" in body)
        self.write("waybill.yaml", config)
        for name in ("labelled.tsv", "train.tsv", "validation.tsv"):
            self.write(name, LABELLED)
        self.write("oos.tsv", "oos\tplay some music\noos\tbook a table for two\n")
        for name in ("prompts.txt", "texts.txt"):
            self.write(name, "my loop never ends\nwhat is a tort?\n")
        self.write("texts.jsonl", '{"text": "a"}\n"b"\n')
        (self.folder / "models").mkdir()
        (self.folder / "models/all-MiniLM-L6-v2").symlink_to(blackbox.MODEL.resolve())

    def test_shown_commands_run(self):
        run = 0
        for path in documents():
            for command in shown_commands(path.read_text()):
                if re.search(r"[<\[][A-Z]|\bFILE\b|\bmodel fetch\b|\.\.\.|bench encoder|waybill serve|"
                             r"waybill (jobs|dead-letters|queues)\b", command):
                    continue  # a synopsis, the network, longer than a test may take, or what serve_test or jobs_command_test runs
                with self.subTest(f"{path.relative_to(blackbox.SOURCE)}: {command}"):
                    line = command.replace("waybill ", f"{shlex.quote(str(blackbox.PROGRAM))} ", 1)
                    done = subprocess.run(["bash", "-c", line], cwd=self.folder, capture_output=True, text=True, timeout=300, input="")
                    self.assertEqual(done.returncode, 0, done.stderr)
                    run += 1
        self.assertGreater(run, 0)


class FirstImpression(Commands):
    """What a newcomer types after having copied the README's first configuration."""

    test_shown_commands_run = None  # Commands runs it

    def test_the_output_that_the_readme_shows_is_what_comes(self):
        readme = (blackbox.SOURCE / "README.md").read_text()
        block = next(body for _, body in fenced_blocks(readme) if "| waybill route\n" in body)
        shown = re.findall(r"^(\w+) +(\S+) +[01]\.\d\d +\w+ +(.+)$", block, re.MULTILINE)
        self.assertGreaterEqual(len(shown), 3)
        decided = self.json_lines("route", "--json", *(prompt for _, _, prompt in shown))
        self.assertEqual([(d["route"], d["model"]) for d in decided], [(route, model) for route, model, _ in shown])

    def test_small_talk_goes_to_the_default_route(self):
        prompts = ["hello there", "hi", "good morning", "tell me something funny", "how do I cook rice?", "I feel sad today"]
        decided = self.json_lines("route", "--json", *prompts)
        self.assertEqual([d["route"] for d in decided], ["general"] * len(prompts))


if __name__ == "__main__":
    blackbox.main()
