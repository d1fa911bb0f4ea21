#!/usr/bin/env python3
"""openapi.yaml against the running server: every endpoint is described, every answer is as described, every status that is
described can be had."""
import json
import re
import subprocess
import sys
import threading
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
import blackbox
import python_packages

PACKAGES = ("schemathesis==4.32.5",)
if __name__ == "__main__":
    python_packages.need(*PACKAGES)

import gateway_config
import jobs
import requests
import schemathesis
import yaml
from provider import MockProvider
from served import Server

SPEC = blackbox.SOURCE / "src/api/openapi.yaml"
KEYS = """
keys:
  - {name: app, sha256: 2924a27d7fc715372a952b03583ae5f1221556bcdabbf2a57ff5de577efe11c1}
  - {name: ops, sha256: 2bb80d537b1da3e38bd30361aa855686bde0eacd7162fef6a25fe97bf527a25b, admin: true}
"""  # "app-key" and "secret"
OPS, APP, NOBODY = {"x-api-key": "secret"}, {"x-api-key": "app-key"}, {}
MESSAGES = [{"role": "user", "content": "hi"}]
JOBS = """
store: {path: jobs.db}
jobs:
  wait_for_same_key: false
  queues:
    - {name: gpu, workers: external}
    - {name: small, workers: external, max_depth: 1}
    - {name: default, backoff: {first: 1ms, most: 1ms}}
"""
WEBHOOKS = "  webhooks: {allow_http: true, allow_private: true, secrets: [{env: WEBHOOK_SECRET}]}\n"
# The endpoints that a provider answers, and what they are asked.
CALLS = {"/v1/chat/completions": {"messages": MESSAGES}, "/v1/completions": {"prompt": "hi"}, "/v1/embeddings": {"input": "hi"}}
BODIES = ("/v1/jobs", "/v1/dead-letters/redrive", "/v1/queues/{name}/lease",
          *(f"/v1/leases/{{token}}/{what}" for what in ("heartbeat", "complete", "fail", "release")))
METHODS = ("get", "post", "put", "patch", "delete")


def described():
    """(method, path) -> the statuses. `default` stands for what any answer may be besides."""
    paths = yaml.safe_load(SPEC.read_text())["paths"]
    return {(method.upper(), path): set(operation["responses"]) - {"default"} for path, item in paths.items() for method, operation in item.items()
            if method in METHODS}


class Endpoints(blackbox.Case):
    def test_the_description_and_the_program_have_the_same(self):
        table = (blackbox.SOURCE / "src/api/endpoint.cc").read_text()
        found = {(method.upper(), path) for method, path in re.findall(r'Endpoint\{Method::k(\w+), "([^"]+)"', table)}
        self.assertGreater(len(found), 10)
        self.assertEqual(found, set(described()))

    def test_the_description_and_the_program_take_the_same_parameters(self):
        table = (blackbox.SOURCE / "src/api/endpoint.cc").read_text()
        found = re.findall(r'Endpoint\{Method::k(\w+), "([^"]+)", [\w:]+, \w+, \w+(?:,\s*(?:"([^"]*)"|(kAnyQuery)))?(?:, true)?\}', table)
        self.assertEqual(len(found), len(described()))
        paths = yaml.safe_load(SPEC.read_text())["paths"]
        server = Server(self, self.write_config())
        for method, path, names, takes_any in found:
            with self.subTest(f"{method} {path}"):
                named = [each["name"] for each in paths[path][method.lower()].get("parameters", ()) if each.get("in") == "query"]
                self.assertEqual([each for each in names.split() if not each.endswith(".")], named)
                answer = requests.request(method.upper(), f"http://127.0.0.1:{server.port}{re.sub('{.*}', 'x', path)}?nonsense=1", timeout=60)
                refused = answer.status_code == 400 and "Unknown query parameter" in answer.json()["error"]["message"]
                self.assertNotEqual(refused, bool(takes_any), answer.text)

    def test_the_page_lists_all(self):
        server = Server(self, self.write_config())
        self.assertEqual(server.get("/openapi.yaml").body, SPEC.read_bytes())
        page = server.get("/docs").body.decode()
        for method, path in described():
            self.assertIn(f'<span class="method">{method}</span> <code>{path}</code>', page)


class Answers(blackbox.Case):
    def test_none_is_other_than_described(self):
        """Requests made from the schemas, right and wrong; names of models that there are among them, so that the provider is asked too."""
        mock = MockProvider(self)
        mock.rule("tokens=3")
        server = Server(self, self.write_config(gateway_config.open_text(mock, mock) + JOBS), environment=gateway_config.ENVIRONMENT)
        description = yaml.safe_load(SPEC.read_text())
        for request in ("ChatRequest", "CompletionRequest"):
            description["components"]["schemas"][request]["properties"]["model"]["enum"] = ["mock", "a/mock", "coding", "auto"]
        description["components"]["schemas"]["EmbeddingRequest"]["properties"]["model"]["enum"] = ["mock-embed", "b/any", "all-MiniLM-L6-v2", None]
        spec = self.write("openapi.json", json.dumps(description))
        self.write("schemathesis.toml", "[checks]\nnot_a_server_error.expected-statuses = ['2xx', '4xx', '503', '504']\n")
        waybill = server.post("/route", {"prompt": "a"}).json["request_id"]
        done = subprocess.run(
            [str(Path(sys.executable).parent / "schemathesis"), "--config-file", str(self.folder / "schemathesis.toml"), "run",
             str(spec), "--url", f"http://127.0.0.1:{server.port}", "--max-examples", "40", "--seed", "1", "--no-color",
             "--generation-database", "none", "--request-timeout", "120", "--checks",
             "not_a_server_error,status_code_conformance,content_type_conformance,response_schema_conformance,response_headers_conformance"],
            cwd=self.folder, capture_output=True, text=True, timeout=900)
        self.assertEqual(done.returncode, 0, done.stdout[-6000:] + done.stderr[-2000:])
        operations = re.search(r"Tested:\s+(\d+)", done.stdout)
        self.assertIsNotNone(operations, done.stdout[-3000:])
        self.assertEqual(int(operations[1]), len(described()), done.stdout[-3000:])
        ledger = server.settled_ledger()
        self.assertEqual(ledger["failed"], 0, ledger)
        self.assertEqual(server.get(f"/v1/requests/{waybill}").status, 200)
        asked = mock.settled()
        self.assertGreater(asked["finished"], 50, asked)
        self.assertNotIn("an endpoint threw", server.log_text())


class Statuses(blackbox.Case):
    """Each status is asked for once, and its answer held against the schema."""

    def setUp(self):
        super().setUp()
        self.schema = schemathesis.openapi.from_dict(yaml.safe_load(SPEC.read_text()))
        self.had = set()

    def ask(self, server, method, path, status, operation=None, headers=None, body=None, port=None):
        operation = operation or path.split("?")[0]
        answer = requests.request(method, f"http://127.0.0.1:{port or server.port}{path}", headers=headers,
                                  data=body if body is None or isinstance(body, bytes) else json.dumps(body), timeout=120)
        self.check(method, operation, status, answer)
        return answer

    def check(self, method, operation, status, answer):
        with self.subTest(f"{method} {operation} {status}"):
            self.assertEqual(answer.status_code, status, answer.text)
            self.schema[operation][method].validate_response(answer)
            if status in (429, 503):
                self.assertGreaterEqual(int(answer.headers["retry-after"]), 1)
            self.had.add((method, operation, str(status)))

    def test_every_status_that_is_described_can_be_had(self):
        self.ordinary()
        self.refused()
        self.overloaded()
        self.by_a_provider()
        self.jobs()
        self.without_a_provider()
        self.stopping()
        wanted = {(method, path, status) for (method, path), statuses in described().items() for status in statuses}
        self.assertEqual(wanted - self.had, set())

    def ordinary(self):
        server = Server(self, self.write_config(blackbox.CONFIG + KEYS))
        ask = lambda *given, **more: self.ask(server, *given, **{"headers": OPS, **more})
        for path in ("/route", "/v1/route"):
            ask("POST", path, 200, body={"prompt": "a"})
            ask("POST", path, 200, body={"inputs": ["a", "b"]})
            ask("POST", path, 200, body={"prompt": "why does it crash?", "explain": True})
            ask("POST", path, 400, body={})
            ask("POST", path, 401, body={"prompt": "a"}, headers=NOBODY)
            ask("POST", path, 504, body={"prompt": "new"}, headers=OPS | {"x-waybill-timeout-ms": "0.0001"})
        ask("POST", "/v1/embeddings", 200, body={"input": "a"})
        ask("POST", "/v1/embeddings", 200, body={"input": [[101, 102]], "encoding_format": "base64"})
        ask("POST", "/v1/embeddings", 400, body={"input": []})
        ask("POST", "/v1/embeddings", 401, body={"input": "a"}, headers=NOBODY)
        ask("POST", "/v1/embeddings", 404, body={"input": "a", "model": "gpt"})
        ask("POST", "/v1/embeddings", 504, body={"input": "a"}, headers=OPS | {"x-waybill-timeout-ms": "0.0001"})
        ask("GET", "/v1/models", 200)
        ask("GET", "/v1/models", 400, headers=OPS | {"x-waybill-timeout-ms": "soon"})
        ask("GET", "/v1/models", 401, headers=NOBODY)
        ask("GET", "/v1/models?provider=nobody", 404)
        model = "/v1/models/{id}"
        ask("GET", "/v1/models/claude", 200, model)
        ask("GET", "/v1/models/claude", 400, model, headers=OPS | {"x-waybill-timeout-ms": "-1"})
        ask("GET", "/v1/models/claude", 401, model, headers=NOBODY)
        ask("GET", "/v1/models/nobody", 404, model)
        for path in ("/health", "/ready", "/openapi.yaml", "/docs"):
            ask("GET", path, 200, headers=NOBODY)
        ask("GET", "/v1/requests?outcome=completed&limit=3&since=1h", 200)
        for wrong in ("outcome=lost", "limit=0", "limit=1001", "limit=many", "since=yesterday", "since=99999999999d", "since=-5m",
                      "limt=3", "limit=3&limit=3"):
            ask("GET", f"/v1/requests?{wrong}", 400)
        for path in ("/v1/ledger", "/v1/targets", "/v1/usage"):
            ask("GET", f"{path}?limit=3", 400)
        ask("GET", "/v1/requests/nobody?limit=3", 400, "/v1/requests/{id}")
        listed = ask("GET", "/v1/requests", 200).json()["data"]
        ask("GET", f"/v1/requests/{listed[0]['id']}", 200, "/v1/requests/{id}")
        ask("GET", "/v1/requests/nobody", 404, "/v1/requests/{id}")
        ask("GET", "/v1/ledger", 200)
        ask("GET", "/metrics", 200)
        modern = ask("GET", "/metrics", 200, headers=OPS | {"accept": "application/openmetrics-text"})
        self.assertIn("application/openmetrics-text", modern.headers["content-type"])
        ask("POST", "/v1/admin/reload", 200)
        for status, headers in ((401, NOBODY), (403, APP)):
            ask("GET", "/metrics", status, headers=headers)
            ask("GET", "/v1/requests", status, headers=headers)
            ask("GET", "/v1/requests/x", status, "/v1/requests/{id}", headers=headers)
            ask("GET", "/v1/ledger", status, headers=headers)
            ask("GET", "/v1/targets", status, headers=headers)
            ask("GET", "/v1/usage", status, headers=headers)
            ask("POST", "/v1/admin/reload", status, headers=headers)
        for method, path in (("GET", "/v1/jobs"), ("GET", "/v1/dead-letters"), ("GET", "/v1/queues"), ("POST", "/v1/dead-letters/redrive")):
            ask(method, path, 404)  # without a store
        self.write("waybill.yaml", "routes: [")
        ask("POST", "/v1/admin/reload", 400)

    def refused(self):
        server = Server(self, self.write_config(blackbox.CONFIG + "\nserver:\n  listen: 127.0.0.1:0\n  admin_listen: 127.0.0.1:0\n"
                                                "  max_body_size: 64KiB\n  body_timeout: 300ms\n"), arguments=())
        self.ask(server, "GET", "/metrics", 404)
        self.ask(server, "GET", "/v1/requests", 404)
        self.ask(server, "GET", "/v1/ledger", 404)
        self.ask(server, "GET", "/v1/targets", 404)
        self.ask(server, "GET", "/v1/usage", 404)
        self.ask(server, "POST", "/v1/admin/reload", 404)
        for path in ("/route", "/v1/route", *CALLS, *BODIES):
            self.ask(server, "POST", path, 413, body=b"x" * 70_000)

            def slowly():
                yield b"{"
                time.sleep(3)
                yield b"}"

            answer = requests.post(f"http://127.0.0.1:{server.port}{path}", data=slowly(), timeout=60)
            self.check("POST", path, 408, answer)
        server.kill()

    def by_a_provider(self):
        mock = MockProvider(self)
        server = Server(self, self.write_config(gateway_config.text(mock, mock)), environment=gateway_config.ENVIRONMENT)
        for path, asked in CALLS.items():
            model = "mock-embed" if path == "/v1/embeddings" else "mock"
            own = gateway_config.APP
            answer = self.ask(server, "POST", path, 200, headers=own, body={"model": model, **asked})
            for name in ("route", "score", "tier"):
                self.assertNotIn(f"x-waybill-{name}", answer.headers)
            for name in ("request-id", "model", "target", "attempts", "queue-ms", "cost-usd"):
                self.assertIn(f"x-waybill-{name}", answer.headers)
            if path != "/v1/embeddings":
                self.ask(server, "POST", path, 200, headers=own, body={"model": model, "stream": True, **asked})
                answer = self.ask(server, "POST", path, 200, headers=own, body={"model": "auto", **asked})
                for name in ("route", "score", "tier"):
                    self.assertIn(f"x-waybill-{name}", answer.headers)
            self.ask(server, "POST", path, 400, headers=own, body=b"{")
            self.ask(server, "POST", path, 401, headers=NOBODY, body={"model": model, **asked})
            self.ask(server, "POST", path, 403, headers={"x-api-key": "narrow-key"}, body={"model": "a/other", **asked})
            self.ask(server, "POST", path, 404, headers=own, body={"model": "nothing", **asked})
            self.ask(server, "POST", path, 504, headers=own | {"x-waybill-timeout-ms": "0.0001"}, body={"model": model, **asked})
            for status in (400, 422):
                mock.rule(f"status={status}")
                self.ask(server, "POST", path, status, headers=own, body={"model": model, **asked})
            mock.rule("status=404")
            self.ask(server, "POST", path, 404, headers=own, body={"model": "a/not-there", **asked})
            mock.rule("")
        slow = {"x-api-key": "slow-key"}  # may ask three times in a minute
        for path, asked in CALLS.items():
            answer = self.ask(server, "POST", path, 200, headers=slow, body={"model": "mock-embed" if "embed" in path else "mock", **asked})
            for limit in ("requests", "tokens"):
                for what in ("limit", "remaining", "reset"):
                    self.assertIn(f"x-ratelimit-{what}-{limit}", answer.headers)
        for path, asked in CALLS.items():
            self.ask(server, "POST", path, 429, headers=slow, body={"model": "mock-embed" if "embed" in path else "mock", **asked})
        self.ask(server, "GET", "/v1/targets", 200, headers=gateway_config.OPS)
        self.ask(server, "GET", "/v1/usage", 200, headers=gateway_config.OPS)
        for path in ("/v1/webhooks/deliveries", "/v1/jobs/ws"):  # there is no store
            self.ask(server, "GET", path, 404, headers=gateway_config.OPS)
        self.ask(server, "GET", "/v1/models?provider=a", 200, headers=gateway_config.OPS)
        self.ask(server, "GET", "/v1/models?provider=a", 504, headers=gateway_config.OPS | {"x-waybill-timeout-ms": "0.0001"})
        server.kill()

    def jobs(self):
        mock = MockProvider(self)
        server = Server(self, self.write_config(gateway_config.text(mock, mock) + JOBS + WEBHOOKS), environment=jobs.ENVIRONMENT)
        own, ops, narrow = gateway_config.APP, gateway_config.OPS, {"x-api-key": "narrow-key"}
        ask = lambda *given, headers=own, **more: self.ask(server, *given, headers=headers, **more)
        chat = {"request": {"model": "mock", "messages": MESSAGES}}
        nowhere = "00000000-0000-7000-8000-000000000000"

        submit = lambda status=202, **job: ask("POST", "/v1/jobs", status, body=job).json()
        ask("POST", "/v1/jobs", 202, body={"jobs": [chat, {"request": {}, "queue": "gpu"}]})
        ask("POST", "/v1/jobs", 400, body={})
        ask("POST", "/v1/jobs", 403, body={"request": {"model": "claude", "messages": MESSAGES}}, headers=narrow)
        ask("POST", "/v1/jobs", 404, body={**chat, "queue": "nowhere"})
        for status, seed in ((202, 1), (202, 1), (422, 2)):
            ask("POST", "/v1/jobs", status, headers={**own, "idempotency-key": "k"}, body={"request": {**chat["request"], "seed": seed}})
        submit(request={}, queue="small")
        submit(503, request={}, queue="small")

        def ended(job, status):
            found = ask("GET", f"/v1/jobs/{job}?wait=60", 200, "/v1/jobs/{id}").json()
            self.assertEqual(found["status"], status)
            return job

        done = ended(submit(**chat)["id"], "completed")
        stream = ended(submit(request={**chat["request"], "stream": True})["id"], "completed")
        mock.rule("status=422")
        refused = ended(submit(**chat)["id"], "failed")
        mock.rule("status=500")
        dead = ended(submit(**chat, max_receives=1)["id"], "dead")
        mock.rule("")
        waiting = submit(request={}, queue="gpu")["id"]

        for job in done, stream:
            ask("GET", f"/v1/jobs/{job}/result", 200, "/v1/jobs/{id}/result")
            ask("GET", f"/v1/jobs/{job}/events", 200, "/v1/jobs/{id}/events")
        ask("GET", f"/v1/jobs/{done}/events", 204, "/v1/jobs/{id}/events", headers={**own, "last-event-id": "end"})
        for job, status in ((waiting, 409), (dead, 410), (refused, 422)):
            ask("GET", f"/v1/jobs/{job}/result", status, "/v1/jobs/{id}/result")
        ask("GET", "/v1/jobs?status=completed&limit=1", 200)
        ask("GET", "/v1/jobs?status=done", 400)
        ask("GET", "/v1/dead-letters", 200)
        ask("GET", "/v1/dead-letters?limit=0", 400)
        ask("DELETE", f"/v1/jobs/{waiting}", 409, "/v1/jobs/{id}")
        ask("POST", f"/v1/jobs/{waiting}/cancel", 200, "/v1/jobs/{id}/cancel")
        ask("POST", f"/v1/jobs/{done}/retry", 409, "/v1/jobs/{id}/retry")
        ask("POST", f"/v1/jobs/{refused}/retry", 202, "/v1/jobs/{id}/retry")
        ask("DELETE", f"/v1/jobs/{stream}", 200, "/v1/jobs/{id}")
        hook = submit(request={}, queue="gpu", webhook=mock.url + "/hook")["id"]
        ask("POST", f"/v1/jobs/{hook}/webhook/resend", 409, "/v1/jobs/{id}/webhook/resend")
        ask("POST", f"/v1/jobs/{hook}/cancel", 200, "/v1/jobs/{id}/cancel")
        ask("POST", f"/v1/jobs/{hook}/webhook/resend", 202, "/v1/jobs/{id}/webhook/resend")
        ask("GET", "/v1/jobs/ws", 426)
        upgrade = {"connection": "upgrade", "upgrade": "websocket", "sec-websocket-version": "13", "sec-websocket-key": "A" * 22 + "=="}
        socket = requests.get(f"http://127.0.0.1:{server.port}/v1/jobs/ws", headers={**own, **upgrade}, stream=True, timeout=60)
        self.check("GET", "/v1/jobs/ws", 101, socket)
        socket.close()
        ask("GET", "/v1/webhooks/deliveries?dead=false", 200, headers=ops)
        ask("GET", "/v1/webhooks/deliveries?dead=maybe", 400, headers=ops)
        ask("GET", "/v1/webhooks/deliveries", 401, headers=NOBODY)
        ask("GET", "/v1/webhooks/deliveries", 403)
        redrive = "/v1/dead-letters/redrive"
        ask("POST", redrive, 200, headers=ops, body={"dry_run": True})
        ask("POST", redrive, 200, headers=ops, body={"ids": [dead]})
        ask("POST", redrive, 400, headers=ops, body={"ids": 7})
        ask("POST", redrive, 403, body={})
        ask("POST", redrive, 401, headers=NOBODY, body={})

        soon = {**own, "x-waybill-timeout-ms": "soon"}
        for method, of in (("GET", ""), ("DELETE", ""), ("GET", "/result"), ("GET", "/events"), ("POST", "/cancel"), ("POST", "/retry"),
                           ("POST", "/webhook/resend")):
            for status, headers in ((400, soon), (401, NOBODY), (404, own)):
                ask(method, f"/v1/jobs/{nowhere}{of}", status, "/v1/jobs/{id}" + of, headers=headers)
        for path in ("/v1/jobs", "/v1/jobs/ws", "/v1/dead-letters", "/v1/queues"):
            ask("GET", path, 401, headers=NOBODY)
            ask("GET", path, 400, headers=soon)
        ask("POST", "/v1/jobs", 401, headers=NOBODY, body=chat)
        self.queues(ask, own, ops, soon)

        for path, asked in CALLS.items():
            model = "mock-embed" if path == "/v1/embeddings" else "mock"
            ask("POST", path, 202, headers={**own, "prefer": "respond-async"}, body={"model": model, **asked})
            answer = ask("POST", path, 200, headers={**own, "prefer": "respond-async, wait=60"}, body={"model": model, **asked})
            self.assertIn("x-waybill-job-id", answer.headers)
            mock.rule("hang=headers")
            key = {**own, "idempotency-key": path}
            held = threading.Thread(target=lambda: requests.post(f"http://127.0.0.1:{server.port}{path}", json={"model": model, **asked}, headers=key,
                                                                 timeout=60))
            before = mock.calls()["in_flight"]
            held.start()
            mock.wait_for(lambda calls: calls["in_flight"] > before)
            ask("POST", path, 409, headers=key, body={"model": model, **asked})
            (record,) = ask("GET", "/v1/jobs?queue=(calls)&status=running", 200).json()["data"]
            ask("POST", f"/v1/jobs/{record['id']}/cancel", 409, "/v1/jobs/{id}/cancel")
            mock.rule("")
            mock.stop()
            held.join()
            mock.start()
        server.kill()

    def queues(self, ask, own, ops, soon):
        ask("GET", "/v1/queues", 200)
        ask("GET", "/v1/queues/gpu", 200, "/v1/queues/{name}")
        ask("GET", "/v1/queues/gpu/scale", 200, "/v1/queues/{name}/scale")
        for of in ("", "/scale"):
            for status, headers, name in ((400, soon, "gpu"), (401, NOBODY, "gpu"), (404, own, "nowhere")):
                ask("GET", f"/v1/queues/{name}{of}", status, "/v1/queues/{name}" + of, headers=headers)
        for of in ("pause", "resume"):
            for status, headers, name in ((200, ops, "gpu"), (400, {**ops, **soon, **ops}, "gpu"), (401, NOBODY, "gpu"), (403, own, "gpu"),
                                          (404, ops, "nowhere")):
                ask("POST", f"/v1/queues/{name}/{of}", status, f"/v1/queues/{{name}}/{of}", headers=headers)
        lease = lambda status, name="gpu", headers=ops, **body: ask("POST", f"/v1/queues/{name}/lease", status, "/v1/queues/{name}/lease", headers=headers,
                                                                    body=body)
        lease(400, max=0)
        lease(401, headers=NOBODY)
        lease(403, headers=own)
        lease(404, "nowhere")
        lease(409, "default")
        for way in ("heartbeat", "complete", "fail", "release"):
            path = f"/v1/leases/{{token}}/{way}"
            ask("POST", "/v1/jobs", 202, body={"request": {}, "queue": "gpu"})
            (leased,) = lease(200).json()["data"]
            ask("POST", f"/v1/leases/{leased['token']}/{way}", 200, path, headers=ops, body={})
            ask("POST", f"/v1/leases/{leased['token']}x/{way}", 404, path, headers=ops, body={})
            other = "1" if leased["token"].endswith("0") else "0"
            ask("POST", f"/v1/leases/{leased['token'][:-1]}{other}/{way}", 409, path, headers=ops, body={})
            ask("POST", f"/v1/leases/{leased['token']}/{way}", 400, path, headers=ops, body={"x": 1})
            ask("POST", f"/v1/leases/{leased['token']}/{way}", 401, path, headers=NOBODY, body={})
            ask("POST", f"/v1/leases/{leased['token']}/{way}", 403, path, headers=own, body={})

    def without_a_provider(self):
        mock = MockProvider(self)
        mock.stop()  # refuses connections
        config = gateway_config.open_text(mock, mock).replace("kind: openai,", "kind: openai, health: {failures: 1, cooldown: 1m},")
        config = config.replace("models:\n", "models:\n" + "".join(f"  - {{name: gone-{i}, targets: [{{provider: a}}]}}\n" for i in range(len(CALLS))))
        server = Server(self, self.write_config(config), environment=gateway_config.ENVIRONMENT)
        for i, (path, asked) in enumerate(CALLS.items()):
            for status in (502, 503):  # it fails, and is left alone
                self.ask(server, "POST", path, status, body={"model": f"gone-{i}", **asked})
        self.ask(server, "GET", "/v1/models?provider=a", 502)
        server.kill()

    def overloaded(self):
        server = Server(self, self.write_config(blackbox.CONFIG + "\nadmission:\n  max_wait: 2ms\n"))
        held = [server.hold_encoder("/v1/embeddings", 2000)]  # whoever comes now would wait longer than 2 ms
        self.ask(server, "POST", "/v1/embeddings", 503, body={"input": "word " * 500})
        for client in held:
            client.answer()
        for path in ("/route", "/v1/route"):
            # A batch whose first refusal ends it, larger than the queue may be.
            self.ask(server, "POST", path, 503, body={"inputs": [f"{path} {i} " + "word " * 100 for i in range(400)], "allow_degraded": False})
        server.kill()

    def stopping(self):
        server = Server(self, self.write_config(blackbox.CONFIG + "\nserver:\n  drain_timeout: 0s\nadmission:\n  max_wait: 1h\n"
                                                "  max_queue_tokens: 100000000\n"))
        sessions = [requests.Session() for _ in range(2)]
        for session in sessions:
            self.assertEqual(session.get(f"http://127.0.0.1:{server.port}/ready", timeout=60).status_code, 200)
        held = server.hold_encoder("/v1/embeddings", 2000)
        stopping = threading.Thread(target=server.stop)
        stopping.start()
        server.wait_for_event("some requests did not end in time and are told so")
        self.check("GET", "/ready", 503, sessions[0].get(f"http://127.0.0.1:{server.port}/ready", timeout=60))
        self.check("POST", "/v1/admin/reload", 503, sessions[1].post(f"http://127.0.0.1:{server.port}/v1/admin/reload", timeout=60))
        held.answer()
        stopping.join()


if __name__ == "__main__":
    blackbox.main()
