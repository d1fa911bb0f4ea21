#!/usr/bin/env python3
"""Webhooks of jobs, as their receivers meet them: signed, tried again, turned away, sent once more."""
import json
import re
import socket
import ssl
import subprocess
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
import python_packages

python_packages.need("standardwebhooks==1.1.0")

from standardwebhooks import Webhook, WebhookVerificationError

import blackbox
from gateway_config import APP, OPS
from jobs import ENVIRONMENT, JOBS, Jobs, NARROW
from served import Server

SECRET = ENVIRONMENT["WEBHOOK_SECRET"]
NEW_SECRET = "whsec_bmV3IHNlY3JldCBvZiB0aGlydHktdHdvIGJ5dGVzIQ=="
SCHEDULE = ", schedule: [50ms, 50ms, 50ms]"
FAST = JOBS.replace("allow_private: true", "allow_private: true, timeout: 2s" + SCHEDULE)


def listens(port):
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


class Receiver:
    """Answers each path with what its `rules` say, in turn, the last of them for ever: a status, (status, headers), "slow", "cut"."""

    def __init__(self, case, rules=None, context=None):
        self.rules, self.got, self.lock, self.released = rules or {}, [], threading.Condition(), threading.Event()
        receiver = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self):
                body = self.rfile.read(int(self.headers["content-length"]))
                with receiver.lock:
                    rules = receiver.rules.get(self.path, [204])
                    rule = rules.pop(0) if len(rules) > 1 else rules[0]
                    receiver.got.append({"path": self.path, "at": time.monotonic(), "headers": dict(self.headers), "body": body})
                    receiver.lock.notify_all()
                if rule == "cut":
                    self.connection.close()
                    self.close_connection = True
                    return
                if rule == "slow":
                    receiver.released.wait(60)
                    rule = 204
                status, headers = rule if isinstance(rule, tuple) else (rule, {})
                self.send_response(status)
                for name, value in headers.items():
                    self.send_header(name, value)
                self.send_header("content-length", "0")
                self.end_headers()

            def do_GET(self):
                receiver.got.append({"path": self.path, "method": "GET"})
                self.send_error(500)

            def log_message(self, *_):
                pass

        class Listening(ThreadingHTTPServer):
            daemon_threads, request_queue_size = True, 128

            def handle_error(self, *_):
                pass

        self.server = Listening(("127.0.0.1", 0), Handler)
        if context:
            self.server.socket = context.wrap_socket(self.server.socket, server_side=True)
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        self.url = f"http{'s' if context else ''}://127.0.0.1:{self.server.server_address[1]}"
        case.addCleanup(self.server.server_close)
        case.addCleanup(self.server.shutdown)
        case.addCleanup(self.released.set)

    def at(self, path):
        with self.lock:
            return [each for each in self.got if each["path"] == path]

    def wait(self, path, count=1):
        with self.lock:
            if not self.lock.wait_for(lambda: len([each for each in self.got if each["path"] == path]) >= count, 60):
                raise AssertionError(f"{path} was called {self.got}")
        return self.at(path)


class Webhooks(Jobs):
    more = FAST

    def setUp(self):
        self.receiver = Receiver(self)
        super().setUp()

    def delivery(self, job, state):
        """The latest of a job, when it has that state."""
        deadline = time.monotonic() + 60
        while True:
            found = self.server.get(f"/v1/webhooks/deliveries?job={job}", headers=OPS).json["data"]
            if found and found[0]["state"] == state:
                return found[0]
            self.assertLess(time.monotonic(), deadline, found)
            time.sleep(0.02)

    def told(self, path="/hook", **more):
        """A job that has ended, and what its webhook was told."""
        job = self.submit(webhook=self.receiver.url + path, **more)["id"]
        self.ended(job)
        return job, self.receiver.wait(path)

    def metric(self, name):
        text = self.server.get("/metrics", headers=OPS).body.decode()
        return {labels: float(value) for labels, value in re.findall(rf"^{name}(?:{{(.*)}})? (\S+)$", text, re.MULTILINE)}


class Delivered(Webhooks):
    def test_what_is_sent_is_signed_and_tells_of_the_job(self):
        trace = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
        answer = self.server.post("/v1/jobs", {"request": {"model": "mock", "messages": [{"role": "user", "content": "grüße"}]},
                                               "webhook": {"url": self.receiver.url + "/hook?tenant=7"}, "metadata": {"n": "1"}},
                                  headers={**APP, "x-correlation-id": "order-7", "traceparent": trace})
        job = self.ended(answer.json["id"])
        [call] = self.receiver.wait("/hook?tenant=7")
        event = Webhook(SECRET).verify(call["body"], call["headers"])
        with self.assertRaises(WebhookVerificationError):
            Webhook(SECRET).verify(call["body"] + b" ", call["headers"])
        self.assertEqual(call["headers"]["Content-Type"], "application/cloudevents+json; charset=utf-8")
        self.assertEqual(call["headers"]["x-correlation-id"], "order-7")
        self.assertEqual(call["headers"]["traceparent"][3:35], trace[3:35])
        self.assertEqual((event["specversion"], event["type"], event["subject"]), ("1.0", "ai.waybill.job.completed", job["id"]))
        self.assertEqual((event["id"], event["correlationid"]), (call["headers"]["webhook-id"], "order-7"))
        self.assertEqual(event["data"], job)
        self.assertEqual(self.delivery(job["id"], "delivered")["attempts"], 1)

    def test_all_ends_are_told(self):
        self.a.rule("status=500")
        dead, _ = self.told("/dead", max_receives=1)
        self.a.rule("status=422")
        self.told("/failed")
        self.a.rule("")
        held = self.submit(request={}, queue="gpu", webhook=self.receiver.url + "/cancelled")
        self.post(f"/v1/jobs/{held['id']}/cancel")
        self.submit(request={}, queue="gpu", webhook=self.receiver.url + "/expired", expires_in=0.2)
        for end in ("dead", "failed", "cancelled", "expired"):
            event = json.loads(self.receiver.wait("/" + end)[0]["body"])
            self.assertEqual((event["type"], event["data"]["status"]), (f"ai.waybill.job.{end}", end))
        event = json.loads(self.receiver.at("/dead")[0]["body"])
        self.assertEqual([each["status"] for each in event["data"]["attempts"]], [502])
        # Tried again it ends anew, which is another event.
        self.post(f"/v1/jobs/{dead}/retry", headers=APP, status=202)
        first, second = self.receiver.wait("/dead", 2)
        self.assertNotEqual(first["headers"]["webhook-id"], second["headers"]["webhook-id"])
        self.assertEqual(json.loads(second["body"])["type"], "ai.waybill.job.completed")

    def test_a_large_result_is_to_be_fetched(self):
        lease = lambda: self.post("/v1/queues/gpu/lease", {"max": 1, "wait": 10})["data"][0]
        for name, size, sent in (("/small", 200_000, True), ("/large", 300_000, False)):
            self.submit(request={}, queue="gpu", webhook=self.receiver.url + name)
            self.post(f"/v1/leases/{lease()['token']}/complete", {"result": "x" * size})
            data = json.loads(self.receiver.wait(name)[0]["body"])["data"]
            self.assertEqual((data["status"], data.get("result") is not None), ("completed", sent))
            self.assertEqual(self.server.get(data["result_url"], headers=OPS).status, 200)

    def test_secrets_change_without_a_break(self):
        both = self.more.replace("secrets: [{env: WEBHOOK_SECRET}]", "secrets: [{file: new}, {env: WEBHOOK_SECRET}]")
        self.write("new", NEW_SECRET + "\n")
        config = (self.folder / "waybill.yaml").read_text()
        self.write("waybill.yaml", config.replace(self.more, both))
        self.post("/v1/admin/reload")
        _, [call] = self.told("/both")
        for secret in (SECRET, NEW_SECRET):
            Webhook(secret).verify(call["body"], call["headers"])
        self.write("waybill.yaml", config.replace(self.more, both.replace(", {env: WEBHOOK_SECRET}", "")))
        self.post("/v1/admin/reload")
        _, [call] = self.told("/new")
        Webhook(NEW_SECRET).verify(call["body"], call["headers"])
        with self.assertRaises(WebhookVerificationError):
            Webhook(SECRET).verify(call["body"], call["headers"])


class Failed(Webhooks):
    def test_it_is_tried_again_until_it_is_taken_with_the_same_id(self):
        self.receiver.rules["/hook"] = ["cut", 500, 404, 204]  # cut is a fresh connection: a kept one would be made anew at once
        job, _ = self.told()
        calls = self.receiver.wait("/hook", 4)
        self.assertEqual(len({call["headers"]["webhook-id"] for call in calls}), 1)
        for call in calls:
            Webhook(SECRET).verify(call["body"], call["headers"])
        found = self.delivery(job, "delivered")
        self.assertEqual((found["attempts"], found["status"]), (4, 204))
        self.assertEqual(self.metric("waybill_webhook_deliveries_total"), {'result="again"': 3, 'result="delivered"': 1})
        failures = self.server.wait_for_event("a webhook was not delivered", 3)
        self.assertNotIn("/hook", json.dumps(failures))

    def test_after_the_schedule_it_is_dead_until_it_is_sent_once_more(self):
        self.receiver.rules["/hook"] = [500]
        job, _ = self.told()
        found = self.delivery(job, "dead")
        self.assertEqual((found["attempts"], found["status"], len(self.receiver.at("/hook"))), (4, 500, 4))
        dead = self.server.get("/v1/webhooks/deliveries?dead=true", headers=OPS).json["data"]
        self.assertEqual([each["job"] for each in dead], [job])
        self.assertEqual(self.server.get("/v1/webhooks/deliveries", headers=APP).status, 403)
        self.receiver.rules["/hook"] = [204]
        for headers, status in ((NARROW, 404), (APP, 202)):
            self.post(f"/v1/jobs/{job}/webhook/resend", headers=headers, status=status)
        self.delivery(job, "delivered")
        calls = self.receiver.at("/hook")
        self.assertEqual((len(calls), len({call["headers"]["webhook-id"] for call in calls})), (5, 1))
        self.post(f"/v1/jobs/{self.submit()['id']}/webhook/resend", headers=APP, status=409)

    def test_retry_after_is_kept_to(self):
        for status in (429, 503):
            path = f"/{status}"
            self.receiver.rules[path] = [(status, {"retry-after": "2"}), 204]
            self.told(path)
            first, second = self.receiver.wait(path, 2)
            self.assertGreaterEqual(second["at"] - first["at"], 1.9)

    def test_who_is_gone_is_not_called_again(self):
        self.receiver.rules["/gone"] = [410]
        job, _ = self.told("/gone")
        self.assertEqual((self.delivery(job, "dead")["status"], len(self.receiver.at("/gone"))), (410, 1))
        later = self.submit(webhook=self.receiver.url + "/gone")["id"]
        self.ended(later)
        self.delivery(later, "dead")
        self.assertEqual(len(self.receiver.at("/gone")), 1)
        self.receiver.rules["/gone"] = [204]
        self.post(f"/v1/jobs/{job}/webhook/resend", headers=APP, status=202)
        self.delivery(job, "delivered")
        self.told("/gone")
        self.receiver.wait("/gone", 3)

    def test_redirects_are_not_followed(self):
        inner = Receiver(self)
        for status in (301, 302, 303, 307, 308):
            path = f"/{status}"
            self.receiver.rules[path] = [(status, {"location": inner.url + "/secret"}), 204]
            job, _ = self.told(path)
            self.delivery(job, "delivered")
        self.assertEqual(inner.got, [])

    def test_a_slow_receiver_delays_only_itself(self):
        slow = Receiver(self, {"/slow": ["slow"]})
        jobs = [self.submit(webhook=slow.url + "/slow")["id"] for _ in range(20)]
        for job in jobs:
            self.ended(job)
        slow.wait("/slow", 8)
        began = len(slow.at("/slow"))
        job, _ = self.told("/quick")
        self.assertEqual(self.delivery(job, "delivered")["attempts"], 1)
        self.assertLess(began, 20, "a host has a quarter of the 32 at most")
        slow.released.set()
        for job in jobs:
            self.delivery(job, "delivered")

    def test_a_receiver_that_does_not_answer_is_given_up(self):
        self.receiver.rules["/slow"] = ["slow", 204]
        job, _ = self.told("/slow")
        found = self.delivery(job, "delivered")
        self.assertEqual(found["attempts"], 2)

    def test_what_was_not_delivered_is_delivered_after_a_restart(self):
        self.receiver.rules["/hook"] = [(503, {"retry-after": "1"}), 204]
        job, _ = self.told()
        self.restart(kill=True)
        self.delivery(job, "delivered")
        first, second = self.receiver.at("/hook")
        self.assertEqual(first["headers"]["webhook-id"], second["headers"]["webhook-id"])


class Forbidden(Webhooks):
    more = FAST.replace("allow_private: true, ", "")

    def test_where_webhooks_may_not_go(self):
        port = self.receiver.url.rsplit(":", 1)[1]
        for url in ("ftp://a/", "https://", "https://user:pw@a/", "https://a:0/", "//a/", f"http://127.0.0.1:{port}/", f"http://[::1]:{port}/",
                    f"http://[::ffff:127.0.0.1]:{port}/", "http://169.254.169.254/latest/meta-data", "https://10.0.0.1/", "https://[fe80::1]/"):
            answer = self.server.post("/v1/jobs", {"request": {}, "queue": "gpu", "webhook": url}, headers=APP)
            self.assertIn(answer.status, (400, 403), url)
            self.assertEqual(answer.error["param"], "webhook", url)
        # Names and other forms are seen when they are resolved.
        for host in ("localhost", "127.1", "2130706433", "0x7f.1"):
            job = self.submit(webhook=f"http://{host}:{port}/hook")["id"]
            self.ended(job)
            self.assertIn("may not be called", self.delivery(job, "dead")["error"], host)
        self.assertEqual(self.receiver.got, [])

    def test_none_without_a_secret(self):
        config = (self.folder / "waybill.yaml").read_text()
        self.write("waybill.yaml", config.replace(", secrets: [{env: WEBHOOK_SECRET}]", ""))
        self.post("/v1/admin/reload")
        self.assertIn("secrets", self.refused(400, "webhook", request={}, queue="gpu", webhook="https://hooks.example.com/"))


class Https(Webhooks):
    def start(self):
        self.keys, self.authority = self.folder / "hook.key", self.folder / "hook.pem"
        subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2", "-subj", "/CN=hook",
                        "-addext", "subjectAltName=IP:127.0.0.1", "-keyout", str(self.keys), "-out", str(self.authority)], check=True, capture_output=True)
        super().start()

    def test_the_receiver_must_be_who_it_says(self):
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(self.authority, self.keys)
        self.receiver = Receiver(self, context=context)
        job = self.submit(webhook=self.receiver.url + "/hook")["id"]
        self.assertIn("tls: self-signed certificate", self.delivery(job, "dead")["error"])
        self.assertEqual(self.receiver.got, [])
        self.assertEqual(self.server.stop(), 0)
        self.server = Server(self, self.folder / "waybill.yaml", environment={**ENVIRONMENT, "SSL_CERT_FILE": str(self.authority)})
        _, [call] = self.told("/trusted")
        Webhook(SECRET).verify(call["body"], call["headers"])


class Examples(Webhooks):
    """The receivers of docs/webhooks.md."""

    def test_they_take_what_is_sent_and_nothing_else(self):
        page = (blackbox.SOURCE / "docs/webhooks.md").read_text()
        examples = re.findall(r"^```python\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)
        self.assertEqual(len(examples), 2)
        for i, text in enumerate(examples):
            program = self.write(f"receiver{i}.py", text)
            for secret, state in ((SECRET, "delivered"), (NEW_SECRET, "dead")):
                free = Receiver(self)
                port = int(free.url.rsplit(":", 1)[1])
                free.server.shutdown()
                free.server.server_close()
                with subprocess.Popen([sys.executable, str(program), str(port), secret], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                                      text=True) as process:
                    try:
                        deadline = time.monotonic() + 30
                        while not listens(port) and time.monotonic() < deadline:
                            time.sleep(0.02)
                        job = self.submit(webhook=f"http://127.0.0.1:{port}/hook")["id"]
                        found = self.delivery(job, state)
                        self.assertEqual(found["status"], 204 if state == "delivered" else 401)
                        if state == "delivered":
                            self.assertIn(f"ai.waybill.job.completed {job}", process.stdout.readline())
                    finally:
                        process.kill()


if __name__ == "__main__":
    blackbox.main()
