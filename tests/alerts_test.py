#!/usr/bin/env python3
"""Prometheus' own promtool accepts the alerts and their unit tests; what alerts and dashboard ask for exists."""
import json
import re
import shutil
import subprocess
import sys
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
import blackbox

ALERTS = blackbox.SOURCE / "deploy/prometheus/alerts.yaml"
ALERTS_TEST = blackbox.SOURCE / "deploy/prometheus/alerts_test.yaml"
DASHBOARD = blackbox.SOURCE / "deploy/grafana/waybill.json"
SUFFIXES = ("_bucket", "_sum", "_count")


def documented():
    """{name: (kind, labels)} of docs/metrics.md, which a unit test holds against the program."""
    page = (blackbox.SOURCE / "docs/metrics.md").read_text()
    rows = re.findall(r"^\| `((?:waybill|process)_\w+)` \| (\w+) \| ([^|]*) \|", page, re.MULTILINE)
    return {name: (kind, set(re.findall(r"`(\w+)`", labels))) for name, kind, labels in rows}


def used(expression):
    """[(metric, {label})] of a PromQL expression."""
    found = []
    for name, matchers in re.findall(r"\b((?:waybill|process)_\w+)(?:\{([^}]*)\})?", expression):
        found.append((name, set(re.findall(r"(\w+)\s*(?:=~|!~|!=|=)", matchers or ""))))
    return found


def mistakes(expressions, metrics):
    """What in these expressions no metric answers."""
    wrong = []
    for expression in expressions:
        for name, labels in used(expression):
            base = next((name.removesuffix(s) for s in SUFFIXES if name.endswith(s) and metrics.get(name.removesuffix(s), ("",))[0] == "histogram"), name)
            if base not in metrics:
                wrong.append(f"no metric {name}")
                continue
            known = metrics[base][1] | {"instance", "job"} | ({"le"} if name.endswith("_bucket") else set())
            wrong += [f"{name} has no label {label}" for label in sorted(labels - known)]
    return wrong


def promtool(*arguments):
    program = shutil.which("promtool")
    assert program, "promtool is missing; tools/setup installs it (Debian package prometheus)"
    return subprocess.run([program, *map(str, arguments)], capture_output=True, text=True, timeout=300)


class Alerts(blackbox.Case):
    def test_promtool_accepts_the_rules(self):
        done = promtool("check", "rules", ALERTS)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertRegex(done.stdout, r"SUCCESS: \d+ rules found")

    def test_each_alert_fires_when_it_should(self):
        done = promtool("test", "rules", ALERTS_TEST)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)

    def test_each_alert_has_a_unit_test_in_which_it_fires(self):
        names = set(re.findall(r"alert: (\w+)", ALERTS.read_text()))
        tests = ALERTS_TEST.read_text()
        fired = set(re.findall(r"alertname: (\w+)\n\s+exp_alerts:\n\s+- exp_labels", tests))
        self.assertGreater(len(names), 5)
        self.assertEqual(names, fired)

    def test_a_rule_that_is_wrong_is_noticed(self):
        broken = self.write("alerts.yaml", ALERTS.read_text().replace("!= 0", "!= 5", 1))
        self.write("alerts_test.yaml", ALERTS_TEST.read_text())
        self.assertTrue(broken.exists())
        self.assertNotEqual(promtool("test", "rules", self.folder / "alerts_test.yaml").returncode, 0)

    def test_alerts_ask_for_metrics_that_exist(self):
        rules = re.sub(r"#.*", "", ALERTS.read_text())
        expressions = re.findall(r"expr: (?:>\n)?(.*?)\n\s+(?:for|labels):", rules, re.DOTALL)
        self.assertEqual(len(expressions), rules.count("alert: "))
        self.assertEqual(mistakes(expressions, documented()), [])


class Dashboard(blackbox.Case):
    def test_panels_ask_for_metrics_that_exist_and_promtool_reads_them(self):
        dashboard = json.loads(DASHBOARD.read_text())
        expressions = [target["expr"] for panel in dashboard["panels"] for target in panel.get("targets", [])]
        self.assertGreater(len(expressions), 10)
        self.assertEqual(mistakes(expressions, documented()), [])
        filled = [e.replace("$__rate_interval", "5m").replace("$instance", "a") for e in expressions]
        rules = {"groups": [{"name": "g", "rules": [{"record": f"r:{i}", "expr": e} for i, e in enumerate(filled)]}]}
        done = promtool("check", "rules", self.write("rules.yaml", json.dumps(rules)))
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)

    def test_panels_do_not_overlap(self):
        cells = {}
        for panel in json.loads(DASHBOARD.read_text())["panels"]:
            place = panel["gridPos"]
            for x in range(place["x"], place["x"] + place["w"]):
                for y in range(place["y"], place["y"] + place["h"]):
                    self.assertLess(x, 24)
                    self.assertNotIn((x, y), cells, panel["title"])
                    cells[x, y] = panel["title"]


class TheChecksThemselves(unittest.TestCase):
    METRICS = {"waybill_a_total": ("counter", {"outcome"}), "waybill_b_seconds": ("histogram", set())}

    def test_unknown_names_and_labels_are_found(self):
        self.assertEqual(mistakes(["rate(waybill_a_total{outcome=\"x\"}[5m])", "waybill_b_seconds_bucket{le=\"1\"}"], self.METRICS), [])
        self.assertEqual(mistakes(["waybill_c"], self.METRICS), ["no metric waybill_c"])
        self.assertEqual(mistakes(["waybill_a_total_bucket"], self.METRICS), ["no metric waybill_a_total_bucket"])
        self.assertEqual(mistakes(["waybill_a_total{route!=\"\"}"], self.METRICS), ["waybill_a_total has no label route"])


if __name__ == "__main__":
    blackbox.main()
