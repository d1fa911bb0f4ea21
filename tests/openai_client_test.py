#!/usr/bin/env python3
"""openai-python, as it comes from the package index, against `waybill serve`."""
import asyncio
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
import blackbox
import python_packages

if __name__ == "__main__":
    python_packages.need("openai==3.51")

import httpx2
import openai
from served import Server

KEYS = """
keys:
  - {name: app, sha256: 2bb80d537b1da3e38bd30361aa855686bde0eacd7162fef6a25fe97bf527a25b}
"""  # "secret"
MODEL = "all-MiniLM-L6-v2"


class Clients(blackbox.Case):
    def serve(self, more=""):
        return Server(self, self.write_config(blackbox.CONFIG + more))

    def client(self, server, kind=openai.OpenAI, **options):
        options = {"api_key": "secret", "max_retries": 0, "base_url": f"http://127.0.0.1:{server.port}/v1", **options}
        return kind(**options)

    def assert_same(self, one, other):
        self.assertEqual(len(one), len(other))
        self.assertLess(max(abs(a - b) for a, b in zip(one, other)), 1e-5)

    def test_embeddings(self):
        server = self.serve(KEYS)
        with self.client(server) as client:
            coded = client.embeddings.create(model=MODEL, input=["a sentence", "another"])  # asks for base64
            self.assertEqual([each.index for each in coded.data], [0, 1])
            self.assertEqual((coded.object, coded.model, coded.data[0].object), ("list", MODEL, "embedding"))
            self.assertEqual(coded.usage.prompt_tokens, coded.usage.total_tokens)
            self.assertGreater(coded.usage.prompt_tokens, 4)
            self.assertAlmostEqual(sum(x * x for x in coded.data[0].embedding), 1, places=3)
            plain = client.embeddings.create(model=MODEL, input="a sentence", encoding_format="float")
            self.assertIsInstance(plain.data[0].embedding[0], float)
            self.assert_same(plain.data[0].embedding, coded.data[0].embedding)
            short = client.embeddings.create(model=MODEL, input=["a sentence"], dimensions=32, user="somebody")
            self.assertEqual(len(short.data[0].embedding), 32)
            ids = client.embeddings.create(model=MODEL, input=[[101, 1037, 6251, 102]])
            self.assert_same(ids.data[0].embedding, plain.data[0].embedding)
            raw = client.embeddings.with_raw_response.create(model=MODEL, input="a sentence")
            self.assertEqual(raw.headers["x-request-id"], raw.headers["x-waybill-request-id"])

    def test_models(self):
        server = self.serve(KEYS)
        with self.client(server) as client:
            names = [model.id for model in client.models.list()]
            self.assertLessEqual({MODEL, "coding", "legal", "chat", "claude"}, set(names))
            self.assertEqual(len(names), len(set(names)))
            self.assertEqual(client.models.retrieve("claude").owned_by, "waybill")

    def test_a_model_with_a_slash_in_its_name(self):
        server = Server(self, self.write_config(blackbox.CONFIG.replace("model: claude", "model: some-org/claude")))
        with self.client(server) as client:
            self.assertEqual(client.models.retrieve("some-org/claude").id, "some-org/claude")

    def test_many_at_once_by_the_asynchronous_client(self):
        server = self.serve()

        async def ask():
            async with self.client(server, openai.AsyncOpenAI) as client:
                answers = await asyncio.gather(*(client.embeddings.create(model=MODEL, input=f"text {i}") for i in range(50)))
                models = [model.id async for model in client.models.list()]
                return answers, models

        answers, models = asyncio.run(ask())
        self.assertEqual({len(answer.data[0].embedding) for answer in answers}, {384})
        self.assertIn(MODEL, models)
        self.assertEqual(server.settled_ledger()["completed"], 51)

    def test_errors_are_the_clients_own(self):
        server = self.serve(KEYS + "\nserver:\n  max_body_size: 64KiB\n")
        with self.client(server) as client:
            embed = client.embeddings.create
            for raises, ask, param, code in [
                    (openai.BadRequestError, lambda: embed(model=MODEL, input=[]), "input", "invalid_value"),
                    (openai.BadRequestError, lambda: embed(model=MODEL, input="a", dimensions=5000), "dimensions", "invalid_value"),
                    (openai.NotFoundError, lambda: embed(model="text-embedding-3-small", input="a"), "model", "not_found"),
                    (openai.NotFoundError, lambda: client.models.retrieve("nothing"), "model", "not_found"),
                    (openai.APIStatusError, lambda: embed(model=MODEL, input="a" * 100_000), None, "body_too_large"),
                    (openai.NotFoundError, lambda: client.completions.create(model="a", prompt="b"), "model", "not_found"),
                    (openai.InternalServerError, lambda: embed(model=MODEL, input="a", extra_headers={"x-waybill-timeout-ms": "0.0001"}),
                     None, "deadline_exceeded")]:
                with self.subTest(code=code, param=param), self.assertRaises(raises) as caught:
                    ask()
                error = caught.exception
                self.assertEqual((error.param, error.code), (param, code))
                self.assertTrue(error.body["message"])
                self.assertIn(error.body["message"], error.message)
                self.assertTrue(error.response.headers["x-waybill-request-id"])
        with self.client(server, api_key="wrong") as client, self.assertRaises(openai.AuthenticationError) as caught:
            client.models.list()
        self.assertEqual(caught.exception.code, "invalid_api_key")

    def test_retries_wait_as_long_as_they_are_told(self):
        server = self.serve("\nadmission:\n  max_wait: 5ms\n")
        with self.client(server) as client:  # so that it knows how fast it is
            client.embeddings.create(model=MODEL, input=[f"text {i}" for i in range(100)])
        held = server.hold_encoder("/v1/embeddings", 2000)
        tries = []

        def note(response):
            tries.append((time.monotonic(), response.status_code, response.headers.get("retry-after-ms")))

        with self.client(server, max_retries=5000, http_client=openai.DefaultHttpx2Client(event_hooks={"response": [note]})) as client:
            answer = client.embeddings.create(model=MODEL, input="patient")
        self.assertEqual(len(answer.data[0].embedding), 384)
        self.assertEqual([status for _, status, _ in tries], [503] * (len(tries) - 1) + [200])
        self.assertGreater(len(tries), 1, "the server was never busy")
        for (at, _, told), (then, _, _) in zip(tries, tries[1:]):
            self.assertGreaterEqual(then - at, float(told) / 1000)
        self.assertEqual(held.answer().status, 200)
        ledger = server.settled_ledger()
        self.assertGreaterEqual(ledger["rejected"], len(tries) - 1)
        self.assertEqual(ledger["completed"], 3)

    def test_the_clients_own_timeout_is_the_deadline(self):
        server = self.serve("\nadmission:\n  max_wait: 1h\n  max_queue_tokens: 100000000\n")
        with self.client(server, timeout=httpx2.Timeout(7.0)) as client:
            client.embeddings.create(model=MODEL, input="a")
            with self.assertRaises(openai.InternalServerError):
                client.embeddings.create(model=MODEL, input="a", extra_headers={"x-stainless-read-timeout": "0.000001"})
        self.assertEqual(server.settled_ledger()["expired"], 1)


if __name__ == "__main__":
    blackbox.main()
