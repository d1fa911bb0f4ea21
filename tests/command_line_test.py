#!/usr/bin/env python3
"""The command line as its users meet it: help, options, exit codes, completions, manual pages. Needs no model."""
import os
import re
import shutil
import subprocess
import sys
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
import blackbox

COMMANDS = ["route", "serve", "embed", "eval", "fit", "config", "config check", "config show", "config schema", "model", "model info",
            "model fetch", "store", "store check", "store backup", "store vacuum", "store stats", "jobs", "jobs submit", "jobs get", "jobs wait", "jobs tail", "jobs list", "jobs cancel",
            "jobs retry", "dead-letters", "dead-letters list", "dead-letters redrive", "queues", "queues list", "queues pause", "queues resume", "bench", "bench encoder", "bench route", "import", "completion", "man"]


class Help(blackbox.Case):
    def test_every_command_has_help_with_a_summary_a_usage_and_examples(self):
        for command in COMMANDS:
            with self.subTest(command):
                text = self.succeed(*command.split(), "--help")
                self.assertRegex(text, rf"\Awaybill {command} - [a-z].*[^.]\n")
                self.assertIn(f"Usage: waybill {command} [OPTIONS]", text)
                self.assertRegex(text, r"\nExamples:\n(  .+\n)+")
                self.assertNotIn("\x1b", text)

    def test_the_help_of_the_program_names_every_command(self):
        text = self.succeed("--help")
        for command in COMMANDS:
            if " " not in command:
                self.assertRegex(text, rf"\n  {command} +[a-z]")

    def test_examples_in_help_only_use_options_that_exist(self):
        for command in COMMANDS:
            text = self.succeed(*command.split(), "--help")
            for line in text.split("\nExamples:\n")[1].splitlines():
                words = line.split("#")[0].split()
                if words[:1] != ["waybill"]:
                    continue
                path = [word for word in words[1:3] if re.fullmatch("[a-z][a-z-]*", word)]
                known = self.succeed(*[w for w in path if " ".join(path[:path.index(w) + 1]) in COMMANDS], "--help")
                for option in re.findall(r"(?<= )--[a-z-]+", line.split("|")[0]):
                    self.assertIn(option, known, line)

    def test_lines_are_no_wider_than_the_terminal_may_be(self):
        for command in COMMANDS:
            for line in self.succeed(*command.split(), "--help").split("\nExamples:")[0].splitlines():
                self.assertLessEqual(len(line), 110)

    def test_version(self):
        self.assertRegex(self.succeed("--version"), r"\Awaybill \d+\.\d+\.\d+\n\Z")


class Usage(blackbox.Case):
    def test_without_arguments_the_help_goes_to_stderr(self):
        done = self.run_program()
        self.assertEqual((done.returncode, done.stdout), (2, ""))
        self.assertIn("Usage: waybill", done.stderr)

    def test_unknown_commands_and_options_are_named_with_what_was_meant(self):
        self.refuse(2, "ruote", "x", says='did you mean "route"?')
        self.refuse(2, "config", "chekc", says='did you mean "check"?')
        self.refuse(2, "route", "--explian", "x", says='did you mean "--explain"?')
        self.refuse(2, "embed", "--precision", "int9", "x", says='"int9" is not one of')
        self.refuse(2, "embed", "--threads", "many", "x", says="--threads")
        self.refuse(2, "embed", "--precision", says="--precision")
        self.refuse(2, "config", says="check, show, schema")
        self.refuse(2, "completion", "bash", "extra", says="extra")

    def test_files_that_are_not_there_end_with_66(self):
        self.refuse(66, "route", "x", says="--config")
        self.refuse(66, "route", "--config", "nowhere.yaml", "x", says="nowhere.yaml")
        self.refuse(66, "route", "x", env={"WAYBILL_CONFIG": "/nowhere.yaml"}, says="/nowhere.yaml")
        self.refuse(66, "embed", "--model", "nowhere", "x", says="waybill model fetch")

    def test_a_wrong_configuration_ends_with_65_and_says_where(self):
        self.write("waybill.yaml", "routes:\n  - nam: a\n")
        done = self.run_program("route", "x")
        self.assertEqual(done.returncode, 65)
        self.assertRegex(done.stderr, r"\Awaybill: waybill\.yaml:2: ")

    def test_a_full_disk_ends_with_74(self):
        with open("/dev/full", "wb") as full:
            for command in (["--help"], ["--version"], ["completion", "bash"], ["man"]):
                done = self.run_program(*command, stdout=full)
                self.assertEqual(done.returncode, 74, command)
                self.assertRegex(done.stderr, r"\Awaybill: [^\n]*No space left[^\n]*\n\Z")

    def test_a_reader_that_goes_away_ends_the_program_quietly(self):
        script = f"'{blackbox.PROGRAM}' completion zsh | true; '{blackbox.PROGRAM}' man | head -c 1 > {os.devnull}"
        done = subprocess.run(["bash", "-c", script], capture_output=True, text=True)
        self.assertEqual((done.returncode, done.stderr), (0, ""))


class Colours(blackbox.Case):
    def test_a_terminal_has_colours_and_a_pipe_has_none(self):
        self.assertIn("\x1b[", self.on_a_terminal("--help")[0])
        self.assertNotIn("\x1b[", self.succeed("--help"))

    def test_no_color_and_the_option_are_honoured(self):
        self.assertNotIn("\x1b[", self.on_a_terminal("--help", env={"NO_COLOR": "1"})[0])
        self.assertNotIn("\x1b[", self.on_a_terminal("--color", "never", "--help")[0])
        self.assertIn("\x1b[", self.succeed("--color", "always", "--help"))
        self.refuse(2, "--color", "sometimes", "man", says="sometimes")


class Documents(blackbox.Case):
    def test_every_command_has_a_manual_page(self):
        self.succeed("man", "--output", "pages")
        names = {path.name for path in (self.folder / "pages").iterdir()}
        self.assertEqual(names, {"waybill.1"} | {f"waybill-{c.replace(' ', '-')}.1" for c in COMMANDS} |
                         {name for name in names if name.startswith("waybill-import-")})

    def test_manual_pages_are_valid_and_list_exit_codes(self):
        self.assertEqual(self.succeed("man", "route").splitlines()[0].split()[:3], [".TH", "WAYBILL-ROUTE", "1"])
        if shutil.which("groff") is None:
            self.skipTest("groff is not installed")
        self.succeed("man", "--output", "pages")
        for page in sorted((self.folder / "pages").iterdir()):
            done = subprocess.run(["groff", "-man", "-ww", "-Tutf8", "-z", str(page)], capture_output=True, text=True)
            self.assertEqual((done.returncode, done.stderr), (0, ""), page.name)
        text = subprocess.run(["groff", "-man", "-Tascii", "-P-cbou", str(self.folder / "pages/waybill-route.1")],
                              capture_output=True, text=True).stdout
        self.assertIn("--explain", text)
        self.assertRegex(text, r"EXIT STATUS\n +0 +done")

    def complete(self, line):
        """What bash offers for the last word of the line."""
        (self.folder / "completion.bash").write_text(self.succeed("completion", "bash"))
        script = ("source ./completion.bash; read -r -a COMP_WORDS <<< \"$LINE\"; [[ $LINE == *' ' ]] && COMP_WORDS+=('');"
                  "COMP_CWORD=$((${#COMP_WORDS[@]} - 1)); _waybill; printf '%s\\n' \"${COMPREPLY[@]}\"")
        done = subprocess.run(["bash", "-u", "-c", script], env=dict(os.environ, LINE=line), cwd=self.folder, capture_output=True, text=True)
        self.assertEqual(done.stderr, "")
        return done.stdout.split()

    def test_bash_completes_commands_options_values_and_files(self):
        self.write("routes.yaml", "")
        (self.folder / "models").mkdir()
        self.assertEqual(self.complete("waybill ro"), ["route"])
        self.assertEqual(sorted(self.complete("waybill config ")), sorted(["check", "show", "schema"]
                         + [o for o in self.complete("waybill config ") if o.startswith("-")]))
        self.assertEqual(self.complete("waybill route --expl"), ["--explain"])
        self.assertEqual(self.complete("waybill embed --precision b"), ["bf16"])
        self.assertEqual(self.complete("waybill route --config rou"), ["routes.yaml"])
        self.assertEqual(self.complete("waybill embed --model "), ["models"])
        self.assertIn("--color", self.complete("waybill embed --"))

    def test_the_scripts_are_what_their_shells_read(self):
        for shell in ("bash", "zsh", "fish"):
            script = self.write(f"script.{shell}", self.succeed("completion", shell))
            if shutil.which(shell):
                done = subprocess.run([shell, "-n", str(script)], capture_output=True, text=True)
                self.assertEqual((done.returncode, done.stderr), (0, ""), shell)
        self.assertTrue(self.succeed("completion", "zsh").startswith("#compdef waybill\n"))
        self.assertIn("complete -c waybill", self.succeed("completion", "fish"))


if __name__ == "__main__":
    blackbox.main()
