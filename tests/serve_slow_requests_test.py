#!/usr/bin/env python3
"""`waybill serve` and requests that do not come at once: more of them than there is memory for, while the program stands
still, and while it stops."""
import contextlib
import json
import re
import select
import signal
import sys
import threading
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
import blackbox
from raw_client import RawClient, chunked, request
from serve_limits_test import PROMPT, QUICK, Serving


class Bodies(Serving):
    """More bytes of bodies than the server takes for all requests together."""
    SIZE = 1_000_000

    def body(self, n):
        """A prompt that is not there yet, as large as SIZE with white space."""
        prompt = json.dumps({"prompt": f"question {n}"}).encode()
        return prompt + b" " * (self.SIZE - len(prompt))

    def head(self, *headers):
        return request("POST", "/route", None, f"Content-Length: {self.SIZE}", *headers)

    def metric(self, server, name):
        return float(re.search(rf"^{name} (\S+)$", server.get("/metrics").body.decode(), re.M)[1])

    def wait_for_bytes(self, server, bytes_held):
        deadline = time.monotonic() + 60
        while (held := self.metric(server, "waybill_request_body_bytes")) != bytes_held:
            self.assertLess(time.monotonic(), deadline, held)
            time.sleep(0.02)

    def test_those_for_which_there_is_no_room_are_told_so_until_there_is(self):
        server = self.serve("\nserver:\n  max_body_size: 1MiB\n  max_total_body_size: 4MiB\n")
        before = server.ledger()
        slow = [RawClient(server.port) for _ in range(4)]
        for n, client in enumerate(slow):
            client.send(self.head() + self.body(n)[:-10])
        self.wait_for_bytes(server, 4 * self.SIZE)
        for headers in ((), ("Expect: 100-continue",)):
            for _ in range(10):
                with RawClient(server.port) as client:
                    client.send(self.head(*headers))
                    answer = client.answer()
                    self.assert_error(answer, 503, "too_many_body_bytes")
                    self.assertGreaterEqual(int(answer.headers["retry-after"]), 1)
                    self.assertEqual(answer.headers["connection"], "close")
                    self.assertTrue(client.is_ended())
        with RawClient(server.port) as client:  # it may not be much, but none says how much it will be
            client.send_what_is_taken(request("POST", "/route", chunked(*[b" " * 100_000] * 9), "Transfer-Encoding: chunked"))
            self.assert_error(client.answer(), 503, "too_many_body_bytes")
            self.assertTrue(client.is_ended())
        with RawClient(server.port) as client:
            client.send(request("POST", "/route", PROMPT))
            self.assertEqual(client.answer().status, 200, "small ones are taken")
        waybill = server.get(f"/v1/requests/{answer.headers['x-waybill-request-id']}").json
        self.assertEqual((waybill["outcome"], waybill["status"], waybill["error"]["stage"]), ("rejected", 503, "read"))
        self.assertEqual(self.metric(server, "waybill_request_bodies_refused_total"), 21)
        slow.pop().socket.close()  # one leaves, the others end
        for n, client in enumerate(slow):
            client.send(self.body(n)[-10:])
            self.assertEqual(client.answer().status, 200)
        self.wait_for_bytes(server, 0)
        for n in range(10):
            with RawClient(server.port) as client:
                client.send(self.head() + self.body(n))
                self.assertEqual(client.answer().status, 200)
        self.account(server, before, completed=14, rejected=21, cancelled=1)
        self.wait_for_bytes(server, 0)


class StandingStill(Serving):
    """The program is stopped for longer than its timeouts, as a busy machine or a moved one does it: who was in time is answered."""
    COUNT = 450  # more than a loop hears of at a time, so that timers come between them

    def test_what_came_meanwhile_came_in_time(self):
        server = self.serve(QUICK)
        before = server.ledger()
        whole = request("POST", "/route", PROMPT)
        for cut in (whole.index(b"Host"), len(whole) - 5):
            clients = [RawClient(server.port) for _ in range(self.COUNT)]
            for client in clients:
                client.send(whole[:cut])
            server.process.send_signal(signal.SIGSTOP)
            for client in clients:
                client.send(whole[cut:])
            time.sleep(1)
            server.process.send_signal(signal.SIGCONT)
            for client in clients:
                answer = client.answer()
                self.assertEqual(answer.status, 200, answer)
                client.socket.close()
        self.account(server, before, completed=2 * self.COUNT)


class Stopping(Serving):
    def test_a_request_that_is_still_coming_is_told_so(self):
        server = self.serve("\nserver:\n  drain_timeout: 300ms\n")
        whole = request("POST", "/route", PROMPT)
        slow = [RawClient(server.port) for _ in range(2)]
        for client, cut in zip(slow, (whole.index(b"Host"), len(whole) - 5)):
            client.send(whole[:cut])
        busy = RawClient(server.port)
        busy.send(request("POST", "/route", None, "Content-Length: 9000000"))
        stopping = threading.Thread(target=server.stop)
        stopping.start()
        sent = 0
        with contextlib.suppress(OSError):  # until nobody takes it any more
            while sent < 8_000_000 and not select.select([busy.socket], [], [], 0.01)[0]:
                sent += busy.socket.send(b" " * 20_000)
        for client in (*slow, busy):
            answer = client.answer()
            self.assert_error(answer, 503, "shutting_down")
            self.assertGreaterEqual(int(answer.headers["retry-after"]), 1)
            self.assertTrue(client.is_ended())
        stopping.join()
        self.assertEqual(server.process.returncode, 0)
        self.assertEqual(server.wait_for_event("stopped")["imbalance"], 0)
        told = [event for event in server.events() if event["message"] == "request"]
        self.assertEqual([event["outcome"] for event in told], ["rejected"] * 3, told)


if __name__ == "__main__":
    blackbox.main()
