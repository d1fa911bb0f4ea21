#!/usr/bin/env python3
"""Telemetry against what reads it in earnest: the OpenTelemetry Collector, Prometheus, promtool.

Run by `make test-services`. The collector is built from Go modules on first use, which takes some minutes."""
import http.server
import json
import os
import shutil
import socket
import subprocess
import sys
import threading
import time
import urllib.parse
import urllib.request
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
import blackbox
import real_services
from real_services import free_ports, until

PROBE = Path(os.environ.get("WAYBILL_TELEMETRY_PROBE", blackbox.SOURCE / "build/release/tests/telemetry_probe"))


class Services(real_services.Case):
    def probe(self, endpoint, requests):
        self.text, self.open_metrics = self.folder / "metrics.txt", self.folder / "metrics.om"
        done = subprocess.run([str(PROBE), endpoint, str(requests), str(self.text), str(self.open_metrics)], capture_output=True, text=True, timeout=120)
        self.assertEqual(done.returncode, 0, done.stderr)
        return json.loads(done.stdout)


class Collector(Services):
    def test_the_collector_takes_every_span_with_its_parent_and_times(self):
        port = free_ports(2)
        self.start("otlp", port)
        said = self.probe(f"http://127.0.0.1:{port}", 300)
        self.assertEqual((said["exported"], said["dropped"]), (900, 0))
        file = self.folder / "otlp/otlp.jsonl"

        def spans():
            lines = file.read_text().splitlines() if file.exists() else []
            found = [span for line in lines for r in json.loads(line)["resourceSpans"] for s in r["scopeSpans"] for span in s["spans"]]
            return found if len(found) >= 900 else None

        found = until(spans, "900 spans in the collector's file")
        self.assertEqual(len(found), 900)
        self.assertEqual({span["traceId"] for span in found}, {"4bf92f3577b34da6a3ce929d0e0e4736"})
        self.assertEqual(len({span["spanId"] for span in found}), 900)
        roots = [span for span in found if span["parentSpanId"] == "00f067aa0ba902b7"]
        self.assertEqual(len(roots), 300)
        children = [span for span in found if span["name"] in ("queue", "encode")]
        self.assertEqual({span["parentSpanId"] for span in children}, {span["spanId"] for span in roots})
        attributes = [{a["key"]: a["value"] for a in span["attributes"]} for span in roots]
        self.assertEqual({a["waybill.id"]["stringValue"] for a in attributes}, set(said["ids"]))
        self.assertIn('probe-7 "quoted" é', {a["waybill.request_id"]["stringValue"] for a in attributes})
        self.assertEqual(sum(span.get("status", {}).get("code") == 2 for span in roots), 150)
        for span in children:
            length = int(span["endTimeUnixNano"]) - int(span["startTimeUnixNano"])
            self.assertEqual(length, 1_000_000 if span["name"] == "queue" else 2_000_000)

    def test_a_collector_that_is_not_there_costs_spans_and_nothing_else(self):
        said = self.probe(f"http://127.0.0.1:{free_ports()}", 10)
        self.assertEqual((said["exported"], said["dropped"]), (0, 30))
        self.assertIn("waybill_ledger_imbalance 0\n", self.text.read_text())

    def test_something_that_does_not_speak_otlp_costs_spans_and_nothing_else(self):
        with socket.create_server(("127.0.0.1", 0)) as server:
            def talk_nonsense():
                while True:
                    try:
                        connection, _ = server.accept()
                    except OSError:
                        return
                    with connection:
                        connection.recv(1000)
                        connection.sendall(b"SSH-2.0-OpenSSH_9.2\r\n")
            threading.Thread(target=talk_nonsense, daemon=True).start()
            said = self.probe(f"http://127.0.0.1:{server.getsockname()[1]}", 10)
        self.assertEqual((said["exported"], said["dropped"]), (0, 30))


class Scrape(Services):
    def setUp(self):
        super().setUp()
        self.probe(f"http://127.0.0.1:{free_ports()}", 20)

    def test_promtool_accepts_the_text_format(self):
        program = shutil.which("promtool")
        self.assertTrue(program, "promtool is missing; tools/setup installs it (Debian package prometheus)")
        done = subprocess.run([program, "check", "metrics"], input=self.text.read_text(), capture_output=True, text=True, timeout=60)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)

    def test_prometheus_reads_openmetrics_with_its_exemplars(self):
        body = self.open_metrics.read_bytes()

        class Metrics(http.server.BaseHTTPRequestHandler):
            def do_GET(self):
                self.send_response(200)
                self.send_header("Content-Type", "application/openmetrics-text; version=1.0.0; charset=utf-8")
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *arguments):
                pass

        server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Metrics)
        self.addCleanup(server.server_close)
        self.addCleanup(server.shutdown)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        port = free_ports()
        self.start("prometheus", port, TARGETS=f"127.0.0.1:{server.server_port}")

        def ask(path, **query):
            with urllib.request.urlopen(f"http://127.0.0.1:{port}/api/v1/{path}?{urllib.parse.urlencode(query)}", timeout=10) as answer:
                return json.load(answer)["data"]

        def scraped():
            return ask("query", query='waybill_requests_total{outcome="completed"}')["result"]

        found = until(scraped, "the first scrape")
        self.assertEqual(found[0]["value"][1], "10")
        self.assertEqual(found[0]["metric"]["tier"], "encoder")
        self.assertEqual([t["health"] for t in ask("targets")["activeTargets"]], ["up"])
        self.assertEqual(ask("metadata", metric="waybill_request_seconds")["waybill_request_seconds"][0]["unit"], "seconds")
        now = time.time()
        exemplars = until(lambda: ask("query_exemplars", query="waybill_stage_seconds_bucket", start=now - 600, end=now + 60), "exemplars")
        traces = {e["labels"]["trace_id"] for series in exemplars for e in series["exemplars"]}
        self.assertEqual(traces, {"4bf92f3577b34da6a3ce929d0e0e4736"})


if __name__ == "__main__":
    blackbox.main()
