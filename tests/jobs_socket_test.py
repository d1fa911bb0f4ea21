#!/usr/bin/env python3
"""GET /v1/jobs/ws, as the Python package websockets meets it."""
import asyncio
import json
import sys
import threading
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
import python_packages

python_packages.need("websockets==17.4")

from websockets.asyncio.client import connect as connect_async
from websockets.exceptions import ConnectionClosed, InvalidStatus
from websockets.sync.client import connect

import blackbox
from gateway_config import APP, OPS
from jobs import ASK, Jobs, NARROW, TERMINAL


class Sockets(Jobs):
    def socket(self, headers=APP, **more):
        socket = connect(f"ws://127.0.0.1:{self.server.port}/v1/jobs/ws", additional_headers=headers, open_timeout=60, proxy=None, legacy=True,
                         **more)
        self.addCleanup(socket.close)
        return socket

    def say(self, socket, **message):
        socket.send(json.dumps(message))

    def hear(self, socket, type=None):
        message = json.loads(socket.recv(timeout=60))
        if type:
            self.assertEqual(message["type"], type, message)
        return message

    def subscribe(self, socket, **what):
        self.say(socket, type="subscribe", **what)
        return self.hear(socket, "subscribed")

    def ends(self, socket, count):
        """[(job, cursor)] of the next ends, in the order in which they are told."""
        ends = []
        while len(ends) < count:
            message = self.hear(socket, "job")
            if message["job"]["status"] in TERMINAL:
                ends.append((message["job"]["id"], message["cursor"]))
        return ends

    def nothing(self, socket):
        """What is answered now is the answer to a ping."""
        self.say(socket, type="ping")
        self.assertEqual(self.hear(socket), {"type": "pong"})

    def held(self, count=1, headers=APP):
        return [self.submit(request={}, queue="gpu", headers=headers)["id"] for _ in range(count)]

    def cancel(self, *jobs):
        for job in jobs:
            self.post(f"/v1/jobs/{job}/cancel")


class Listening(Sockets):
    def test_a_job_is_told_as_it_stands_and_then_its_changes_to_its_end(self):
        socket = self.socket()
        (job,) = self.held()
        begun = self.subscribe(socket, jobs=[job])
        self.assertEqual(begun["jobs"], 1)
        message = self.hear(socket, "job")
        self.assertEqual(message["job"], self.job(job))
        self.assertEqual((message["cursor"], message["job"]["status"]), (begun["cursor"], "queued"))
        (lease,) = self.post("/v1/queues/gpu/lease", {"max": 1, "wait": 10})["data"]
        self.assertEqual(self.hear(socket, "job")["job"]["status"], "running")
        self.post(f"/v1/leases/{lease['token']}/complete", {"result": 7})
        message = self.hear(socket, "job")
        self.assertEqual((message["job"]["status"], message["cursor"]), ("completed", begun["cursor"] + 1))
        self.nothing(socket)

    def test_an_end_is_told_once_whenever_it_comes(self):
        socket = self.socket()
        for i in range(100):
            job = self.submit({**ASK, "user": str(i)})["id"]  # it runs, and may end at any time from now on
            if i % 3 == 0:
                self.ended(job)
            self.subscribe(socket, jobs=[job])
            self.assertEqual(self.ends(socket, 1)[0][0], job)
            self.nothing(socket)

    def test_queues_and_all_and_who_hears_what(self):
        everything, queue, own, narrow = self.socket(OPS), self.socket(OPS), self.socket(APP), self.socket(NARROW)
        self.subscribe(everything, all=True)
        self.subscribe(queue, queue="gpu")
        self.subscribe(own, all=True)
        self.subscribe(narrow, all=True)
        (job,), (other,) = self.held(), self.held(headers=NARROW)
        call = self.submit()["id"]
        self.ended(call)
        self.cancel(job, other)
        for socket, jobs in ((everything, {job, other, call}), (queue, {job, other}), (own, {job, call}), (narrow, {other})):
            told = self.ends(socket, len(jobs))
            self.assertEqual({each for each, _ in told}, jobs)
            self.assertEqual([cursor for _, cursor in told], sorted({cursor for _, cursor in told}))
            self.nothing(socket)
        self.subscribe(queue, queue="(calls)")
        keyed = self.server.post("/v1/chat/completions", ASK, headers={**APP, "Idempotency-Key": "told"})
        self.assertEqual(keyed.status, 200)
        (record,) = self.server.get("/v1/jobs?queue=(calls)", headers=APP).json["data"]
        self.assertEqual(self.ends(queue, 1)[0][0], record["id"], "who asks for the records of calls")
        for socket in everything, own:
            self.nothing(socket)
        self.say(own, type="unsubscribe", all=True)
        self.hear(own, "unsubscribed")
        self.cancel(*self.held())
        self.nothing(own)

    def test_what_is_wrong_is_said_and_the_connection_stays(self):
        socket = self.socket()
        (own,), (foreign,) = self.held(), self.held(headers=NARROW)
        nowhere = "00000000-0000-7000-8000-000000000000"
        for message, field in (("{", None), ("[]", None), ('{"type": "dance"}', "type"), ("{}", "type"), (b"\x00", None),
                               ('{"type": "subscribe"}', "jobs"), ('{"type": "subscribe", "jobs": "x"}', "jobs"),
                               ('{"type": "subscribe", "jobs": ["x"]}', "jobs"), ('{"type": "subscribe", "queue": "nowhere"}', "queue"),
                               ('{"type": "subscribe", "job": 7}', "job"), ('{"type": "resume"}', "cursor"), ('{"type": "resume", "cursor": -1}', "cursor"),
                               (json.dumps({"type": "subscribe", "jobs": [nowhere] * 10_001}), "jobs")):
            socket.send(message)
            error = self.hear(socket, "error")
            self.assertEqual((error["code"], error.get("field")), ("invalid_message", field), message)
        self.subscribe(socket, jobs=[nowhere, foreign, own])
        for job in nowhere, foreign:
            error = self.hear(socket, "error")
            self.assertEqual((error["code"], error["job"]), ("not_found", job))
        self.assertEqual(self.hear(socket, "job")["job"]["id"], own)
        self.cancel(foreign, own)
        self.assertEqual(self.ends(socket, 1)[0][0], own)
        self.nothing(socket)

    def test_who_may_listen(self):
        for headers in ({}, {"Authorization": "Bearer nobody"}):
            with self.assertRaises(InvalidStatus) as refused:
                self.socket(headers)
            self.assertEqual(refused.exception.response.status_code, 401)
        # As a page in a browser does it.
        socket = self.socket({}, subprotocols=["waybill.v1", "waybill.key.narrow-key"], origin="https://elsewhere.example")
        self.assertEqual(socket.subprotocol, "waybill.v1")
        self.subscribe(socket, all=True)
        with self.assertRaises(InvalidStatus) as refused:
            self.socket({}, subprotocols=["waybill.v1", "waybill.key.nobody"])
        self.assertEqual(refused.exception.response.status_code, 401)
        answer = self.server.get("/v1/jobs/ws", headers=APP)
        self.assertEqual((answer.status, answer.error["code"], answer.headers["upgrade"]), (426, "websocket_needed", "websocket"))

    def test_a_server_that_stops_says_so(self):
        socket = self.socket()
        self.subscribe(socket, all=True)
        stopping = threading.Thread(target=lambda: self.assertEqual(self.server.stop(), 0))
        stopping.start()
        with self.assertRaises(ConnectionClosed) as closed:
            socket.recv(timeout=60)
        self.assertEqual(closed.exception.rcvd.code, 1001)
        stopping.join()


class Resuming(Sockets):
    def test_what_ended_meanwhile_is_told_and_nothing_else(self):
        socket = self.socket()
        cursor = self.subscribe(socket, queue="gpu")["cursor"]
        first, second, third, elsewhere = *self.held(3), self.submit()["id"]
        self.cancel(first)
        ((_, cursor),) = self.ends(socket, 1)
        socket.close()
        self.cancel(second)
        self.ended(elsewhere)
        self.cancel(third)
        self.restart()
        socket = self.socket()
        self.subscribe(socket, queue="gpu")
        self.say(socket, type="resume", cursor=cursor)
        told = self.ends(socket, 2)
        self.assertEqual([job for job, _ in told], [second, third])
        resumed = self.hear(socket, "resumed")
        self.assertEqual((resumed["missing"], resumed["cursor"]), (0, told[-1][1]))
        (fourth,) = self.held()
        self.cancel(fourth)
        self.assertEqual(self.ends(socket, 1)[0][0], fourth)
        self.nothing(socket)

    def test_what_cannot_be_resumed_is_said(self):
        socket = self.socket()
        cursor = self.subscribe(socket, all=True)["cursor"]
        gone, kept = self.held(2)
        self.cancel(gone, kept)
        self.ends(socket, 2)
        self.assertEqual(self.server.ask("DELETE", f"/v1/jobs/{gone}", headers=APP).status, 200)
        self.say(socket, type="resume", cursor=cursor)
        self.assertEqual([job for job, _ in self.ends(socket, 1)], [kept])
        self.assertEqual(self.hear(socket, "resumed"), {"type": "resumed", "cursor": cursor + 2, "missing": 1})
        self.say(socket, type="resume", cursor=cursor + 3)
        self.assertEqual(self.hear(socket, "error")["code"], "unknown_cursor")


class Many(Sockets):
    def test_two_thousand_subscriptions_each_hear_the_end_of_their_job(self):
        self.post("/v1/queues/default/pause")
        made = self.post("/v1/jobs", {"jobs": [{"request": {**ASK, "user": str(i)}} for i in range(1000)]}, APP, 202)["data"]
        made += self.post("/v1/jobs", {"jobs": [{"request": {**ASK, "user": str(-i)}} for i in range(1, 1001)]}, APP, 202)["data"]
        jobs = [job["id"] for job in made]
        subscribed = []

        async def listen(mine):
            ends = []
            async with connect_async(f"ws://127.0.0.1:{self.server.port}/v1/jobs/ws", additional_headers=APP, open_timeout=60, proxy=None) as socket:
                for job in mine:  # a subscription each
                    await socket.send(json.dumps({"type": "subscribe", "jobs": [job]}))
                while len(ends) < len(mine):
                    message = json.loads(await asyncio.wait_for(socket.recv(), 120))
                    if message["type"] == "subscribed":
                        subscribed.append(1)
                    elif message["job"]["status"] in TERMINAL:
                        ends.append((message["job"]["id"], message["job"]["status"]))
                await socket.send('{"type": "ping"}')
                self.assertEqual(json.loads(await asyncio.wait_for(socket.recv(), 120)), {"type": "pong"})
            return ends

        async def all_of_them():
            listening = [asyncio.create_task(listen(jobs[i::100])) for i in range(100)]
            while len(subscribed) < 2000:
                await asyncio.sleep(0.01)
            await asyncio.to_thread(self.post, "/v1/queues/default/resume")
            return await asyncio.gather(*listening)

        for i, ends in enumerate(asyncio.run(all_of_them())):
            self.assertEqual(sorted(ends), sorted((job, "completed") for job in jobs[i::100]))


class WithoutKeys(Sockets):
    def start(self):
        super().start()
        config = (self.folder / "waybill.yaml").read_text()
        keyless = config.replace(config[config.index("keys:"):config.index("gateway:")], "server: {cors: {allow_origins: [\"https://ours.example\"]}}\n")
        self.assertEqual(self.server.stop(), 0)
        self.server = type(self.server)(self, self.write_config(keyless), environment={"PROVIDER_KEY": "x", "WEBHOOK_SECRET": "whsec_bmV3"})

    def test_pages_of_other_origins_are_refused(self):
        for origin in (None, "https://ours.example", f"http://127.0.0.1:{self.server.port}"):
            socket = self.socket({}, origin=origin)
            self.subscribe(socket, all=True)
        for origin in ("https://elsewhere.example", "null"):
            with self.assertRaises(InvalidStatus) as refused:
                self.socket({}, origin=origin)
            self.assertEqual(refused.exception.response.status_code, 403)


if __name__ == "__main__":
    blackbox.main()
