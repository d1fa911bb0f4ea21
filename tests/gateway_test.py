#!/usr/bin/env python3
"""The gateway as its clients see it: openai-python and openai-node, as they come from their registries, against `waybill serve`
in front of two mock providers."""
import asyncio
import http.server
import json
import sys
import threading
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
import blackbox
import python_packages

if __name__ == "__main__":
    python_packages.need("openai==3.51")

import gateway_config
import httpx2
import node_packages
import openai
from provider import MockProvider, words
from served import Server
from streamed import Call

LOCAL = "all-MiniLM-L6-v2"
ASK = [{"role": "user", "content": "hi"}]
CODING = "my unit test fails with a null pointer, why does my program segfault?"
LEGAL = "can my landlord keep the deposit, and is this clause enforceable?"


class Gateway(blackbox.Case):
    def setUp(self):
        super().setUp()
        self.a, self.b = MockProvider(self, record=100), MockProvider(self, record=100)
        self.server = Server(self, self.write_config(gateway_config.text(self.a, self.b)), environment=gateway_config.ENVIRONMENT)

    def client(self, kind=openai.OpenAI, **options):
        client = kind(**{"api_key": "app-key", "max_retries": 0, "base_url": f"http://127.0.0.1:{self.server.port}/v1", **options})
        if kind is openai.OpenAI:
            self.addCleanup(client.close)
        return client

    def chat(self, client=None, model="mock", messages=None, **more):
        """(the whole answer, its headers)"""
        raw = (client or self.client()).chat.completions.with_raw_response.create(model=model, messages=messages or ASK, **more)
        return raw.parse(), raw.headers

    def stream(self, client=None, model="mock", **more):
        return list((client or self.client()).chat.completions.create(model=model, messages=ASK, stream=True, **more))

    def waybill(self, request):
        return self.server.get(f"/v1/requests/{request}", headers=gateway_config.OPS).json

    def settled_ledger(self):
        while (ledger := self.server.get("/v1/ledger", headers=gateway_config.OPS).json)["in_flight"]:
            pass
        self.assertTrue(ledger["balanced"], ledger)
        return ledger

    def calls(self):
        return self.a.settled()["started"], self.b.settled()["started"]


class Chat(Gateway):
    def test_an_answer_and_a_stream_say_the_same(self):
        client = self.client()
        answer, headers = self.chat(client)
        self.assertEqual((answer.choices[0].message.content, answer.usage.completion_tokens), (words(), 16))
        self.assertEqual("".join(chunk.choices[0].delta.content or "" for chunk in self.stream(client)), words())
        self.assertEqual(self.calls(), (2, 0))
        self.assertEqual((headers["x-waybill-model"], headers["x-waybill-target"], headers["x-waybill-attempts"]), ("mock", "a/mock", "1"))
        for name in ("x-waybill-queue-ms", "x-waybill-cost-usd", "x-waybill-request-id", "x-request-id"):
            self.assertIn(name, headers)
        waybill = self.waybill(headers["x-waybill-request-id"])
        self.assertEqual((waybill["target"], waybill["attempts"], waybill["completion_tokens"], waybill["caller"]), ("a/mock", 1, 16, "app"))
        self.assertEqual(waybill["prompt_tokens"], answer.usage.prompt_tokens)
        self.assertAlmostEqual(waybill["cost_usd"], (answer.usage.prompt_tokens + 2 * 16) / 1000, places=6)
        self.assertAlmostEqual(float(headers["x-waybill-cost-usd"]), waybill["cost_usd"], places=6)

    def test_usage_is_asked_for_and_shown_to_those_who_asked(self):
        client = self.client()
        self.assertTrue(all(chunk.choices and not chunk.usage for chunk in self.stream(client)))
        last = self.stream(client, stream_options={"include_usage": True})[-1]
        self.assertEqual((last.choices, last.usage.completion_tokens), ([], 16))
        for request in self.a.requests():
            self.assertTrue(json.loads(request["body"])["stream_options"]["include_usage"])

    def test_what_it_does_not_know_passes_through(self):
        more = {
            "tools": [{"type": "function", "function": {"name": "weather", "parameters": {"type": "object", "properties": {"city": {"type": "string"}}}}}],
            "tool_choice": "auto", "parallel_tool_calls": False,
            "response_format": {"type": "json_schema", "json_schema": {"name": "x", "schema": {"type": "object"}, "strict": True}},
            "logprobs": True, "top_logprobs": 3, "seed": 7, "temperature": 0.25, "stop": ["a", "é\u2028"], "logit_bias": {"50256": -100},
            "messages": [{"role": "system", "content": "Be brief."},
                         {"role": "user", "content": [{"type": "text", "text": "what is this? 😀"},
                                                      {"type": "image_url", "image_url": {"url": "data:image/png;base64,iVBORw0KGgo="}}]}],
            "extra_body": {"top_k": 40, "vendor": {"nested": [1, 2.50, None, {"deep": True}]}}}
        self.chat(**more)
        got = json.loads(self.a.requests()[-1]["body"])
        sent = {"model": "mock", **{name: value for name, value in more.items() if name != "extra_body"}, **more["extra_body"]}
        self.assertEqual(got, sent)

    def test_bytes_stay_as_they_were_sent(self):
        body = b'{ "model" : "qwen-coder",\n "messages":[{"role":"user","content":"\\u00e9 \xc3\xa9"}], "seed":1.0e0,"x":{"b":[1.50,-0],"a":null}}'
        answer = self.server.post("/v1/chat/completions", body, headers={**gateway_config.APP, "Content-Type": "application/json"})
        self.assertEqual(answer.status, 200, answer.body)
        self.assertEqual(self.a.requests()[-1]["body"].encode(), body.replace(b"qwen-coder", b"mock-small"))

    def test_tool_calls(self):
        self.a.rule("tool=1")
        client = self.client()
        answer, _ = self.chat(client)
        self.assertEqual(json.loads(answer.choices[0].message.tool_calls[0].function.arguments), {"words": words()})
        pieces = [chunk.choices[0].delta.tool_calls[0].function.arguments for chunk in self.stream(client)
                  if chunk.choices[0].delta.tool_calls]
        self.assertEqual(json.loads("".join(pieces)), {"words": words()})

    def test_tokens_come_one_by_one(self):
        self.a.rule("hang=3;itl=1")  # a proxy that waits for more would show none of the three
        seen = ""
        for chunk in self.client().chat.completions.create(model="mock", messages=ASK, stream=True):
            seen += chunk.choices[0].delta.content or ""
            if seen == words(3):
                break
        self.assertEqual(seen, words(3))

    def test_completions(self):
        client = self.client()
        answer = client.completions.create(model="mock", prompt="hi")
        self.assertEqual((answer.object, answer.choices[0].text), ("text_completion", words()))
        chunks = list(client.completions.create(model="mock", prompt="hi", stream=True))
        self.assertEqual("".join(chunk.choices[0].text for chunk in chunks if chunk.choices), words())
        self.assertTrue(all("/v1/completions" in request["line"] for request in self.a.requests()))


class Names(Gateway):
    def test_models_are_listed(self):
        listed = [model.id for model in self.client().models.list()]
        self.assertLessEqual({"mock", "qwen-coder", "claude", "mock-embed", LOCAL, "coding", "legal", "auto"}, set(listed))
        self.assertEqual(len(listed), len(set(listed)))

    def test_an_unknown_model_is_told_as_openai_tells_it(self):
        for ask in (self.chat, self.stream):
            with self.assertRaises(openai.NotFoundError) as caught:
                ask(model="nothing")
            self.assertEqual(caught.exception.param, "model")
            self.assertIn("nothing", caught.exception.message)
        self.assertEqual(self.calls(), (0, 0))

    def test_a_target_by_its_name(self):
        _, headers = self.chat(model="b/mock")
        self.assertEqual((headers["x-waybill-target"], self.calls()), ("b/mock", (0, 1)))

    def test_a_model_that_a_provider_has_and_nobody_configured(self):
        _, headers = self.chat(model="b/any-model")
        self.assertEqual((headers["x-waybill-model"], headers["x-waybill-target"]), ("b/any-model", "b/any-model"))
        self.assertEqual(json.loads(self.b.requests()[-1]["body"])["model"], "any-model")
        counted = [line for line in self.server.get("/metrics", headers=gateway_config.OPS).body.decode().splitlines() if "any-model" in line]
        self.assertEqual(counted, [], "names that clients make up are no labels")

    def test_a_route_by_its_name(self):
        _, headers = self.chat(model="legal", messages=[{"role": "user", "content": CODING}])  # what is said does not matter
        self.assertEqual((headers["x-waybill-route"], headers["x-waybill-model"], headers["x-waybill-target"]), ("legal", "claude", "b/mock-large"))

    def test_auto_decides_by_what_is_said(self):
        for said, route, model, target in ((CODING, "coding", "qwen-coder", "a/mock-small"), (LEGAL, "legal", "claude", "b/mock-large")):
            answer, headers = self.chat(model="auto", messages=[{"role": "user", "content": said}])
            self.assertEqual(answer.choices[0].message.content, words())
            self.assertEqual((headers["x-waybill-route"], headers["x-waybill-model"], headers["x-waybill-target"]), (route, model, target))
            self.assertGreater(float(headers["x-waybill-score"]), 0)
            self.assertTrue(headers["x-waybill-tier"])
            self.assertEqual(self.waybill(headers["x-waybill-request-id"])["decision"]["route"], route)

    def test_auto_decides_for_parts_of_a_message_too(self):
        parts = [{"type": "text", "text": LEGAL}, {"type": "image_url", "image_url": {"url": "data:image/png;base64,iVBORw0KGgo="}}]
        _, headers = self.chat(model="auto", messages=[{"role": "user", "content": parts}])
        self.assertEqual(headers["x-waybill-route"], "legal")

    def test_a_conversation_stays_with_its_model(self):
        begun = [{"role": "user", "content": LEGAL}]
        _, headers = self.chat(model="auto", messages=begun)
        self.assertEqual(headers["x-waybill-model"], "claude")
        begun += [{"role": "assistant", "content": words()}, {"role": "user", "content": "hm, and then?"}]
        _, headers = self.chat(model="auto", messages=begun)
        self.assertEqual(headers["x-waybill-model"], "claude")

    def test_a_session_stays_with_its_model(self):
        session = {"x-waybill-session": "session-1"}
        _, headers = self.chat(model="auto", messages=[{"role": "user", "content": LEGAL}], extra_headers=session)
        self.assertEqual(headers["x-waybill-model"], "claude")
        _, headers = self.chat(model="auto", messages=[{"role": "user", "content": "hm, and then?"}], extra_headers=session)
        self.assertEqual(headers["x-waybill-model"], "claude")
        _, headers = self.chat(model="auto", messages=[{"role": "user", "content": CODING}], extra_headers={"x-waybill-session": "session-2"})
        self.assertEqual(headers["x-waybill-model"], "qwen-coder")

    def test_a_conversation_in_windows(self):
        talk = [{"role": "user", "content": said} for said in (CODING, "hm, and then?")]
        for conversation in ("last_message", "windows"):
            config = self.write_config(gateway_config.text(self.a, self.b, f"gateway: {{conversation: {conversation}, sticky: 0s}}\n"))
            self.server = Server(self, config, environment=gateway_config.ENVIRONMENT)
            self.assertEqual(self.chat(model="auto", messages=talk)[1]["x-waybill-model"] == "qwen-coder", conversation == "windows")

    def test_embeddings_by_the_encoder_and_by_a_provider(self):
        client = self.client()
        self.assertEqual(len(client.embeddings.create(model=LOCAL, input="a").data[0].embedding), 384)
        self.assertEqual(self.calls(), (0, 0))
        coded = client.embeddings.create(model="mock-embed", input=["a", "b"])  # asks for base64
        plain = client.embeddings.create(model="mock-embed", input="b", encoding_format="float")
        self.assertEqual([len(each.embedding) for each in coded.data], [8, 8])
        for one, other in zip(coded.data[1].embedding, plain.data[0].embedding):
            self.assertAlmostEqual(one, other, places=6)
        self.assertEqual(self.calls(), (2, 0))


class Incident(Gateway):
    def test_its_script(self):
        """Decide, then chat with the route for a model: a hundred at a time."""
        prompts = [f"{(CODING, LEGAL)[i % 2]} ({i})" for i in range(300)]

        async def run():
            at_once = asyncio.Semaphore(100)
            client = self.client(openai.AsyncOpenAI)
            async with client, httpx2.AsyncClient(base_url=f"http://127.0.0.1:{self.server.port}", timeout=60, headers=gateway_config.APP) as web:
                async def one(prompt):
                    async with at_once:
                        decided = await web.post("/route", json={"prompt": prompt})
                        decided.raise_for_status()
                        answer = await client.chat.completions.create(model=decided.json()["route"], messages=[{"role": "user", "content": prompt}])
                        return decided.json()["route"], answer.choices[0].message.content

                return await asyncio.gather(*(one(prompt) for prompt in prompts))

        answers = asyncio.run(run())
        self.assertEqual({text for _, text in answers}, {words()})
        self.assertEqual([route for route, _ in answers], ["coding", "legal"] * 150)
        self.assertEqual(self.calls(), (150, 150))
        ledger = self.settled_ledger()
        self.assertEqual((ledger["completed"], ledger["accepted"]), (600, 600))


class Keys(Gateway):
    def test_who_is_not_known_is_refused(self):
        with self.assertRaises(openai.AuthenticationError):
            self.chat(self.client(api_key="wrong"))
        self.assertEqual(self.calls(), (0, 0))

    def test_a_model_that_a_key_may_not_use(self):
        client = self.client(api_key="narrow-key")
        self.chat(client)
        for model in ("claude", "auto", "b/mock", "legal"):
            with self.assertRaises(openai.PermissionDeniedError, msg=model):
                self.chat(client, model=model)
        self.assertEqual(self.calls(), (1, 0))

    def test_requests_in_a_minute(self):
        client = self.client(api_key="slow-key")
        for left in (2, 1, 0):
            _, headers = self.chat(client)
            self.assertEqual((headers["x-ratelimit-limit-requests"], headers["x-ratelimit-remaining-requests"]), ("3", str(left)))
            self.assertEqual(headers["x-ratelimit-limit-tokens"], "100000")
        with self.assertRaises(openai.RateLimitError) as caught:
            self.chat(client)
        self.assertIn("requests", caught.exception.message)
        self.assertGreaterEqual(int(caught.exception.response.headers["retry-after"]), 1)
        self.chat(self.client())  # another key has its own
        self.assertEqual(self.calls(), (4, 0))

    def test_calls_at_a_time(self):
        client = self.client(api_key="one-key")
        self.a.rule("hang=3;itl=1")
        held = client.chat.completions.create(model="mock", messages=ASK, stream=True)
        next(iter(held))
        with self.assertRaises(openai.RateLimitError):
            self.chat(client)
        held.close()
        self.a.settled()
        self.settled_ledger()
        self.a.rule("")
        self.chat(client)

    def test_a_budget(self):
        client = self.client(api_key="poor-key")
        _, headers = self.chat(client)  # costs more than 0.03
        self.chat(client)
        with self.assertRaises(openai.RateLimitError) as caught:
            self.chat(client)
        self.assertEqual(caught.exception.code, "insufficient_quota")
        self.assertEqual(self.calls(), (2, 0))

    def test_what_it_cost_is_counted_by_key_and_by_route(self):
        headers = self.chat(self.client(api_key="poor-key"), model="legal")[1]
        for label in (b'key_cost_usd_total{key="poor"}', b'route_cost_usd_total{route="legal"}'):
            told = self.server.get("/metrics", headers=gateway_config.OPS).body.split(b"waybill_" + label)[1].split()[0]
            self.assertAlmostEqual(float(told), float(headers["x-waybill-cost-usd"]), places=9)

    def test_a_budget_that_only_warns(self):
        told = [self.chat(self.client(api_key="warned-key"))[1].get("x-waybill-budget") for _ in range(3)]
        self.assertEqual(told, [None, None, "exceeded"])

    def test_a_provider_that_says_whether_to_ask_again(self):
        self.a.rule("status=500;should_retry=false")
        self.b.rule("status=500;should_retry=false")
        with self.assertRaises(openai.InternalServerError):
            self.chat()
        self.assertEqual(self.calls(), (1, 1), "each was asked, and neither again")

    def test_the_providers_key_is_told_to_the_provider_and_nobody_else(self):
        for mock in (self.a, self.b):
            mock.rule(f"key={gateway_config.PROVIDER_KEY}")
        _, headers = self.chat()
        told = [headers]
        for mock in (self.a, self.b):
            mock.rule("key=another")
        with self.assertRaises(openai.APIStatusError) as caught:
            self.chat()
        self.assertGreaterEqual(caught.exception.status_code, 500, "the caller's own key was good")
        told += [caught.exception.response.text, caught.exception.response.headers,
                 *(self.server.get(path, headers=gateway_config.OPS).body for path in ("/v1/requests", "/v1/targets", "/metrics", "/v1/ledger")),
                 self.server.log_text()]
        for text in told:
            self.assertNotIn(gateway_config.PROVIDER_KEY, str(text))
            self.assertNotIn("app-key", str(text))


class Asked(http.server.BaseHTTPRequestHandler):
    """A provider that only says how it is."""

    def do_GET(self):
        self.server.asked.append(self.path)
        self.send_response(self.server.status)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *_):
        pass


class Providers(Gateway):
    def test_their_models(self):
        client = self.client()
        ours = {model.id for model in client.models.list().data}
        theirs = [model.id for model in client.models.list(extra_query={"provider": "a"}).data]
        self.assertIn("mock", ours)
        self.assertIn("a/mock-small", theirs)
        self.assertTrue(all(name.startswith("a/") for name in theirs), theirs)
        self.chat(client, model=theirs[0])  # each may be asked for
        with self.assertRaises(openai.NotFoundError) as caught:
            client.models.list(extra_query={"provider": "c"})
        self.assertEqual(caught.exception.param, "provider")

    def test_are_asked_how_they_are(self):
        provider = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Asked)
        provider.asked, provider.status = [], 500
        threading.Thread(target=provider.serve_forever, daemon=True).start()
        self.addCleanup(provider.shutdown)
        url = f"http://127.0.0.1:{provider.server_port}"
        server = Server(self, self.write_config(
            "providers:\n"
            f'  - {{name: below, base_url: "{url}/v1", health: {{interval: 10ms, failures: 2}}}}\n'
            f'  - {{name: root, base_url: "{url}/v1", health: {{interval: 10ms, failures: 2, path: /health}}}}\n'
            "models: [{name: m, targets: [{provider: below}, {provider: root}]}]\ndefault_route: m\n"))

        def states():
            return {target["state"] for target in server.get("/v1/targets").json["data"]}

        def until(states_wanted):
            deadline = time.monotonic() + 60
            while states() != states_wanted:
                self.assertLess(time.monotonic(), deadline, server.get("/v1/targets").body)
                time.sleep(0.01)

        until({"open"})
        self.assertEqual(set(provider.asked), {"/v1/models", "/health"})
        provider.status = 200
        until({"closed"})
        server.kill()


class Cached(Gateway):
    def test_an_answer_is_given_again(self):
        client = self.client()
        first, headers = self.chat(client, model="kept")
        again, then = self.chat(client, model="kept")
        self.assertEqual((first.choices, headers["x-waybill-cache"], then["x-waybill-cache"]), (again.choices, "miss", "hit"))
        for _ in range(2):
            self.assertEqual("".join(chunk.choices[0].delta.content or "" for chunk in self.stream(client, model="kept")), words())
        self.assertLessEqual(self.a.settled()["started"], 2)  # a stream may be kept apart from an answer
        self.chat(client, model="kept", temperature=0.5)
        self.chat(self.client(api_key="ops-key"), model="kept")  # another caller
        self.assertGreaterEqual(self.a.settled()["started"], 3)

    def test_equal_calls_at_a_time_are_one(self):
        self.a.rule("delay=1000")
        answers = []
        threads = [threading.Thread(target=lambda: answers.append(self.chat(model="kept")[0].choices[0].message.content)) for _ in range(10)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual((answers, self.a.settled()["started"]), ([words()] * 10, 1))

    def test_a_cached_answer_costs_nothing(self):
        client = self.client(api_key="slow-key")
        first, headers = self.chat(client, model="kept")
        self.assertGreater(float(headers["x-waybill-cost-usd"]), 0)
        _, headers = self.chat(client, model="kept")
        self.assertEqual((headers["x-waybill-cache"], float(headers["x-waybill-cost-usd"])), ("hit", 0))
        self.assertEqual((headers["x-waybill-attempts"], headers["x-waybill-model"], headers["x-waybill-target"]), ("0", "kept", "a/mock"))
        self.assertEqual(headers["x-ratelimit-remaining-requests"], "1")  # it is a request all the same
        self.assertGreaterEqual(int(headers["x-ratelimit-remaining-tokens"]), 100_000 - first.usage.total_tokens)
        waybill = self.waybill(headers["x-waybill-request-id"])
        self.assertEqual((waybill["attempts"], waybill["completion_tokens"], waybill["cost_usd"], waybill["outcome"]), (0, 0, 0, "completed"))
        self.assertEqual(self.a.settled()["billed"], 1)
        self.assertIn(b'waybill_response_cache_total{result="hit"} 1', self.server.get("/metrics", headers=gateway_config.OPS).body)

    def test_a_header_asks_for_the_cache_or_passes_it_by(self):
        client = self.client()
        said = [self.chat(client, model=model, extra_headers={"x-waybill-cache": wish})[1].get("x-waybill-cache")
                for model, wish in (("mock", "use"), ("mock", "use"), ("mock", "no"), ("kept", "use"), ("kept", "no"), ("kept", "use"))]
        self.assertEqual(said, ["miss", "hit", None, "miss", "bypass", "hit"])
        self.assertEqual(self.calls(), (4, 0))

    def test_an_error_is_not_cached(self):
        self.a.rule("status=500")
        with self.assertRaises(openai.InternalServerError):
            self.chat(model="kept")
        self.a.rule("")
        _, headers = self.chat(model="kept")
        self.assertEqual(headers["x-waybill-cache"], "miss")

    def stream_call(self):
        return Call(self.server.port, {"model": "kept", "messages": ASK, "stream": True}, ["authorization: Bearer app-key"])

    def test_a_stream_is_followed_while_it_comes(self):
        self.a.rule("hang=3;itl=1")
        with self.stream_call() as leader:
            leader.read(until=b"w2 ")
            with self.stream_call() as follower:
                follower.read(until=b"w2 ")
                self.assertEqual(follower.headers["x-waybill-cache"], "shared")
                self.assertEqual(self.a.calls()["started"], 1)

    def test_a_call_goes_on_for_those_who_follow(self):
        self.a.rule("itl=100")
        leader = self.stream_call()
        leader.read(until=b"w1 ")
        with self.stream_call() as follower:
            follower.read(until=b"w1 ")
            leader.leave()
            self.assertEqual((follower.read().text, follower.is_done), (words(), True))
        calls = self.a.settled()
        self.assertEqual((calls["started"], calls["cancelled"]), (1, 0))
        ledger = self.settled_ledger()
        self.assertEqual((ledger["completed"], ledger["cancelled"]), (1, 1))

    def test_a_call_that_nobody_waits_for_is_cancelled(self):
        self.a.rule("itl=20;tokens=100000")
        calls = [self.stream_call() for _ in range(3)]
        for call in calls:
            call.read(until=b"w1 ")
        for call in calls:
            call.leave()
        seen = self.a.settled()
        self.assertEqual((seen["started"], seen["cancelled"]), (1, 1))
        self.assertEqual(self.settled_ledger()["cancelled"], 3)


class Keyed(Gateway):
    """Idempotency-Key."""

    def ask(self, key="k", client=None, **more):
        answer, headers = self.chat(client, extra_headers={"Idempotency-Key": key}, **more)
        return answer.choices[0].message.content, headers.get("idempotent-replayed")

    def test_the_second_has_the_answer_of_the_first(self):
        self.assertEqual([self.ask() for _ in range(3)], [(words(), None), (words(), "true"), (words(), "true")])
        self.assertEqual(self.calls(), (1, 0))
        self.assertEqual(self.ask("other"), (words(), None))
        self.assertEqual(self.ask(client=self.client(api_key="ops-key")), (words(), None))  # keys belong to a caller
        self.assertEqual(self.calls(), (3, 0))

    def test_a_stream_too(self):
        client = self.client()
        for _ in range(2):
            chunks = self.stream(client, extra_headers={"Idempotency-Key": "k"})
            self.assertEqual("".join(chunk.choices[0].delta.content or "" for chunk in chunks), words())
        self.assertEqual(self.calls(), (1, 0))

    def test_another_request_under_the_same_key_is_refused(self):
        self.ask()
        with self.assertRaises(openai.UnprocessableEntityError) as caught:
            self.ask(temperature=0.5)
        self.assertEqual((caught.exception.code, caught.exception.param), ("idempotency_key_reused", "Idempotency-Key"))
        self.assertEqual(self.calls(), (1, 0))

    def test_the_second_waits_while_the_first_is_under_way(self):
        self.a.rule("delay=1000")
        answers = []
        threads = [threading.Thread(target=lambda: answers.append(self.ask())) for _ in range(5)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(sorted(str(replayed) for _, replayed in answers), ["None"] + ["true"] * 4)
        self.assertEqual(self.calls(), (1, 0))

    def test_errors_are_given_again(self):
        self.a.rule("status=400")
        for replayed in (None, "true"):
            with self.assertRaises(openai.BadRequestError) as caught:
                self.ask()
            self.assertEqual(caught.exception.response.headers.get("idempotent-replayed"), replayed)
        self.assertEqual(self.calls(), (1, 0))

    def test_who_left_leaves_no_answer(self):
        self.a.rule("delay=600000")
        with self.assertRaises(openai.APIStatusError):
            self.chat(extra_headers={"Idempotency-Key": "k", "x-waybill-timeout-ms": "300"})
        self.a.rule("")
        self.assertEqual(self.ask(), (words(), None))

    def test_a_key_and_the_cache(self):
        """A key's first use may be answered from the cache; what it had is replayed."""
        self.chat(model="kept")
        _, headers = self.chat(model="kept", extra_headers={"Idempotency-Key": "k"})
        self.assertEqual((headers["x-waybill-cache"], headers.get("idempotent-replayed")), ("hit", None))
        self.assertEqual(self.ask(model="kept"), (words(), "true"))
        self.assertEqual(self.calls(), (1, 0))

    def test_a_key_that_is_too_long(self):
        with self.assertRaises(openai.BadRequestError) as caught:
            self.ask("k" * 256)
        self.assertEqual(caught.exception.param, "Idempotency-Key")
        self.assertEqual(self.calls(), (0, 0))


class Moving(Gateway):
    def test_a_provider_is_killed_and_no_request_fails(self):
        client = self.client()
        failed = []
        for turn in range(60):
            if turn == 20:
                self.a.stop()
            if turn == 40:
                self.a.start()
            answer, _ = self.chat(client)
            if answer.choices[0].message.content != words():
                failed.append(turn)
        self.assertEqual(failed, [])
        self.assertEqual(self.settled_ledger()["failed"], 0)

    def test_a_stream_is_cut_and_its_client_told(self):
        self.a.rule("close=3")
        with self.assertRaises(openai.APIError):
            self.stream()

    def test_who_hangs_up_ends_the_call(self):
        self.a.rule("itl=20;tokens=100000")
        stream = self.client().chat.completions.create(model="mock", messages=ASK, stream=True)
        next(iter(stream))
        stream.close()
        self.assertEqual(self.a.settled()["cancelled"], 1)
        self.assertEqual(self.settled_ledger()["cancelled"], 1)

    def test_a_split_stream_is_the_same_stream(self):
        """However the provider cuts it, the same bytes arrive."""
        def events(rule):
            self.a.rule(rule)
            with Call(self.server.port, {"model": "mock", "messages": ASK, "stream": True}, ["authorization: Bearer app-key"]) as call:
                return [(each["choices"], each["object"]) for each in call.read().objects]

        whole = events("utf8=1")
        for size in (1, 2, 3, 5, 7, 11, 16, 64, 100, 1000):
            with self.subTest(size):
                self.assertEqual(events(f"utf8=1;split={size}"), whole)


class Node(Gateway):
    def test_openai_node(self):
        folder = node_packages.folder_with(self, "openai@7.59.0")
        out = json.loads(node_packages.run(self, folder, "gateway_client.mjs", f"http://127.0.0.1:{self.server.port}/v1", "app-key"))
        self.assertEqual(out["whole"], {"text": words(), "tokens": 16})
        self.assertEqual((out["stream"]["text"], out["stream"]["usage"]), (words(), None))
        self.assertEqual((out["usage"]["text"], out["usage"]["usage"]["completion_tokens"]), (words(), 16))
        self.assertEqual((out["helper"], out["text"]), (words(), words()))
        self.assertEqual(out["headers"]["x-waybill-target"], "a/mock")
        self.assertEqual(out["request_id"], out["headers"]["x-request-id"])
        self.assertEqual((out["embedded"], out["local"]), ([8, 8], 384))
        self.assertLessEqual({"mock", "coding", LOCAL}, set(out["models"]))
        self.assertEqual((out["unknown"]["kind"], out["unknown"]["status"], out["unknown"]["param"]), ("NotFoundError", 404, "model"))
        self.assertEqual(out["wrong_key"]["kind"], "AuthenticationError")
        self.assertEqual(self.b.settled()["started"], 0)
        self.a.settled()
        self.settled_ledger()


if __name__ == "__main__":
    blackbox.main()
