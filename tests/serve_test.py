#!/usr/bin/env python3
"""`waybill serve`: what clients are answered, and that every request is accounted for."""
import base64
import re
import struct
import sys
import time
import unittest
import uuid
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
import blackbox
from served import Server


class Serving(blackbox.Case):
    def serve(self, more="", **options):
        config = self.write_config(blackbox.CONFIG + more)
        return Server(self, config, **options)


class Decisions(Serving):
    def test_a_prompt_gets_its_route(self):
        server = self.serve()
        answer = server.post("/route", {"prompt": "why does my code crash with a null pointer?"})
        self.assertEqual(answer.status, 200, answer.body)
        self.assertEqual((answer.json["route"], answer.json["model"]), ("coding", "qwen-coder"))
        self.assertEqual(set(answer.json), {"route", "model", "score", "tier", "degraded", "reason", "request_id"})
        uuid.UUID(answer.json["request_id"])
        self.assertEqual(answer.headers["x-waybill-request-id"], answer.json["request_id"])
        again = server.post("/v1/route", {"prompt": "why does my code crash with a null pointer?"})
        self.assertEqual((again.json["tier"], again.json["route"]), ("cache", "coding"))

    def test_a_batch_is_answered_in_order(self):
        server = self.serve()
        answer = server.post("/v1/route", {"inputs": ["my unit test fails with a null pointer", "can my landlord keep the deposit?"] * 20})
        self.assertEqual([each["route"] for each in answer.json["data"]], ["coding", "legal"] * 20)
        self.assertEqual([each["index"] for each in answer.json["data"]], list(range(40)))

    def test_large_bodies_and_answers(self):
        """Read and written by threads of their own."""
        server = self.serve()
        inputs = [f"can my landlord keep the deposit of {i}? " + "x" * 100 for i in range(1500)]
        answer = server.post("/v1/route", {"inputs": inputs})
        self.assertEqual([each["index"] for each in answer.json["data"]], list(range(1500)))
        self.assertEqual(server.post("/v1/route", b'{"inputs": [' + b'"a", ' * 50_000).status, 400)
        self.assertEqual(server.post("/v1/route", {"inputs": inputs, "timeout": 1}).error["param"], "timeout")
        vectors = server.post("/v1/embeddings", {"input": [f"sentence {i} " + "y" * 1000 for i in range(100)]}).json["data"]
        self.assertEqual([len(each["embedding"]) for each in vectors], [384] * 100)
        self.assertEqual(server.settled_ledger()["completed"], 2)

    def test_an_explanation_says_why(self):
        answer = self.serve().post("/v1/route", {"prompt": "is this contract clause enforceable?", "explain": True})
        self.assertEqual(answer.json["route"], "legal")
        self.assertEqual(answer.json["nearest"][0]["text"], "is this clause enforceable?")
        self.assertIn("threshold", answer.json)

    def test_any_text_is_a_prompt(self):
        server = self.serve()
        for prompt in ["", " ", "\0", "a" * 300_000, "\U0001F600" * 50, " " * 1_000_000]:
            answer = server.post("/route", {"prompt": prompt})
            self.assertEqual(answer.status, 200, prompt[:20])
        for body in [b'{"prompt": "\xff\xfe"}', b'{"prompt": "\\ud800"}']:
            self.assertEqual(server.post("/route", body).status, 200, body)
        self.assertEqual(server.settled_ledger()["completed"], 8)

    def test_bad_input_names_the_field(self):
        server = self.serve()
        for body, param, says in [
                (b"", None, "no body"), (b"{", None, "not valid JSON"), (b"[]", None, "must be a JSON object"),
                (b'{"prompt": "a"} x', None, "after the end"), (b"{}", "prompt", "missing"),
                (b'{"prompt": 1}', "prompt", "must be a string, not a number"), (b'{"promt": "a"}', "promt", 'did you mean "prompt"'),
                (b'{"inputs": []}', "inputs", "takes 1 to"), (b'{"inputs": ["a", 2]}', "inputs[1]", "must be a string"),
                (b'{"prompt": "a", "inputs": ["a"]}', "inputs", "not both"),
                (b'{"prompt": "a", "explain": "yes"}', "explain", "true or false"),
                (b'{"prompt": "a", "timeout_ms": 0}', "timeout_ms", "whole number")]:
            answer = server.post("/v1/route", body)
            self.assertEqual(answer.status, 400, body)
            self.assertEqual(set(answer.error), {"message", "type", "param", "code"})
            self.assertEqual(answer.error["param"], param, body)
            self.assertIn(says, answer.error["message"])
        answer = server.post("/route", {"prompt": "a"}, headers={"x-waybill-timeout-ms": "soon"})
        self.assertEqual((answer.status, answer.error["param"]), (400, "x-waybill-timeout-ms"))
        self.assertEqual(server.settled_ledger()["rejected"], 13)

    def test_unknown_places_and_methods(self):
        server = self.serve()
        self.assertEqual(server.get("/nothing").status, 404)
        answer = server.get("/route")
        self.assertEqual(answer.status, 405)
        self.assertIn("POST", answer.headers["allow"])
        self.assertEqual(server.ask("OPTIONS", "/route").status, 204)
        head = server.ask("HEAD", "/health")
        self.assertEqual((head.status, head.body), (200, b""))

    def test_a_deadline_that_has_passed_is_told(self):
        server = self.serve()
        answer = server.post("/v1/route", {"prompt": "a prompt nobody has asked", "allow_degraded": False},
                             headers={"x-request-id": "late-one", "x-waybill-timeout-ms": "0.001"})
        self.assertEqual((answer.status, answer.error["type"]), (504, "timeout_error"))
        self.assertEqual(server.settled_ledger()["expired"], 1)
        waybill = server.get("/v1/requests/late-one").json
        self.assertEqual(waybill["outcome"], "expired")
        self.assertIn(waybill["error"]["stage"], ("admit", "queue"))


class Embeddings(Serving):
    def test_openai_shapes(self):
        server = self.serve()
        one = server.post("/v1/embeddings", {"input": "a sentence"}).json
        self.assertEqual(len(one["data"][0]["embedding"]), 384)
        self.assertAlmostEqual(sum(x * x for x in one["data"][0]["embedding"]), 1, places=3)
        coded = server.post("/v1/embeddings", {"input": ["a sentence"], "encoding_format": "base64"}).json
        floats = struct.unpack("<384f", base64.b64decode(coded["data"][0]["embedding"]))
        self.assertEqual(list(floats), [struct.unpack("<f", struct.pack("<f", x))[0] for x in one["data"][0]["embedding"]])
        short = server.post("/v1/embeddings", {"input": ["a", "b"], "dimensions": 8, "model": "all-MiniLM-L6-v2"}).json
        self.assertEqual([len(each["embedding"]) for each in short["data"]], [8, 8])
        ids = server.post("/v1/embeddings", {"input": [[101, 1037, 6251, 102]]}).json
        for got, wanted in zip(ids["data"][0]["embedding"], one["data"][0]["embedding"]):
            self.assertAlmostEqual(got, wanted, places=4)
        self.assertEqual(ids["usage"], {"prompt_tokens": 4, "total_tokens": 4})

    def test_bad_input_names_the_field(self):
        server = self.serve()
        for body, status, param in [({}, 400, "input"), ({"input": []}, 400, "input"), ({"input": ["a", 1]}, 400, "input[1]"),
                                    ({"input": [[1, -2]]}, 400, "input[0]"), ({"input": [[999999]]}, 400, "input[0]"),
                                    ({"input": "a", "dimensions": 1000}, 400, "dimensions"),
                                    ({"input": "a", "encoding_format": "hex"}, 400, "encoding_format"),
                                    ({"input": "a", "model": "gpt-4"}, 404, "model")]:
            answer = server.post("/v1/embeddings", body)
            self.assertEqual((answer.status, answer.error["param"]), (status, param), answer.body)


class Accounts(Serving):
    def test_each_request_has_a_waybill(self):
        server = self.serve()
        answer = server.post("/route", {"prompt": "hello"}, headers={
            "x-request-id": "mine-1", "traceparent": "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"})
        self.assertEqual(answer.headers["x-request-id"], "mine-1")
        server.settled_ledger()
        for name in ("mine-1", answer.json["request_id"]):
            waybill = server.get(f"/v1/requests/{name}").json
            self.assertEqual(waybill["outcome"], "completed")
            self.assertEqual(waybill["trace_id"], "0af7651916cd43dd8448eb211c80319c")
            self.assertEqual(waybill["decision"]["route"], answer.json["route"])
            self.assertLessEqual({"read", "admit", "tokenize", "queue", "encode", "decide", "write"},
                                 {stage["stage"] for stage in waybill["stages"]})
        self.assertEqual(server.get("/v1/requests/nobody").status, 404)
        listed = server.get("/v1/requests?outcome=completed&limit=5&since=1h").json["data"]
        self.assertEqual([each["id"] for each in listed], [answer.json["request_id"]])
        self.assertEqual(server.get("/v1/requests?outcome=lost").status, 400)

    def test_metrics_count_what_was_asked(self):
        server = self.serve()
        for _ in range(3):
            server.post("/route", {"prompt": "hello"})
        server.settled_ledger()
        text = server.get("/metrics").body.decode()
        count = sum(float(value) for value in re.findall(r'^waybill_requests_total\{endpoint="/route".*outcome="completed".*\} (\S+)$', text, re.M))
        self.assertEqual(count, 3)
        self.assertIn("waybill_ledger_imbalance 0", text)
        self.assertRegex(text, r"(?m)^waybill_cache_hits_total 2$")
        self.assertRegex(text, r"(?m)^waybill_cache_misses_total 1$")
        self.assertEqual(server.post("/v1/admin/reload", b"").status, 200)
        server.post("/route", {"prompt": "hello"})
        server.post("/route", {"prompt": "hello"})
        text = server.get("/metrics").body.decode()
        self.assertRegex(text, r"(?m)^waybill_cache_hits_total 3$")
        self.assertRegex(text, r"(?m)^waybill_cache_misses_total 2$")
        modern = server.get("/metrics", headers={"accept": "application/openmetrics-text"})
        self.assertTrue(modern.body.decode().endswith("# EOF\n"))


class Keys(Serving):
    KEYS = """
keys:
  - {name: app, env: WAYBILL_TEST_KEY}
  - {name: ops, sha256: 2bb80d537b1da3e38bd30361aa855686bde0eacd7162fef6a25fe97bf527a25b, admin: true}
"""  # the second is "secret"

    def test_keys_are_asked_for(self):
        server = self.serve(self.KEYS, environment={"WAYBILL_TEST_KEY": "app-key-1"})
        self.assertEqual(server.get("/health").status, 200)
        for headers in ({}, {"authorization": "Bearer wrong"}, {"authorization": "Basic app-key-1"}):
            answer = server.post("/route", {"prompt": "a"}, headers=headers)
            self.assertEqual((answer.status, answer.error["code"]), (401, "invalid_api_key"))
        for headers in ({"authorization": "Bearer app-key-1"}, {"x-api-key": "app-key-1"}, {"authorization": "bearer secret"}):
            self.assertEqual(server.post("/route", {"prompt": "a"}, headers=headers).status, 200)
        self.assertEqual(server.get("/metrics").status, 401)
        self.assertEqual(server.get("/metrics", headers={"x-api-key": "app-key-1"}).status, 403)
        admin = {"x-api-key": "secret"}
        listed = server.get("/v1/requests?outcome=completed", headers=admin).json["data"]
        self.assertEqual({each["caller"] for each in listed}, {"app", "ops"})
        self.assertNotIn("app-key-1", server.log_text())

    def test_admin_may_have_a_listener_of_its_own(self):
        server = self.serve("server:\n  listen: 127.0.0.1:0\n  admin_listen: 127.0.0.1:0\n", arguments=())
        public, admin = [int(address.rsplit(":", 1)[1]) for address in server.addresses]
        self.assertEqual(server.get("/metrics", port=public).status, 404)
        self.assertEqual(server.get("/metrics", port=admin).status, 200)

    def test_it_does_not_listen_to_strangers_without_keys(self):
        config = self.write_config()
        self.refuse(65, "serve", "--config", config, "--listen", "0.0.0.0:0", says="without keys")


class Changes(Serving):
    def test_a_changed_file_is_taken_up_and_a_bad_one_is_not(self):
        server = self.serve()
        config = self.folder / "waybill.yaml"
        text = config.read_text()
        config.write_text(text.replace("model: claude", "model: other-model"))
        server.wait_for_event("the configuration was reloaded")
        self.assertEqual(server.post("/route", {"prompt": "can my landlord keep the deposit?"}).json["model"], "other-model")
        config.write_text(text + "\nnonsense: 1\n")
        answer = server.post("/v1/admin/reload", b"")
        self.assertEqual(answer.status, 400)
        self.assertIn("nonsense", answer.error["message"])
        self.assertEqual(server.post("/route", {"prompt": "can my landlord keep the deposit?"}).json["model"], "other-model")

    def test_sigterm_ends_it_with_0(self):
        server = self.serve()
        server.post("/route", {"prompt": "a"})
        self.assertEqual(server.stop(), 0)
        self.assertEqual(server.wait_for_event("stopped")["imbalance"], 0)


class Documents(Serving):
    def test_the_description_is_served(self):
        server = self.serve()
        self.assertIn(b"openapi: 3.1.0", server.get("/openapi.yaml").body)
        page = server.get("/docs")
        self.assertEqual(page.status, 200)
        for path in ("/v1/route", "/v1/embeddings", "/v1/ledger"):
            self.assertIn(path.encode(), page.body)


if __name__ == "__main__":
    blackbox.main()
