#!/usr/bin/env python3
"""The installed library: what `cmake --install` leaves can be found, linked and run by another project."""
import os
import shutil
import subprocess
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
import blackbox

BINARY_DIR = Path(os.environ.get("WAYBILL_BINARY_DIR", blackbox.SOURCE / "build/release"))


class Installed(blackbox.Case):
    @classmethod
    def setUpClass(cls):
        cls.prefix = BINARY_DIR / "test-prefix"
        shutil.rmtree(cls.prefix, ignore_errors=True)
        cls.addClassCleanup(shutil.rmtree, cls.prefix, ignore_errors=True)
        done = subprocess.run(["cmake", "--install", str(BINARY_DIR), "--prefix", str(cls.prefix)], capture_output=True, text=True)
        if done.returncode != 0:
            raise AssertionError(done.stderr)

    def call(self, *command, **more):
        done = subprocess.run([str(word) for word in command], cwd=self.folder, capture_output=True, text=True, timeout=600, **more)
        self.assertEqual(done.returncode, 0, f"{' '.join(map(str, command))}\n{done.stdout}{done.stderr}")
        return done.stdout

    def build_examples(self, compiler):
        self.call("cmake", "-S", blackbox.SOURCE / "examples", "-B", "build", f"-DCMAKE_PREFIX_PATH={self.prefix}",
                  f"-DCMAKE_CXX_COMPILER={compiler}", "-DCMAKE_BUILD_TYPE=Release")
        self.call("cmake", "--build", "build")

    def run_examples(self):
        self.write_config()
        lines = self.call("build/route", "waybill.yaml", "my program crashes with a segmentation fault", "must I sign this contract?")
        self.assertEqual([line.split("\t")[:2] for line in lines.splitlines()], [["coding", "qwen-coder"], ["legal", "claude"]])
        out = self.call("build/embed_many", "waybill.yaml",
                        input="the cat sat on the mat\na cat was sitting on a mat\nstock prices fell sharply\nmy bread did not rise\n")
        self.assertEqual(out.splitlines()[0], "4 texts of 384 numbers")
        self.assertIn("the cat sat on the mat\ta cat was sitting on a mat", out.splitlines()[1])

    def test_the_examples_build_with_find_package_and_route_real_prompts(self):
        self.build_examples(os.environ.get("CXX", "c++"))
        self.run_examples()

    def test_another_compiler_links_it_too(self):
        if shutil.which("g++-12") is None:
            self.skipTest("g++-12 is not installed")
        self.build_examples("g++-12")
        self.run_examples()

    def test_pkg_config_is_enough(self):
        environment = dict(os.environ, PKG_CONFIG_PATH=str(next(self.prefix.rglob("pkgconfig"))))
        flags = self.call("pkg-config", "--cflags", "--libs", "waybill", env=environment).split()
        self.call(os.environ.get("CXX", "c++"), blackbox.SOURCE / "examples/route.cc", "-o", "route", *flags)
        self.write_config()
        self.assertIn("legal", self.call("./route", "waybill.yaml", "must I sign this contract?"))

    def test_failures_are_values_with_a_sentence(self):
        self.build_examples(os.environ.get("CXX", "c++"))
        self.write("bad.yaml", "routes:\n  - nam: x\n")
        done = subprocess.run([self.folder / "build/route", "bad.yaml", "x"], cwd=self.folder, capture_output=True, text=True)
        self.assertEqual(done.returncode, 1)
        self.assertIn("bad.yaml:2", done.stderr)

    def test_no_internal_header_is_installed(self):
        headers = {str(path.relative_to(self.prefix / "include")) for path in (self.prefix / "include").rglob("*.h")}
        self.assertEqual(headers, {"waybill/error.h", "waybill/router.h"})

    def test_the_program_comes_with_manual_pages_and_completions(self):
        for path in ("bin/waybill", "share/man/man1/waybill-route.1", "share/bash-completion/completions/waybill",
                     "share/zsh/site-functions/_waybill", "share/fish/vendor_completions.d/waybill.fish", "share/waybill/fetch-model"):
            self.assertTrue((self.prefix / path).exists(), path)
        self.assertTrue(os.access(self.prefix / "share/waybill/fetch-model", os.X_OK))


if __name__ == "__main__":
    blackbox.main()
