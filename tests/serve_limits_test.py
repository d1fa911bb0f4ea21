#!/usr/bin/env python3
"""`waybill serve` at its limits and given what is no request: what is answered, that the connection ends where it
must, and that the ledger has exactly one outcome for each."""
import contextlib
import gzip
import json
import os
import shutil
import socket
import ssl
import subprocess
import sys
import time
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
import blackbox
from raw_client import RawClient, chunked, request
from served import Server

QUICK = """
server:
  header_timeout: 400ms
  body_timeout: 400ms
  idle_timeout: 600ms
  write_timeout: 600ms
  max_header_size: 16KiB
  max_body_size: 64KiB
"""
PROMPT = b'{"prompt": "my unit test fails with a null pointer"}'
OUTCOMES = ("completed", "failed", "rejected", "cancelled", "expired")


class Serving(blackbox.Case):
    def serve(self, more="", **options):
        return Server(self, self.write_config(blackbox.CONFIG + more), **options)

    def account(self, server, before, **expected):
        """The ledger since `before` has these outcomes and no others."""
        now = server.settled_ledger()
        self.assertEqual({name: now[name] - before[name] for name in OUTCOMES if now[name] != before[name]}, expected)
        return now

    def assert_error(self, answer, status, code=None):
        self.assertEqual(answer.status, status, answer)
        error = json.loads(answer.body)["error"]
        self.assertEqual(set(error), {"message", "type", "param", "code"})
        self.assertTrue(error["message"])
        if code is not None:
            self.assertEqual(error["code"], code, answer)


# What is refused and ends the connection: name, bytes, status, code, outcome.
HEAD = b"POST /route HTTP/1.1\r\nHost: x\r\n"
SMUGGLED = b"GET /health HTTP/1.1\r\nHost: x\r\n\r\n"
REFUSED = [
    ("a header that is too large", b"GET /route HTTP/1.1\r\nHost: x\r\nX-A: " + b"a" * 20_000 + b"\r\n\r\n", 431, "header_too_large", "rejected"),
    ("many headers", b"GET /route HTTP/1.1\r\nHost: x\r\n" + b"X-A: b\r\n" * 4000 + b"\r\n", 431, "header_too_large", "rejected"),
    ("a target without an end", b"GET /" + b"a" * 40_000, 431, "header_too_large", "rejected"),
    ("a body that is announced too large", request("POST", "/route", None, "Content-Length: 70000"), 413, "body_too_large", "rejected"),
    ("the same, expecting to be asked", request("POST", "/route", None, "Content-Length: 70000", "Expect: 100-continue"), 413, "body_too_large", "rejected"),
    ("a length beyond 64 bits", request("POST", "/route", None, "Content-Length: 99999999999999999999999"), 400, None, "rejected"),
    ("chunks that are too large", request("POST", "/route", chunked(b"x" * 40_000, b"y" * 40_000), "Transfer-Encoding: chunked"), 413, "body_too_large", "rejected"),
    ("a chunk of 2^60", request("POST", "/route", b"fffffffffffffff\r\n", "Transfer-Encoding: chunked"), 413, "body_too_large", "rejected"),
    ("a chunk size beyond 64 bits", request("POST", "/route", b"10000000000000005\r\nhello\r\n0\r\n\r\n", "Transfer-Encoding: chunked"), 400, "bad_chunk", "rejected"),
    ("endless chunk extensions", request("POST", "/route", b"5;" + b"a" * 70_000, "Transfer-Encoding: chunked"), 400, "bad_chunk", "rejected"),
    ("endless trailers", request("POST", "/route", b"0\r\n" + b"A: b\r\n" * 20_000, "Transfer-Encoding: chunked"), 400, "bad_chunk", "rejected"),
    ("length and chunks", HEAD + b"Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n" + SMUGGLED, 400, None, "rejected"),
    ("chunks and length", HEAD + b"Transfer-Encoding: chunked\r\nContent-Length: 5\r\n\r\n0\r\n\r\n" + SMUGGLED, 400, None, "rejected"),
    ("two lengths", HEAD + b"Content-Length: 5\r\nContent-Length: 6\r\n\r\nhello" + SMUGGLED, 400, "bad_content_length", "rejected"),
    ("the same length twice", HEAD + b"Content-Length: 5\r\nContent-Length: 5\r\n\r\nhello" + SMUGGLED, 400, "bad_content_length", "rejected"),
    ("a list of lengths", HEAD + b"Content-Length: 5, 5\r\n\r\nhello" + SMUGGLED, 400, "bad_content_length", "rejected"),
    ("a signed length", HEAD + b"Content-Length: +5\r\n\r\nhello" + SMUGGLED, 400, None, "rejected"),
    ("a negative length", HEAD + b"Content-Length: -5\r\n\r\nhello" + SMUGGLED, 400, None, "rejected"),
    ("a hexadecimal length", HEAD + b"Content-Length: 0x5\r\n\r\nhello" + SMUGGLED, 400, None, "rejected"),
    ("an empty length", HEAD + b"Content-Length:\r\n\r\n" + SMUGGLED, 400, None, "rejected"),
    ("a length with a space in it", HEAD + b"Content-Length: 1 0\r\n\r\nhello" + SMUGGLED, 400, None, "rejected"),
    ("another transfer encoding", HEAD + b"Transfer-Encoding: gzip\r\n\r\n0\r\n\r\n" + SMUGGLED, 400, "bad_transfer_encoding", "rejected"),
    ("encodings in a list", HEAD + b"Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n" + SMUGGLED, 400, "bad_transfer_encoding", "rejected"),
    ("chunked twice", HEAD + b"Transfer-Encoding: chunked, chunked\r\n\r\n0\r\n\r\n" + SMUGGLED, 400, "bad_transfer_encoding", "rejected"),
    ("chunked in two headers", HEAD + b"Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n" + SMUGGLED, 400, "bad_transfer_encoding", "rejected"),
    ("identity in a second header", HEAD + b"Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n\r\n0\r\n\r\n" + SMUGGLED, 400, "bad_transfer_encoding", "rejected"),
    ("a vertical tab before chunked", HEAD + b"Transfer-Encoding: \x0bchunked\r\n\r\n0\r\n\r\n" + SMUGGLED, 400, None, "rejected"),
    ("chunked in HTTP/1.0", b"POST /route HTTP/1.0\r\nHost: x\r\nConnection: keep-alive\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n" + SMUGGLED, 400, "bad_transfer_encoding", "rejected"),
    ("a space before the colon", HEAD + b"Content-Length : 5\r\n\r\nhello" + SMUGGLED, 400, None, "rejected"),
    ("a folded header", HEAD + b"X-A: b\r\n Content-Length: 5\r\n\r\n" + SMUGGLED, 400, None, "rejected"),
    ("a header without a colon", HEAD + b"Content-Length 5\r\n\r\n" + SMUGGLED, 400, None, "rejected"),
    ("bare line feeds", b"GET /health HTTP/1.1\nHost: x\n\n", 400, "malformed_request", "rejected"),
    ("one bare line feed", HEAD + b"X-A: b\nContent-Length: 5\r\n\r\nhello", 400, "malformed_request", "rejected"),
    ("a bare carriage return", HEAD + b"X-A: b\rContent-Length: 5\r\n\r\nhello", 400, None, "rejected"),
    ("a zero byte in a value", HEAD + b"X-A: b\0c\r\n\r\n", 400, None, "rejected"),
    ("a chunk that ends in a bare line feed", request("POST", "/route", b"5\nhello\r\n0\r\n\r\n", "Transfer-Encoding: chunked"), 400, "bad_chunk", "rejected"),
    ("chunk data without its end", request("POST", "/route", b"5\r\nhelloX\r\n0\r\n\r\n", "Transfer-Encoding: chunked"), 400, "bad_chunk", "rejected"),
    ("a chunk size with two numbers", request("POST", "/route", b"5 5\r\nhello\r\n0\r\n\r\n", "Transfer-Encoding: chunked"), 400, "bad_chunk", "rejected"),
    ("a chunk size of 0x5", request("POST", "/route", b"0x5\r\nhello\r\n0\r\n\r\n", "Transfer-Encoding: chunked"), 400, "bad_chunk", "rejected"),
    ("no host", b"GET /health HTTP/1.1\r\n\r\n", 400, "bad_host", "rejected"),
    ("two hosts", b"GET /health HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n", 400, "bad_host", "rejected"),
    ("two hosts in one", b"GET /health HTTP/1.1\r\nHost: a b\r\n\r\n", 400, "bad_host", "rejected"),
    ("a host with a path", b"GET /health HTTP/1.1\r\nHost: a/b\r\n\r\n", 400, "bad_host", "rejected"),
    ("a host with a user", b"GET /health HTTP/1.1\r\nHost: b@a\r\n\r\n", 400, "bad_host", "rejected"),
    ("a target that is no path", b"GET health HTTP/1.1\r\nHost: x\r\n\r\n", 400, "bad_target", "rejected"),
    ("HTTP/2's preface", b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", None, None, "rejected"),
    ("HTTP/0.9", b"GET /health\r\n\r\n", 400, None, "rejected"),
    ("TLS on a plain port", b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + b"\0" * 64, 400, "malformed_request", "rejected"),
    ("an unknown expectation", request("POST", "/route", None, "Content-Length: 5", "Expect: a miracle"), 417, "unknown_expectation", "rejected"),
    ("a header that stops", b"GET /health HTTP/1.1\r\nHos", 408, "header_timeout", "expired"),
    ("a body that stops", request("POST", "/route", None, "Content-Length: 50") + b"{", 408, "body_timeout", "expired"),
    ("a chunk that stops", request("POST", "/route", b"5\r\nhel", "Transfer-Encoding: chunked"), 408, "body_timeout", "expired"),
]


class Refused(Serving):
    def test_what_is_no_request_is_told_and_ends_the_connection(self):
        server = self.serve(QUICK)
        before = server.ledger()
        for name, data, status, code, outcome in REFUSED:
            with self.subTest(name), RawClient(server.port) as client:
                client.send_what_is_taken(data)
                answer = client.answer()
                if status is None:  # not 200; which one does not matter
                    self.assertIn(answer.status, (400, 505), answer)
                else:
                    self.assert_error(answer, status, code)
                self.assertEqual(answer.headers["connection"], "close")
                self.assertIn("x-waybill-request-id", answer.headers)
                self.assertTrue(client.is_ended(), "something else was answered after it")
                now = server.settled_ledger()
                since, before = before, now
                self.assertEqual({each: now[each] - since[each] for each in OUTCOMES if now[each] != since[each]}, {outcome: 1})

    def test_it_is_told_also_after_a_request_that_went_well(self):
        server = self.serve(QUICK)
        with RawClient(server.port) as client:
            client.send(request("POST", "/route", PROMPT, "Connection: keep-alive", version="HTTP/1.0"))
            self.assertEqual(client.answer().status, 200)
            before = server.settled_ledger()
            time.sleep(0.1)
            client.send(b"GET /health HTTP/1.1\r\nHos")
            answer = client.answer()
            self.assert_error(answer, 408, "header_timeout")
            self.assertEqual(answer.version, "HTTP/1.1")
        self.account(server, before, expired=1)
        waybill = server.get(f"/v1/requests/{answer.headers['x-waybill-request-id']}").json
        self.assertEqual(waybill["error"]["stage"], "read")
        read = [stage for stage in waybill["stages"] if stage["stage"] == "read"][0]
        # From this request's first byte, not from the one before it.
        self.assertGreaterEqual(read["length_us"], 400_000)
        self.assertGreaterEqual(waybill["duration_us"], read["length_us"])

    def test_who_sent_it_is_known_once_its_head_was_read(self):
        server = self.serve(QUICK + "  cors: {allow_origins: [https://app.example.com]}\n")
        sender = ("Origin: https://app.example.com", "x-request-id: theirs", "x-correlation-id: order-7",
                  "traceparent: 00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01")
        for body, *headers in ((None, "Content-Length: 70000"), (b"{", "Content-Length: 50")):
            with self.subTest(headers), RawClient(server.port) as client:
                client.send(request("POST", "/route", body, *headers, *sender))
                answer = client.answer()
                self.assertIn(answer.status, (408, 413))
                self.assertEqual(answer.headers["access-control-allow-origin"], "https://app.example.com")
                self.assertEqual(answer.headers["x-request-id"], "theirs")
                waybill = server.get(f"/v1/requests/{answer.headers['x-waybill-request-id']}").json
                self.assertEqual((waybill["request_id"], waybill["correlation_id"], waybill["trace_id"]),
                                 ("theirs", "order-7", "0af7651916cd43dd8448eb211c80319c"))
        with RawClient(server.port) as client:  # whose headers are not certain
            client.send(request("POST", "/route", None, "Content-Length: 5", *sender, "Content-Length: 5"))
            answer = client.answer()
            self.assertEqual(answer.headers["x-request-id"], answer.headers["x-waybill-request-id"])

    def test_a_body_that_is_encoded_is_told_apart_from_one_that_is_wrong(self):
        server = self.serve(QUICK)
        with RawClient(server.port) as client:
            client.send(request("POST", "/route", gzip.compress(PROMPT), "Content-Encoding: gzip"))
            answer = client.answer()
            self.assert_error(answer, 400, "unsupported")
            self.assertIn("Content-Encoding: gzip", json.loads(answer.body)["error"]["message"])
            self.assertEqual(json.loads(answer.body)["error"]["param"], "content-encoding")
            client.send(request("POST", "/route", PROMPT, "Content-Encoding: Identity"))
            self.assertEqual(client.answer().status, 200)

    def test_a_client_that_leaves_within_its_body_is_cancelled(self):
        server = self.serve(QUICK.replace("400ms", "30s"))
        before = server.ledger()
        with RawClient(server.port) as client:
            client.send(request("POST", "/route", None, "Content-Length: 50") + b"{")
        self.wait_for_outcome(server, before, "cancelled")
        self.account(server, before, cancelled=1)

    def wait_for_outcome(self, server, before, outcome):
        deadline = time.monotonic() + 60
        while server.ledger()[outcome] == before[outcome]:
            self.assertLess(time.monotonic(), deadline, server.ledger())
            time.sleep(0.02)


class Connections(Serving):
    def test_an_idle_connection_is_ended_without_an_answer(self):
        server = self.serve(QUICK)
        before = server.ledger()
        with RawClient(server.port) as fresh, RawClient(server.port) as used:
            used.send(request("GET", "/health"))
            self.assertEqual(used.answer().status, 200)
            self.assertTrue(used.is_ended())
            self.assertTrue(fresh.is_ended())
        self.account(server, before)

    def test_one_connection_too_many_is_told_so(self):
        server = self.serve("\nserver:\n  max_connections: 3\n")
        held = [RawClient(server.port) for _ in range(3)]
        for client in held:
            client.send(request("GET", "/health"))
            self.assertEqual(client.answer().status, 200)
        # Also to clients that send late, and a body: the answer must not be lost in a reset.
        for pause in [0, 0, 0, 0.05, 0.2]:
            with RawClient(server.port) as client:
                time.sleep(pause)
                client.send(request("POST", "/route", PROMPT))
                answer = client.answer()
                self.assert_error(answer, 503, "too_many_connections")
                self.assertGreaterEqual(int(answer.headers["retry-after"]), 1)
                self.assertTrue(client.is_ended())
        held[0].send(request("GET", "/metrics"))
        self.assertIn("\nwaybill_connections_refused_total 5\n", held[0].answer().body.decode())
        told = server.wait_for_event("connections are refused: as many as are held are open (server.max_connections)")
        self.assertEqual(told["connections_held"], 3)
        for client in held:
            client.socket.close()
        deadline = time.monotonic() + 60
        while True:
            with RawClient(server.port) as client:
                client.send(request("POST", "/route", PROMPT, "Connection: close"))
                if client.answer().status == 200:
                    break
            self.assertLess(time.monotonic(), deadline)
        self.assertEqual(server.settled_ledger()["completed"], 1)

    def test_a_reader_that_does_not_read_is_ended_and_cancelled(self):
        server = self.serve(QUICK.replace("64KiB", "10MiB"))
        before = server.ledger()
        body = json.dumps({"input": ["a"] * 2000}).encode()
        with RawClient(server.port) as client:
            client.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            for _ in range(4):  # some 4 MB each: more than the sockets' buffers hold
                client.send_what_is_taken(request("POST", "/v1/embeddings", body))
            deadline = time.monotonic() + 120
            while server.ledger()["cancelled"] == before["cancelled"]:
                self.assertLess(time.monotonic(), deadline, server.ledger())
                time.sleep(0.05)
        ledger = server.settled_ledger()
        self.assertGreaterEqual(ledger["cancelled"] - before["cancelled"], 1)
        self.assertEqual(ledger["failed"], before["failed"])


class Protocol(Serving):
    def test_a_body_is_asked_for(self):
        server = self.serve()
        with RawClient(server.port) as client:
            client.send(request("POST", "/route", None, f"Content-Length: {len(PROMPT)}", "Expect: 100-continue"))
            self.assertEqual(client.answer().status, 100)
            client.send(PROMPT)
            self.assertEqual(client.answer().status, 200)
            # Who does not wait to be asked need not be.
            client.send(request("POST", "/route", PROMPT, "Expect: 100-continue"))
            self.assertEqual(client.answer().status, 200)
            self.assertEqual(client.read, b"")
        with RawClient(server.port) as client:
            client.send(request("POST", "/route", None, f"Content-Length: {len(PROMPT)}", "Expect: 100-continue",
                                version="HTTP/1.0") + PROMPT)
            self.assertEqual(client.answer().status, 200)
        self.assertEqual(server.settled_ledger()["completed"], 3)

    def test_curl_is_asked_for_a_large_body(self):
        server = self.serve()
        body = self.write("body.json", json.dumps({"prompt": "x " * 60_000}))
        done = subprocess.run(["curl", "-sS", "-D", "-", "-H", "Expect: 100-continue", "-H", "Content-Type: application/json",
                               "--data-binary", f"@{body}", f"http://127.0.0.1:{server.port}/route"], capture_output=True, timeout=120)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertTrue(done.stdout.startswith(b"HTTP/1.1 100 "), done.stdout[:100])
        self.assertIn(b"HTTP/1.1 200 OK", done.stdout)

    def test_pipelined_requests_are_answered_in_order(self):
        server = self.serve()
        asked = []
        data = b""
        for i in range(120):
            kind = i % 4
            if kind == 0:
                data += request("POST", "/route", PROMPT, f"x-request-id: id-{i}")
            elif kind == 1:
                data += request("POST", "/route", chunked(b'{"prompt": ', b'"prompt %d"}' % i), f"x-request-id: id-{i}", "Transfer-Encoding: chunked")
            elif kind == 2:
                data += request("POST", "/route", b"{", f"x-request-id: id-{i}")
            else:
                data += request("GET", "/nothing", None, f"x-request-id: id-{i}")
            asked.append((200, 200, 400, 404)[kind])
        with RawClient(server.port) as client:
            client.send(data)
            for i, status in enumerate(asked):
                answer = client.answer()
                self.assertEqual((answer.status, answer.headers["x-request-id"]), (status, f"id-{i}"))
        ledger = server.settled_ledger()
        self.assertEqual((ledger["completed"], ledger["rejected"]), (60, 60))

    def test_a_request_may_come_in_any_pieces(self):
        server = self.serve()
        head = b"POST /route HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n"
        data = head + chunked(b'{"prompt": "why doe', b's my program segfault?"}')
        wanted = None
        with RawClient(server.port) as client:
            for split in range(1, len(data)):
                client.send(data[:split])
                time.sleep(0.002)  # so that the pieces are read one by one
                client.send(data[split:])
                answer = client.answer()
                self.assertEqual(answer.status, 200, split)
                route = json.loads(answer.body)["route"]
                wanted = wanted or route
                self.assertEqual(route, wanted)
        with RawClient(server.port) as client:
            for byte in data:
                client.send(bytes([byte]))
            self.assertEqual(json.loads(client.answer().body)["route"], wanted)
        self.assertEqual(server.settled_ledger()["completed"], len(data))

    def test_http_1_0(self):
        server = self.serve()
        with RawClient(server.port) as client:
            client.send(b"GET /health HTTP/1.0\r\n\r\n")
            answer = client.answer()
            self.assertEqual((answer.version, answer.status), ("HTTP/1.0", 200))
            self.assertTrue(client.is_ended())
        with RawClient(server.port) as client:
            for _ in range(2):
                client.send(request("POST", "/route", PROMPT, "Connection: keep-alive", version="HTTP/1.0"))
                answer = client.answer()
                self.assertEqual((answer.status, answer.headers["connection"].lower()), (200, "keep-alive"))
            client.send(request("POST", "/route", PROMPT, "Connection: close"))
            self.assertEqual(client.answer().headers["connection"], "close")
            self.assertTrue(client.is_ended())

    def test_head_is_get_without_a_body(self):
        server = self.serve()
        with RawClient(server.port) as client:
            for path in ("/health", "/v1/models", "/docs", "/nothing"):
                client.send(request("GET", path))
                get = client.answer()
                client.send(request("HEAD", path))
                head = client.answer(head_only=True)
                self.assertEqual((head.status, head.headers["content-length"]), (get.status, get.headers["content-length"]))
                self.assertEqual(client.read, b"")
            client.send(request("HEAD", "/route"))
            self.assertEqual(client.answer(head_only=True).status, 405)

    def test_other_origins(self):
        server = self.serve("\nserver:\n  cors:\n    allow_origins: [https://app.example.com]\n")
        preflight = ("Access-Control-Request-Method: POST", "Access-Control-Request-Headers: authorization, content-type")
        with RawClient(server.port) as client:
            client.send(request("OPTIONS", "/route", None, "Origin: https://app.example.com", *preflight))
            answer = client.answer()
            self.assertEqual(answer.status, 204)
            self.assertEqual(answer.headers["access-control-allow-origin"], "https://app.example.com")
            self.assertIn("POST", answer.headers["access-control-allow-methods"])
            self.assertEqual(answer.headers["access-control-allow-headers"], "authorization, content-type")
            self.assertEqual(answer.headers["vary"], "Origin")
            # Errors too: a page must be able to read them.
            client.send(request("POST", "/route", b"{", "Origin: https://app.example.com"))
            answer = client.answer()
            self.assertEqual((answer.status, answer.headers["access-control-allow-origin"]), (400, "https://app.example.com"))
            client.send(request("OPTIONS", "/v1/jobs/7", None, "Origin: https://app.example.com", "Access-Control-Request-Method: DELETE"))
            self.assertIn("DELETE", client.answer().headers["access-control-allow-methods"])
            for origin in ("https://evil.example.com", "https://app.example.com.evil.com", "null"):
                for method in ("OPTIONS", "POST"):
                    client.send(request(method, "/route", PROMPT if method == "POST" else None, f"Origin: {origin}", *preflight))
                    answer = client.answer()
                    self.assertFalse([name for name in answer.headers if name.startswith("access-control")], answer)
                    self.assertEqual(answer.headers["vary"], "Origin")
            client.send(request("OPTIONS", "*"))
            self.assertEqual(client.answer().status, 204)
        any_origin = self.serve("\nserver:\n  cors:\n    allow_origins: ['*']\n")
        with RawClient(any_origin.port) as client:
            client.send(request("POST", "/route", PROMPT, "Origin: https://anybody.example"))
            self.assertEqual(client.answer().headers["access-control-allow-origin"], "*")

    def test_names_in_paths_may_need_escapes(self):
        server = Server(self, self.write_config(blackbox.CONFIG.replace("model: claude", "model: some org/a model+1")))
        for path in ("/v1/models/some%20org%2Fa%20model+1", "/v1/models/some%20org%2fa%20model%2B1"):
            answer = server.get(path)
            self.assertEqual((answer.status, answer.json["id"]), (200, "some org/a model+1"))
        server.post("/route", {"prompt": "a"}, headers={"x-request-id": "job 7/step 2"})
        server.settled_ledger()
        self.assertEqual(server.get("/v1/requests/job%207%2Fstep%202").json["request_id"], "job 7/step 2")


class Exposure(Serving):
    def test_without_keys_the_admin_endpoints_are_for_this_machine(self):
        config = self.write_config(blackbox.CONFIG + "\nserver:\n  insecure: true\n")
        server = Server(self, config, arguments=("--listen", "0.0.0.0:0"))
        self.assertEqual(server.get("/v1/ledger").status, 200)
        address = subprocess.run(["hostname", "-I"], capture_output=True, text=True).stdout.split()
        address = next((each for each in address if "." in each and not each.startswith("127.")), None)
        self.assertIsNotNone(address, "this machine has no address but its loopback: the test cannot be made here")
        with socket.create_connection((address, server.port), timeout=60) as client:
            client.sendall(request("GET", "/v1/ledger", None, "Connection: close"))
            self.assertTrue(client.recv(65536).startswith(b"HTTP/1.1 403 "))

    def test_a_reload_does_not_open_what_listens_beyond_this_machine(self):
        keys = "\nkeys:\n  - {name: ops, sha256: 2bb80d537b1da3e38bd30361aa855686bde0eacd7162fef6a25fe97bf527a25b, admin: true}\n"
        config = self.write_config(blackbox.CONFIG + keys)
        server = Server(self, config, arguments=("--listen", "0.0.0.0:0"))
        admin = {"x-api-key": "secret"}
        answer = server.post("/v1/admin/reload", b"", headers=admin)
        self.assertEqual(answer.status, 200)
        self.assertNotIn("restart", answer.json["message"])
        self.write_config(blackbox.CONFIG)
        answer = server.post("/v1/admin/reload", b"", headers=admin)
        self.assertEqual(answer.status, 400)
        self.assertIn("without keys", answer.error["message"])
        self.assertEqual(server.post("/route", {"prompt": "a"}).status, 401)


class Listening(Serving):
    def test_a_unix_socket(self):
        path = str(self.folder / "waybill.sock")
        server = self.serve(arguments=("--listen", f"unix:{path}", "--listen", "127.0.0.1:0"))
        with RawClient(path) as client:
            client.send(request("POST", "/route", PROMPT))
            self.assertEqual(client.answer().status, 200)
            client.send(request("GET", "/v1/ledger"))
            self.assertEqual(client.answer().status, 200)
        self.assertEqual(server.stop(), 0)
        self.assertFalse(os.path.exists(path))

    def test_a_socket_that_a_crash_left_behind_is_taken_over_and_one_in_use_is_not(self):
        path = self.folder / "waybill.sock"
        left = socket.socket(socket.AF_UNIX)
        left.bind(str(path))
        left.close()
        server = self.serve(arguments=("--listen", f"unix:{path}"))
        self.refuse(74, "serve", "--config", "waybill.yaml", "--listen", f"unix:{path}", says="another program listens there")
        self.assertIsNone(server.process.poll())
        with RawClient(str(path)) as client:
            client.send(request("GET", "/health"))
            self.assertEqual(client.answer().status, 200)

    def systemd(self, sockets, count=None):
        """Starts the program as systemd does: sockets from descriptor 3 on, LISTEN_PID its own process."""
        start = f"export LISTEN_PID=$$ LISTEN_FDS={len(sockets) if count is None else count}; exec \"$@\""
        moved = " ".join(f"{3 + i}<&{each.fileno()}" for i, each in enumerate(sockets))
        return ["bash", "-c", f"exec {moved}; {start}" if moved else start, "systemd"], [each.fileno() for each in sockets]

    def test_sockets_from_systemd(self):
        listening = socket.socket()
        listening.bind(("127.0.0.1", 0))
        listening.listen(16)
        os.set_inheritable(listening.fileno(), True)
        prefix, descriptors = self.systemd([listening])
        config = "\nserver:\n  listen: systemd\n  insecure: true\n"
        server = Server(self, self.write_config(blackbox.CONFIG + config), arguments=(), prefix=prefix, pass_fds=descriptors)
        server.port = listening.getsockname()[1]
        self.assertEqual(server.post("/route", {"prompt": "a"}).status, 200)
        self.assertEqual(server.stop(), 0)
        # The socket is systemd's: who connects now waits for the next instance and is not refused.
        with RawClient(server.port) as waiting:
            waiting.send(request("GET", "/health"))
            again = Server(self, self.folder / "waybill.yaml", arguments=(), prefix=prefix, pass_fds=descriptors)
            self.assertEqual(waiting.answer().status, 200)
            self.assertEqual(again.stop(), 0)
        listening.close()

    def test_systemd_that_hands_nothing_over_is_told(self):
        config = self.write_config(blackbox.CONFIG + "\nserver:\n  listen: systemd\n  insecure: true\n")
        self.refuse(65, "serve", "--config", config, says="systemd has handed no socket over")
        for count in ("0", "-1", "many"):
            prefix, _ = self.systemd([], count)
            done = subprocess.run([*prefix, str(blackbox.PROGRAM), "serve", "--config", str(config)], capture_output=True,
                                  text=True, timeout=120)
            self.assertEqual(done.returncode, 65, done.stderr)
            self.assertIn("no socket was handed over", done.stderr)


class Tls(Serving):
    def make_certificate(self, name, organisation):
        self.assertTrue(shutil.which("openssl"), "the openssl program makes the certificates of this test; install it")
        subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2",
                        "-keyout", self.folder / f"{name}.key", "-out", self.folder / f"{name}.pem",
                        "-subj", f"/O={organisation}/CN=localhost", "-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1"],
                       check=True, capture_output=True)
        return self.folder / f"{name}.pem", self.folder / f"{name}.key"

    def trusting(self, certificate):
        context = ssl.create_default_context(cafile=str(certificate))
        context.set_alpn_protocols(["h2", "http/1.1"])
        return context

    def serve_tls(self, more=""):
        self.make_certificate("server", "first")
        return self.serve(f"\nserver:\n  tls: {{certificate: server.pem, private_key: server.key}}\n{more}")

    def ask_health(self, server, context):
        with RawClient(server.port, wrap=context) as client:
            client.send(request("GET", "/health", None, "Connection: close"))
            return client.answer().status

    def test_requests_over_tls(self):
        server = self.serve_tls("  max_body_size: 1MiB\n")
        self.assertTrue(server.addresses[0].startswith("https://"))
        context = self.trusting(self.folder / "server.pem")
        with RawClient(server.port, wrap=context) as client:
            self.assertEqual(client.socket.selected_alpn_protocol(), "http/1.1")
            for _ in range(3):
                client.send(request("POST", "/route", PROMPT))
                self.assertEqual(client.answer().status, 200)
            # Larger than a TLS record and than the socket's buffers, both ways.
            client.send(request("POST", "/v1/embeddings", json.dumps({"input": ["word " * 40] * 1000}).encode()))
            self.assertEqual(len(json.loads(client.answer().body)["data"]), 1000)
        with RawClient(server.port, wrap=context) as client:
            client.send(request("GET", "/v1/ledger"))
            ledger = json.loads(client.answer().body)
            self.assertEqual((ledger["completed"], ledger["accepted"]), (4, 4))
        self.assertEqual(server.stop(), 0)

    def test_old_versions_and_plain_text_are_refused(self):
        server = self.serve_tls()
        for option, works in (("-tls1_1", False), ("-tls1", False), ("-tls1_2", True), ("-tls1_3", True)):
            done = subprocess.run(["openssl", "s_client", "-connect", f"127.0.0.1:{server.port}", option, "-cipher",
                                   "DEFAULT:@SECLEVEL=0", "-brief"], input=b"", capture_output=True, timeout=60)
            self.assertEqual(b"CONNECTION ESTABLISHED" in done.stderr, works, (option, done.stderr))
        with RawClient(server.port) as client:
            client.send(request("GET", "/health"))
            with contextlib.suppress(ConnectionResetError):
                while got := client.socket.recv(4096):  # an alert at most
                    self.assertNotIn(b"HTTP", got)
        self.assertEqual(self.ask_health(server, self.trusting(self.folder / "server.pem")), 200)

    def test_a_changed_certificate_is_taken_up_and_a_bad_one_is_not(self):
        server = self.serve_tls()
        first = self.trusting(self.folder / "server.pem")
        old = RawClient(server.port, wrap=first)
        old.send(request("GET", "/health"))
        self.assertEqual(old.answer().status, 200)
        certificate, key = self.make_certificate("second", "second")
        (self.folder / "server.pem").write_bytes(b"no certificate")
        server.wait_for_event("the changed certificate cannot be used; the one before stays in use")
        self.assertEqual(self.ask_health(server, first), 200)
        shutil.copy(key, self.folder / "server.key")
        shutil.copy(certificate, self.folder / "server.pem")
        server.wait_for_event("the certificate was changed")
        self.assertEqual(self.ask_health(server, self.trusting(certificate)), 200)
        with self.assertRaises(ssl.SSLError):
            self.ask_health(server, first)
        old.send(request("GET", "/health"))  # it keeps what it began with
        self.assertEqual(old.answer().status, 200)
        old.socket.close()


if __name__ == "__main__":
    blackbox.main()
