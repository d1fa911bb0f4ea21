#!/usr/bin/env python3
"""openai-python through `waybill serve` to real servers with a real small model: llama.cpp's own, and Ollama by its own API.

Run by `make test-services`. Ollama is built from its Go module on first use, which takes a quarter of an hour or more. The model
has 135 million parameters: what it says is not looked at, how it is said is."""
import json
import sys
import urllib.request
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
import blackbox
import python_packages

if __name__ == "__main__":
    python_packages.need("openai==3.51")

import openai
import real_services
from real_services import free_ports, until
from served import Server

ASK = [{"role": "system", "content": ""}, {"role": "user", "content": "What is the capital of France?"}]
WEATHER = {"type": "function", "function": {"name": "get_weather", "description": "The weather now.", "parameters": {
    "type": "object", "properties": {"city": {"type": "string", "enum": ["Paris", "Rome"]}}, "required": ["city"]}}}
CITY = {"type": "json_schema", "json_schema": {"name": "city", "strict": True, "schema": {
    "type": "object", "properties": {"city": {"type": "string", "enum": ["Paris", "Rome"]}}, "required": ["city"]}}}
TOOL_TALK = [
    {"role": "user", "content": "What is the weather in Paris?"},
    {"role": "assistant", "content": None, "tool_calls": [
        {"id": "call_1", "type": "function", "function": {"name": "get_weather", "arguments": "{\"city\": \"Paris\"}"}}]},
    {"role": "tool", "tool_call_id": "call_1", "content": "18 degrees"}]
# What the GGUF file lacks: a template that shows tools, calls and results.
TOOL_TEMPLATE = ("{{ if .Tools }}<|im_start|>system\n{{ .Tools }}<|im_end|>\n{{ end }}{{ range .Messages }}<|im_start|>{{ .Role }}\n{{ .Content }}"
                 "{{ range .ToolCalls }}<tool_call>{\"name\": \"{{ .Function.Name }}\", \"arguments\": {{ .Function.Arguments }}}</tool_call>{{ end }}"
                 "<|im_end|>\n{{ end }}<|im_start|>assistant\n")


def get(url):
    with urllib.request.urlopen(url, timeout=60) as answer:
        return answer.read().decode()


def post(url, body):
    request = urllib.request.Request(url, json.dumps(body).encode(), {"Content-Type": "application/json"})
    with urllib.request.urlopen(request, timeout=60) as answer:
        return answer.read().decode()


class RealModel(real_services.Case):
    def serve(self, service, **environment):
        self.port = free_ports()
        self.start(service, self.port, **environment)
        config = blackbox.CONFIG.replace("default_route: chat", "default_route: chat\ndefault_model: small")
        models = "".join(f"  - {{name: {name}, targets: [{{provider: real, model: smollm2}}]}}\n" for name in ("small", "qwen-coder", "claude"))
        self.server = Server(self, self.write_config(self.PROVIDER.replace("{port}", str(self.port)) + "models:\n" + models + config))
        client = openai.OpenAI(api_key="none", max_retries=0, base_url=f"http://127.0.0.1:{self.server.port}/v1", timeout=300)
        self.addCleanup(client.close)
        return client

    def assert_usage(self, usage, completion=None):
        self.assertGreater(usage.prompt_tokens, 5)
        self.assertEqual(usage.total_tokens, usage.prompt_tokens + usage.completion_tokens)
        if completion is not None:
            self.assertEqual(usage.completion_tokens, completion)

    def check_chat(self, client):
        whole = client.chat.completions.create(model="small", messages=ASK, temperature=0, max_tokens=64)
        choice = whole.choices[0]
        self.assertEqual((whole.object, choice.message.role, choice.index), ("chat.completion", "assistant", 0))
        self.assertTrue(choice.message.content)
        self.assertIn(choice.finish_reason, ("stop", "length"))
        self.assert_usage(whole.usage)
        cut = client.chat.completions.create(model="small", messages=ASK, max_tokens=3)
        self.assertEqual(cut.choices[0].finish_reason, "length")
        self.assert_usage(cut.usage, completion=3)

    def check_stream(self, client):
        chunks = list(client.chat.completions.create(model="small", messages=ASK, temperature=0, max_tokens=64, stream=True,
                                                     stream_options={"include_usage": True}))
        self.assertEqual(len({chunk.id for chunk in chunks}), 1)
        self.assertEqual(chunks[0].choices[0].delta.role, "assistant")
        self.assertEqual(chunks[-1].choices, [])
        self.assert_usage(chunks[-1].usage)
        self.assertIn(chunks[-2].choices[0].finish_reason, ("stop", "length"))
        texts = [chunk.choices[0].delta.content for chunk in chunks[:-1]]
        self.assertGreater(sum(bool(text) for text in texts), 2)
        unasked = list(client.chat.completions.create(model="small", messages=ASK, max_tokens=4, stream=True))
        self.assertTrue(all(chunk.choices for chunk in unasked))

    def check_completion(self, client):
        whole = client.completions.create(model="small", prompt="The capital of France is", temperature=0, max_tokens=4)
        self.assertEqual((whole.object, whole.choices[0].finish_reason), ("text_completion", "length"))
        self.assertEqual(whole.usage.completion_tokens, 4)
        streamed = list(client.completions.create(model="small", prompt="The capital of France is", max_tokens=4, stream=True))
        self.assertTrue("".join(chunk.choices[0].text for chunk in streamed))

    def check_schema(self, client):
        answer = client.chat.completions.create(model="small", messages=ASK, response_format=CITY, max_tokens=64)
        self.assertIn(json.loads(answer.choices[0].message.content)["city"], ("Paris", "Rome"))

    def check_ledger(self):
        ledger = self.server.get("/v1/ledger").json
        self.assertTrue(ledger["balanced"], ledger)


class LlamaCpp(RealModel):
    PROVIDER = 'providers:\n  - {name: real, base_url: "http://127.0.0.1:{port}/v1", timeouts: {headers: 5m, first_token: 5m}}\n'

    def test_it_serves_every_kind_of_call(self):
        client = self.serve("llm")
        for check in (self.check_chat, self.check_stream, self.check_completion, self.check_schema):
            with self.subTest(check.__name__):
                check(client)
        with self.subTest("tools"):
            # Whether a model of this size calls a tool is its own affair: through the gateway it does what it does without.
            direct = openai.OpenAI(base_url=f"http://127.0.0.1:{self.port}/v1", api_key="none")
            ask = {"messages": ASK, "tools": [WEATHER], "tool_choice": "required", "max_tokens": 32, "temperature": 0, "seed": 1}
            there = direct.chat.completions.create(model="any", **ask)
            here = client.chat.completions.create(model="small", **ask)
            self.assertEqual(here.choices[0].message, there.choices[0].message)
            self.assertEqual(here.usage.prompt_tokens, there.usage.prompt_tokens)
            direct.close()
        self.check_ledger()

    def test_a_client_that_leaves_frees_the_slot(self):
        client = self.serve("llm")
        most = 1500
        stream = client.chat.completions.create(model="small", messages=[{"role": "user", "content": "Count."}], max_tokens=most, stream=True,
                                                extra_body={"ignore_eos": True})
        next(iter(stream))
        stream.close()
        slots = f"http://127.0.0.1:{self.port}/slots"
        until(lambda: not any(slot["is_processing"] for slot in json.loads(get(slots))), "idle slots")
        metrics = get(f"http://127.0.0.1:{self.port}/metrics")
        made = next(float(line.split()[1]) for line in metrics.splitlines() if line.startswith("llamacpp:tokens_predicted_total"))
        self.assertLess(made, most)
        self.check_ledger()


class Ollama(RealModel):
    PROVIDER = ('providers:\n  - {name: real, kind: ollama, base_url: "http://127.0.0.1:{port}", keep_alive: 1h, num_ctx: 1024, '
                'timeouts: {headers: 5m, answer: 5m, first_token: 5m}}\n')

    def serve(self, service="ollama"):
        return super().serve(service, SERVICE_START_S="300")

    def loaded(self):
        return json.loads(get(f"http://127.0.0.1:{self.port}/api/ps"))["models"]

    def test_it_serves_every_kind_of_call(self):
        client = self.serve()
        for check in (self.check_chat, self.check_stream, self.check_completion, self.check_schema):
            with self.subTest(check.__name__):
                check(client)
        with self.subTest("settings"):
            self.assertEqual([model["context_length"] for model in self.loaded()], [1024])
        with self.subTest("the body's own settings"):
            client.chat.completions.create(model="small", messages=ASK, max_tokens=1, extra_body={"keep_alive": 0})
            until(lambda: not self.loaded(), "the model to be unloaded")
        self.check_ledger()

    def test_tools(self):
        client = self.serve()
        with self.assertRaises(openai.BadRequestError) as refused:
            client.chat.completions.create(model="small", messages=ASK, tools=[WEATHER])
        self.assertIn("does not support tools", refused.exception.body["message"])
        post(f"http://127.0.0.1:{self.port}/api/create", {"model": "tooled", "from": "smollm2", "template": TOOL_TEMPLATE, "stream": False})
        answer = client.chat.completions.create(model="real/tooled", messages=TOOL_TALK, tools=[WEATHER], temperature=0, max_tokens=8)
        self.assertIn(answer.choices[0].finish_reason, ("stop", "length", "tool_calls"))
        self.assert_usage(answer.usage)

    def test_embeddings(self):
        client = self.serve()
        packed = client.embeddings.create(model="small", input=["a sentence", "another"])  # asks for base64
        plain = client.embeddings.create(model="small", input=["a sentence", "another"], encoding_format="float")
        self.assertEqual([each.index for each in packed.data], [0, 1])
        self.assertGreater(packed.usage.prompt_tokens, 1)
        for one, other in zip(packed.data, plain.data):
            self.assertEqual(len(one.embedding), len(other.embedding))
            self.assertLess(max(abs(a - b) for a, b in zip(one.embedding, other.embedding)), 1e-5)

    def test_what_it_refuses_is_told(self):
        client = self.serve()
        with self.assertRaises(openai.NotFoundError) as missing:
            client.chat.completions.create(model="real/nothing-like-it", messages=ASK)
        self.assertIn("not found", missing.exception.body["message"])
        with self.assertRaises(openai.BadRequestError) as refused:
            client.chat.completions.create(model="small", messages=ASK, n=2)
        self.assertEqual(refused.exception.body["param"], "n")
        self.check_ledger()


if __name__ == "__main__":
    blackbox.main()
