#!/usr/bin/env python3
"""A gateway and nothing else: models of providers, no routes, and no model on disk."""
import json

import blackbox
from provider import MockProvider
from served import Server

ASK = [{"role": "user", "content": "hi"}]


class WithoutEncoder(blackbox.Case):
    def start(self, more=""):
        mock = MockProvider(self)
        config = (f"encoder: {{model: nowhere/some-model}}\nproviders: [{{name: a, kind: openai, base_url: '{mock.url}/v1'}}]\n"
                  f"models: [{{name: mock, targets: [{{provider: a}}]}}]\n{more}")
        environment = {"WAYBILL_MODEL": ""}
        return Server(self, self.write("waybill.yaml", config), environment=environment)

    def ask(self, server, path, **body):
        return server.post(path, json.dumps(body).encode(), headers={"Content-Type": "application/json"})

    def test_models_answer_and_what_needs_the_encoder_says_so(self):
        server = self.start()
        self.assertEqual(server.get("/ready").status, 200)
        self.assertEqual(self.ask(server, "/v1/chat/completions", model="mock", messages=ASK).status, 200)
        self.assertEqual(self.ask(server, "/v1/embeddings", model="mock", input="a").status, 200)
        self.assertEqual([model["id"] for model in server.get("/v1/models").json["data"]], ["mock"])
        self.assertEqual(server.get("/metrics").status, 200)
        for path, body in (("/v1/chat/completions", {"model": "auto", "messages": ASK}), ("/v1/chat/completions", {"model": "legal", "messages": ASK}),
                           ("/v1/route", {"prompt": "hi"}), ("/route", {"prompt": "hi"}), ("/v1/embeddings", {"model": "all-MiniLM-L6-v2", "input": "a"})):
            answer = self.ask(server, path, **body)
            self.assertEqual((answer.status, answer.json["error"]["param"]), (404, "model"), (path, answer.body))
        self.assertTrue(any("no encoder is loaded" in event["message"] for event in server.events()))
        self.assertEqual(server.post("/v1/admin/reload", b"").status, 200)
        self.assertEqual(self.ask(server, "/v1/chat/completions", model="mock", messages=ASK).status, 200)

    def test_auto_is_the_default_model_where_there_is_one(self):
        server = self.start("default_model: mock\n")
        answer = self.ask(server, "/v1/chat/completions", model="auto", messages=ASK)
        self.assertEqual((answer.status, answer.headers["x-waybill-model"]), (200, "mock"), answer.body)

    def test_routes_need_it(self):
        config = self.write("waybill.yaml", "encoder: {model: nowhere/some-model}\n" + blackbox.CONFIG.split("\n", 2)[2])
        self.refuse(66, "serve", "--config", config, "--listen", "127.0.0.1:0", says="nowhere/some-model", env={"WAYBILL_MODEL": ""})


if __name__ == "__main__":
    blackbox.main()
