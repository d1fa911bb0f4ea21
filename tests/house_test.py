#!/usr/bin/env python3
"""The house stands as docs/architecture.md says: floors, sizes, a README in each folder."""
import re
import sys
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
import blackbox

MAX_LINES = 600


def linked_parts(cmake):
    """{part: [the parts its waybill_part() lists]} of one CMakeLists.txt."""
    text = re.sub(r"#.*", "", cmake)
    parts = {}
    for name, body in re.findall(r"waybill_part\(\s*(\w+)([^)]*)\)", text):
        words = body.split()
        keywords = {"SOURCES", "PARTS", "LIBRARIES"}
        listed = []
        if "PARTS" in words:
            for word in words[words.index("PARTS") + 1:]:
                if word in keywords:
                    break
                listed.append(word)
        parts[name] = listed
    return parts


def included_parts(source, parts):
    """The parts whose headers a source file includes."""
    return {path.split("/")[0] for path in re.findall(r'^\s*#\s*include\s+"([^"]+/[^"]+)"', source, re.MULTILINE)
            if path.split("/")[0] in parts}


def reachable(links, part):
    """The part's list and the lists of those, as the linker sees it."""
    seen, open_parts = set(), [part]
    while open_parts:
        for below in links.get(open_parts.pop(), []):
            if below not in seen:
                seen.add(below)
                open_parts.append(below)
    return seen


def circles(links):
    return [part for part in links if part in reachable(links, part)]


def trespasses(links, sources):
    """(file, part) for each file of `sources` {path: (part, text)} that includes what its part does not list."""
    return [(path, other) for path, (part, text) in sources.items() for other in sorted(included_parts(text, links))
            if other != part and other not in links.get(part, [])]


class House(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.links = {}
        cls.sources = {}
        for cmake in sorted((blackbox.SOURCE / "src").glob("*/CMakeLists.txt")):
            cls.links.update(linked_parts(cmake.read_text()))
        for path in sorted((blackbox.SOURCE / "src").glob("*/**/*")):
            if path.suffix in (".h", ".cc"):
                part = path.relative_to(blackbox.SOURCE / "src").parts[0]
                cls.sources[str(path.relative_to(blackbox.SOURCE))] = (part, path.read_text())

    def test_a_part_includes_only_parts_that_it_lists(self):
        self.assertGreaterEqual(len(self.links), 5)
        self.assertGreater(len(self.sources), 50)
        self.assertEqual(trespasses(self.links, self.sources), [])

    def test_there_are_no_circles(self):
        self.assertEqual(circles(self.links), [])

    def test_base_stands_on_nothing(self):
        self.assertEqual(self.links["base"], [])

    def test_listed_parts_exist(self):
        for part, listed in self.links.items():
            for other in listed:
                self.assertIn(other, self.links, f"{part} lists {other}")

    def test_no_file_is_too_long(self):  # .inc files are generated tables
        folders = ("src", "include", "tests", "examples", "tools", "cmake")
        long_files = {}
        for folder in folders:
            for path in (blackbox.SOURCE / folder).rglob("*"):
                if path.suffix in (".h", ".cc", ".py", ".cmake", ".S") and path.is_file():
                    lines = path.read_text().count("\n")
                    if lines > MAX_LINES:
                        long_files[str(path.relative_to(blackbox.SOURCE))] = lines
        self.assertEqual(long_files, {})

    def test_each_part_has_a_readme(self):
        for part in self.links:
            self.assertTrue((blackbox.SOURCE / "src" / part / "README.md").exists(), part)

    def test_headers_have_an_include_guard_and_public_ones_show_nothing_internal(self):
        for path in (blackbox.SOURCE / "src").rglob("*.h"):
            self.assertIn("#pragma once", path.read_text(), path)
        for path in (blackbox.SOURCE / "include").rglob("*.h"):
            self.assertEqual(included_parts(path.read_text(), self.links), set(), path)


class TheRulesThemselves(unittest.TestCase):
    """Each rule above can fail."""

    LINKS = {"base": [], "embed": ["base"], "route": ["embed", "base"]}

    def test_an_unlisted_include_is_found(self):
        sources = {"src/embed/a.cc": ("embed", '#include "embed/a.h"\n#include "route/router.h"\n#include <vector>\n')}
        self.assertEqual(trespasses(self.LINKS, sources), [("src/embed/a.cc", "route")])

    def test_what_a_part_only_reaches_through_another_counts_as_unlisted(self):
        links = {"base": [], "embed": ["base"], "route": ["embed"]}
        sources = {"src/route/a.cc": ("route", '#include "base/file.h"\n')}
        self.assertEqual(trespasses(links, sources), [("src/route/a.cc", "base")])

    def test_listed_includes_pass(self):
        sources = {"src/route/a.cc": ("route", '#include "embed/model.h"\n  #include "base/file.h"\n')}
        self.assertEqual(trespasses(self.LINKS, sources), [])

    def test_a_circle_is_found(self):
        self.assertEqual(circles({**self.LINKS, "base": ["route"]}), ["base", "embed", "route"])

    def test_cmake_lists_are_read(self):
        cmake = "waybill_part(route\n  SOURCES a.cc # base\n  PARTS base config\n  LIBRARIES x)\nwaybill_test(route SOURCES b.cc)\n"
        self.assertEqual(linked_parts(cmake), {"route": ["base", "config"]})


if __name__ == "__main__":
    blackbox.main()
