#!/usr/bin/env python3
"""`waybill serve` when the machine fails it: no descriptors, no disk, no processor, a clock that is set."""
import json
import os
import resource
import signal
import socket
import sys
import threading
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
import blackbox
from raw_client import RawClient, request
from served import Server


class Serving(blackbox.Case):
    def serve(self, more="", **options):
        return Server(self, self.write_config(blackbox.CONFIG + more), **options)

    def route(self, server, prompt):
        answer = server.post("/route", {"prompt": prompt})
        self.assertEqual(answer.status, 200, answer.body)


class Descriptors(Serving):
    FEW = 64

    def test_as_many_connections_are_held_as_there_are_descriptors_for_and_the_others_are_told(self):
        def with_few():
            resource.setrlimit(resource.RLIMIT_NOFILE, (self.FEW, self.FEW))

        server = self.serve(preexec_fn=with_few)
        held = [event for event in server.events() if "connections_held" in event][0]["connections_held"]
        self.assertLess(held, self.FEW)
        clients = [RawClient(server.port) for _ in range(held)]
        for client in clients:
            client.send(request("GET", "/health"))
            self.assertEqual(client.answer().status, 200)
        for _ in range(self.FEW):
            with RawClient(server.port) as client:
                client.send_what_is_taken(request("GET", "/health"))
                answer = client.answer()
                self.assertEqual((answer.status, answer.headers["retry-after"]), (503, "1"))
        for client in clients:
            client.send(request("POST", "/route", b'{"prompt": "is this clause enforceable?"}'))
            self.assertEqual(client.answer().status, 200)
            client.socket.close()
        self.assertEqual(server.stop(), 0)

    def test_connections_that_find_no_descriptor_wait_and_the_log_says_so(self):
        server = self.serve()
        self.route(server, "the first")
        time.sleep(0.2)  # its connection has ended
        open_now = len(os.listdir(f"/proc/{server.process.pid}/fd"))
        limits = resource.prlimit(server.process.pid, resource.RLIMIT_NOFILE)
        resource.prlimit(server.process.pid, resource.RLIMIT_NOFILE, (open_now + 8, limits[1]))
        clients = [socket.create_connection(("127.0.0.1", server.port), timeout=60) for _ in range(40)]
        event = server.wait_for_event("connections wait to be accepted: the system has no descriptor or memory left for them; raise "
                                      "the limit of open files (LimitNOFILE= in a systemd unit, ulimit -n) or lower "
                                      "server.max_connections")
        self.assertEqual(event["level"], "error")
        resource.prlimit(server.process.pid, resource.RLIMIT_NOFILE, limits)
        for client in clients:
            client.sendall(request("GET", "/health"))
            self.assertTrue(client.recv(4096).startswith(b"HTTP/1.1 200"))
            client.close()
        told = [each for each in server.events() if each["message"] == event["message"]]
        self.assertLess(len(told), 5, "it is no news each time")


class Memory(Serving):
    @staticmethod
    def own_memory(server):
        """Resident MB that are no mapped file."""
        status = Path(f"/proc/{server.process.pid}/status").read_text()
        return int(status.split("RssAnon:")[1].split()[0]) / 1024

    def test_large_bodies_leave_no_memory_behind(self):
        server = self.serve()
        self.route(server, "small")
        before = self.own_memory(server)
        large = [f"{word} " * 2_000_000 for word in ("aa", "bb", "cc", "dd")]
        threads = [threading.Thread(target=self.route, args=(server, prompt)) for prompt in large * 3]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        server.settled_ledger()
        deadline = time.monotonic() + 30  # the server looks every two seconds
        while (more := self.own_memory(server) - before) >= 24 and time.monotonic() < deadline:
            time.sleep(0.2)
        self.assertLess(more, 24, "MB more than before, after twelve bodies of 6 MB")


class Standstill(Serving):
    def test_a_program_that_was_stopped_blames_no_event_loop(self):
        server = self.serve()
        self.route(server, "before")
        server.process.send_signal(signal.SIGSTOP)
        time.sleep(1)
        server.process.send_signal(signal.SIGCONT)
        event = server.wait_for_event("nothing of the program ran for a while: it was stopped, or the machine had no processor for it")
        self.assertGreater(event["seconds"], 0.5)
        self.route(server, "after")
        for event in server.events():
            if event["message"].startswith("an event loop"):
                self.assertLess(event["seconds"], 0.9, event)


class Disk(Serving):
    def test_a_full_disk_costs_waybills_in_the_file_and_no_request(self):
        path = self.folder / "waybills.jsonl"
        path.symlink_to("/dev/full")
        server = self.serve("\ntelemetry: {waybills: {file: waybills.jsonl}}\n")
        for i in range(20):
            self.route(server, f"without room {i}")
        told = server.wait_for_event("waybills are missing in the waybill file")
        self.assertIn("No space left on device", told["reason"])
        server.settled_ledger()
        path.unlink()
        for i in range(20):
            self.route(server, f"with room again {i}")
        self.assertEqual(server.settled_ledger()["completed"], 40)
        self.assertEqual(server.stop(), 0)
        dropped = sum(event["lines"] for event in server.events() if event["message"] == told["message"])
        lines = path.read_text().splitlines()
        self.assertEqual(len([json.loads(line) for line in lines]), 40 - dropped, "each is in the file or counted as missing")
        self.assertGreaterEqual(len(lines), 19)


if __name__ == "__main__":
    blackbox.main()
