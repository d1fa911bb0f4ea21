#!/usr/bin/env python3
"""Each line of docs/failures.md: two mock providers that fail as it says, `waybill serve` in front of them, and what came of it."""
import re
import sys
import time
from dataclasses import dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
import blackbox
from provider import MockProvider
from served import Server
from streamed import Call

DOCUMENT = blackbox.SOURCE / "docs/failures.md"
COLUMNS = ["What happens", "Fault", "Call", "Answer", "Outcome", "Attempts", "Calls", "Billed"]
# Short, so that a test does not wait, and long enough for a healthy provider on a busy machine.
SILENCE = "{resolve: 2s, connect: 2s, headers: 2s, answer: 2s, first_token: 2s, between_tokens: 2s, total: 60s}"
CONFIG = """\
encoder: {model: "{model}"}
server: {io_threads: 2, write_timeout: 1s}
admission: {deadline: 2m}
providers:
  - {name: a, kind: openai, base_url: "{a}/v1", timeouts: {silence}, health: {cooldown: 1h, max_cooldown: 1h}}
  - {name: b, kind: openai, base_url: "{b}/v1", timeouts: {silence}, health: {cooldown: 1h, max_cooldown: 1h}}
  - name: narrow
    kind: openai
    base_url: "{a}/v1"
    timeouts: {headers: 10m, answer: 10m, first_token: 10m, between_tokens: 10m, total: 10m}
    limits: {concurrency: 1}
models:
  - name: mock
    targets: [{provider: a, priority: 0}, {provider: b, priority: 1}]
  - name: narrow
    targets: [{provider: narrow, model: mock}]
prices:
  - {model: mock, input: 1000, output: 2000}
gateway: {retry_floor: 1000}
"""
INPUT_USD, OUTPUT_USD = 0.001, 0.002  # a token


@dataclass
class Row:
    what: str
    fault: str
    call: str  # "plain" or "stream"
    client: str  # what the client does; empty: it waits for the answer
    answer: str
    outcome: str
    attempts: str
    calls: str
    billed: str

    @property
    def faults(self):
        """{"a": spec, "b": spec}"""
        return dict(re.findall(r"\b([ab]): (\S+)", self.fault))

    @property
    def times(self):
        if self.client.startswith("twice"):
            return 2
        found = re.fullmatch(r"(\d+) times", self.client)
        return int(found[1]) if found else 1

    @property
    def expected_text(self):
        """What the whole answer of the provider that answers says."""
        faults = self.faults
        spec = dict(each.partition("=")[::2] for each in faults.get("a", "").split(";"))
        count = int(spec.get("tokens", 16))
        odd = ("é", "€", "😀", "漢字") if spec.get("split") == "utf8" or spec.get("utf8") else ("",)
        padding = "x" * int(spec.get("pad", 0))
        return "".join(f"w{i}{odd[i % len(odd)]} {padding}" for i in range(count)), count


def read_rows(text):
    rows = []
    for line in text.split("<!-- failures -->")[1].split("<!-- /failures -->")[0].splitlines():
        cells = [cell.strip() for cell in line.strip().strip("|").split("|")]
        if not line.startswith("|") or cells == COLUMNS or set(line) <= set("|- "):
            continue
        if len(cells) != len(COLUMNS):
            raise ValueError(f"docs/failures.md: not {len(COLUMNS)} columns: {line}")
        what, fault, call, *rest = cells
        kinds, _, client = call.partition(", ")
        for kind in ("plain", "stream") if kinds == "both" else (kinds,):
            rows.append(Row(what, fault.strip("`"), kind, client, *rest))
    return rows


class Providers(blackbox.Case):
    """Two mock providers, a server in front of them, and calls to it."""

    def start(self, faults, config=CONFIG):
        self.a, self.b = MockProvider(self), MockProvider(self)
        text = config.replace("{silence}", SILENCE).replace("{a}", self.a.url).replace("{b}", self.b.url)
        self.server = Server(self, self.write_config(text))
        for name, spec in faults.items():
            mock = getattr(self, name)
            if spec == "down":
                mock.stop()
            else:
                mock.rule(spec)
        self.down = {name for name, spec in faults.items() if spec == "down"}
        self.sent = 0

    def send(self, row, *headers, model="mock", **more):
        """A call of a row's kind, known by its x-request-id."""
        self.sent += 1
        self.last_id = f"call-{self.sent}"
        body = {"model": model, "messages": [{"role": "user", "content": "hi"}], **({"stream": True} if row.call == "stream" else {})}
        call = Call(self.server.port, body, (f"x-request-id: {self.last_id}", *headers), **more)
        self.addCleanup(call.leave)
        return call

    def check_nothing_is_held(self):
        self.server.settled_ledger()
        targets = self.server.get("/v1/targets").json
        self.assertEqual({target["target"]: target["in_flight"] for target in targets["data"]}, {target["target"]: 0 for target in targets["data"]})
        for provider in targets["providers"]:
            for lane in ("interactive", "batch"):
                self.assertEqual((provider[lane]["in_flight"], provider[lane]["waiting"]), (0, 0), provider)


class Faults(Providers):
    # What a client may do; each returns the call that is looked at.

    def wait_for_answer(self, row):
        for _ in range(row.times):
            with self.send(row, *(["idempotency-key: k1"] if row.client == "twice with one key" else [])) as call:
                call.read()
        return call

    def hold_narrow(self, row):
        """Takes the one place there is at the provider `narrow`."""
        holder = self.send(row, model="narrow")
        self.a.wait_for(lambda calls: calls["in_flight"] == 1)
        return holder

    def leave(self, row):
        if row.client == "leaves the queue":
            holder = self.hold_narrow(row)
            call = self.send(row, model="narrow")
            self.wait_until(lambda: self.server.ledger()["in_flight"] == 2)
            call.leave()
            self.wait_until(lambda: self.server.ledger()["in_flight"] == 1)
            last = self.last_id
            self.assertEqual(self.a.calls()["in_flight"], 1)
            holder.leave()
            self.last_id = last
            return call
        call = self.send(row)
        if found := re.fullmatch(r"leaves after (\d+) tokens", row.client):
            call.read(until=f"w{int(found[1]) - 1} ".encode())
        else:
            mock = self.b if row.client == "leaves the second target" else self.a
            mock.wait_for(lambda calls: calls["in_flight"] == 1)
            if "ttft" in row.fault:
                time.sleep(0.1)  # its headers are on their way
        call.leave()
        return call

    def read_nothing(self, row):
        before = self.resident_mb()
        call = self.send(row, buffer=4096)
        self.a.wait_for(lambda calls: calls["cancelled"] == 1)
        self.assertLess(self.resident_mb() - before, 64, "it keeps what the client does not take")
        return call

    def run_out_of_time(self, row):
        timeout = f"x-waybill-timeout-ms: {re.search(r'timeout ([0-9]+) ms', row.client)[1]}"
        if not row.client.endswith("in the queue"):
            return self.send(row, timeout).read()
        holder = self.hold_narrow(row)
        call = self.send(row, timeout, model="narrow").read()
        holder.leave()
        return call

    def resident_mb(self):
        return int(Path(f"/proc/{self.server.process.pid}/status").read_text().split("VmRSS:")[1].split()[0]) / 1024

    def wait_until(self, condition):
        deadline = time.monotonic() + 60
        while not condition():
            self.assertLess(time.monotonic(), deadline, "waited in vain")
            time.sleep(0.01)

    # What is looked at afterwards.

    def check_answer(self, row, call):
        if row.answer == "none":
            return
        if row.answer == "whole":
            self.assertEqual((call.status, call.is_whole, call.is_stream), (200, True, row.call == "stream"), call)
            text, _ = row.expected_text
            said = call.text or "".join(self.tool_arguments(call))
            self.assertEqual(said[:500], text[:500], call)
            self.assertEqual(len(said), len(text))
            self.assertIsNone(call.error)
            self.assertTrue(call.is_done or row.call == "plain", f"no [DONE]: {call}")
            self.assertFalse(row.call == "stream" and any(each.get("usage") for each in call.objects) and "inline" not in row.fault,
                             "the client sees usage that it did not ask for")
            return
        found = re.fullmatch(r"(\d+|some) tokens, (\w+)", row.answer)
        if found:
            self.assertEqual((call.status, call.is_whole), (200, True), f"the stream was cut, not ended: {call}")
            count = len(call.text.split()) if found[1] == "some" else int(found[1])
            self.assertGreater(count, 0)
            self.assertEqual(call.text, "".join(f"w{i} " for i in range(count)), call)
            self.assertTrue(call.error, f"it ends as if all were well: {call}")
            self.assertEqual(call.error["code"], found[2], call)
            self.assertTrue(call.error["message"])
            return
        status, code, after = re.fullmatch(r"(\d+)(?: (\w+))?(?:, Retry-After (\d+))?", row.answer).groups()
        self.assertEqual((call.status, call.is_whole), (int(status), True), call)
        self.assertTrue(call.error["message"])
        if code:
            self.assertEqual(call.error["code"], code, call)
        if after:
            self.assertTrue(1 <= int(call.headers["retry-after"]) <= int(after), call)
            self.assertGreater(int(call.headers["retry-after"]), int(after) - 15, call)

    @staticmethod
    def tool_arguments(call):
        """What the words of a tool call's arguments are, in pieces."""
        for each in call.objects:
            for choice in each.get("choices") or []:
                for tool in (choice.get("delta") or choice.get("message") or {}).get("tool_calls") or []:
                    yield tool["function"].get("arguments", "").replace('{"words":"', "").replace('"}', "")

    def check_waybill(self, row, call):
        waybill = self.server.get(f"/v1/requests/{self.last_id}").json
        self.assertEqual(waybill["outcome"], row.outcome, waybill)
        if row.attempts:
            self.assertEqual(waybill.get("attempts", 0), int(row.attempts), waybill)
        if row.outcome == "completed":
            target = "b/mock" if self.expected(row.billed)[1] else "a/mock"
            self.assertEqual(waybill["target"], target)
            for name, value in (("target", target), ("attempts", str(waybill["attempts"])), ("request-id", waybill["id"]), ("model", "mock")):
                self.assertEqual(call.headers.get(f"x-waybill-{name}"), value, call)
            self.assertEqual(call.headers.get("x-request-id"), self.last_id)
        elif row.outcome != "cancelled":
            self.assertEqual(waybill["error"]["code"], (call.error["code"] if row.outcome != "rejected" else waybill["error"]["code"]), waybill)
        if sum(self.expected(row.billed)) == 1 and row.answer != "none" and row.client != "twice with one key":
            tokens = row.expected_text[1] if row.answer == "whole" else len(call.text.split())
            if row.answer == "whole" and "usage=never" not in row.fault:
                self.assertEqual(waybill["completion_tokens"], tokens, waybill)
            else:  # the provider did not tell: an estimate from what came
                self.assertTrue(tokens / 2 <= waybill["completion_tokens"] <= tokens * 2, waybill)
            self.assertGreater(waybill["prompt_tokens"], 0)
            cost = waybill["prompt_tokens"] * INPUT_USD + waybill["completion_tokens"] * OUTPUT_USD
            self.assertAlmostEqual(waybill["cost_usd"], cost, places=6)

    @staticmethod
    def expected(cell):
        a, b = cell.split(",")
        return int(a), int(b)

    def check_providers(self, row):
        seen = {}
        for name in ("a", "b"):
            calls = {"started": 0, "billed": 0} if name in self.down else getattr(self, name).settled()
            seen[name] = calls["started"], calls["billed"]
        self.assertEqual((seen["a"][0], seen["b"][0]), self.expected(row.calls), f"calls of a and b; the waybill: {self.server.get(f'/v1/requests/{self.last_id}').body}")
        self.assertEqual((seen["a"][1], seen["b"][1]), self.expected(row.billed), "billed by a and b")

    def run_row(self, row):
        self.start(row.faults)
        if row.client.startswith("leaves"):
            call = self.leave(row)
        elif row.client == "reads nothing":
            call = self.read_nothing(row)
        elif row.client.startswith("timeout"):
            call = self.run_out_of_time(row)
        else:
            call = self.wait_for_answer(row)
        self.check_answer(row, call)
        self.check_providers(row)
        self.check_nothing_is_held()
        self.check_waybill(row, call)


def add_tests():
    for row in read_rows(DOCUMENT.read_text()):
        name = re.sub(r"\W+", "_", f"test_{row.what}_{row.call}".lower())
        if hasattr(Faults, name):
            raise ValueError(f"docs/failures.md has two lines for: {row.what}")
        setattr(Faults, name, lambda self, row=row: self.run_row(row))


PLAIN = Row("", "", "plain", "", "whole", "completed", "", "", "")


class Settings(Providers):
    def test_timeouts_are_counted_by_the_stage_that_took_too_long(self):
        row = Row("", "", "stream", "", "", "", "", "", "")
        self.start({}, CONFIG.replace("cooldown: 1h, max_cooldown: 1h", "failures: 1000"))
        for fault, stage in (("hang=headers", "headers"), ("hang=first", "first_token"), ("hang=3", "between_tokens")):
            self.a.rule(fault)
            self.send(row).read()
            told = re.findall(r'waybill_upstream_timeouts_total\{target="a/mock",stage="(\w+)"\} 1\b', self.server.get("/metrics").body.decode())
            self.assertIn(stage, told)
        self.assertEqual(len(told), 3)

    def statuses(self, count):
        return [self.send(PLAIN).read().status for _ in range(count)]

    def test_retries_end_with_their_budget(self):
        config = CONFIG.replace("retry_floor: 1000", "retry_budget: 0, retry_floor: 3").replace("cooldown: 1h, max_cooldown: 1h", "failures: 1000")
        self.start({"a": "status=500"}, config)
        self.assertEqual(self.statuses(10), [200] * 3 + [502] * 7)
        self.assertEqual((self.a.settled()["started"], self.b.settled()["started"]), (10, 3))
        self.check_nothing_is_held()

    def test_retries_are_a_share_of_the_calls(self):
        config = CONFIG.replace("retry_floor: 1000", "retry_budget: 0.2, retry_floor: 0").replace("cooldown: 1h, max_cooldown: 1h", "failures: 1000")
        self.start({}, config)
        self.assertEqual(self.statuses(10), [200] * 10)
        self.a.rule("status=500")
        self.assertEqual(sum(status == 200 for status in self.statuses(10)), 4)  # a fifth of twenty calls
        self.check_nothing_is_held()

    def test_another_model_answers_when_no_target_can(self):
        config = CONFIG.replace("targets: [{provider: a, priority: 0}, {provider: b, priority: 1}]",
                                "targets: [{provider: a}]\n    fallback: [spare]\n  - {name: spare, targets: [{provider: b, model: mock}]}")
        self.start({"a": "status=401"}, config)
        call = self.send(PLAIN).read()
        self.assertEqual((call.status, call.headers["x-waybill-model"], call.headers["x-waybill-target"]), (200, "spare", "b/mock"), call)
        self.check_nothing_is_held()

    def test_nothing_is_tried_again_for_a_client_that_left_in_a_backoff(self):
        config = CONFIG.replace("cooldown: 1h, max_cooldown: 1h", "failures: 1000").replace("retry_floor: 1000", "retry_floor: 1000, max_attempts: 100")
        self.start({"a": "status=500", "b": "status=500"}, config)
        call = self.send(PLAIN)
        self.b.wait_for(lambda calls: calls["failed"] == 3)  # the next pause is up to 400 ms, and those after it up to 2 s
        call.leave()
        self.server.settled_ledger()
        calls = self.a.settled()["started"] + self.b.settled()["started"]
        self.assertEqual(self.server.get(f"/v1/requests/{self.last_id}").json["outcome"], "cancelled")
        time.sleep(2.5)
        self.assertEqual(self.a.settled()["started"] + self.b.settled()["started"], calls)
        self.check_nothing_is_held()

    def test_a_call_may_be_let_go_on_when_its_client_has_left(self):
        config = CONFIG.replace("targets: [{provider: a, priority: 0}, {provider: b, priority: 1}]",
                                "finish_abandoned: true\n    targets: [{provider: a}]")
        self.start({"a": "delay=500"}, config)
        call = self.send(PLAIN)
        self.a.wait_for(lambda calls: calls["in_flight"] == 1)
        call.leave()
        self.assertEqual(self.a.settled()["finished"], 1)
        self.check_nothing_is_held()
        self.assertEqual(self.server.ledger()["cancelled"], 1)


class TheTable(blackbox.Case):
    def test_a_line_with_a_missing_column_is_found(self):
        with self.assertRaises(ValueError):
            read_rows("<!-- failures -->\n| 429 | `a: status=429` | both |\n<!-- /failures -->")

    def test_it_is_read(self):
        rows = read_rows(DOCUMENT.read_text())
        self.assertGreater(len(rows), 80)
        self.assertEqual({row.call for row in rows}, {"plain", "stream"})


add_tests()

if __name__ == "__main__":
    blackbox.main()
