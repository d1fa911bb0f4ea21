"""Interactive calls beside a burst of 5,000 batch calls, at a provider that takes 16 at a time.

An interactive call takes it 100 ms; a batch call 10 to 190, 100 on average: calls that all took the same time would end in
the same instant for ever, as they began, and whoever comes between would wait for that.
"""
import asyncio
import random
import threading
import time

from gateways import waybill_server

BATCH, RATE, SECONDS = 5000, 40, 15  # 40 calls/s hold 4 of the 16 places: more than the two that the batch lane leaves free


async def one(target, body, statuses):
    reader, writer = await asyncio.open_connection("127.0.0.1", target.port)
    head = [f"{name}: {value}" for name, value in {**target.headers, "x-waybill-lane": "batch", "connection": "close"}.items()]
    writer.write("\r\n".join(["POST /v1/chat/completions HTTP/1.1", "host: localhost", f"content-length: {len(body)}", *head, "", body]).encode())
    answer = await reader.read()
    statuses.append(int(answer.split(b" ", 2)[1]) if answer.startswith(b"HTTP/1.1 ") else 0)
    writer.close()


def burst(target, statuses):
    async def all_at_once():
        lengths = random.Random(1)
        bodies = [target.body("capped", max_tokens=lengths.randint(2, 20)) for _ in range(BATCH)]
        await asyncio.gather(*(one(target, body, statuses) for body in bodies), return_exceptions=True)

    asyncio.run(all_at_once())


def measure(target, bench, options):
    seconds = 3 if options.quick else SECONDS

    def interactive():
        got = bench.drive(target, "-mode", "open", "-conns", 16, "-rate", RATE, "-duration", f"{seconds}s", body=target.body("capped", max_tokens=11))
        if got["errors"]:
            raise waybill_server.Failure(f"interactive calls failed: {got['faults']}")
        return got["latency_ms"]

    alone = interactive()
    statuses = []
    batch = threading.Thread(target=burst, args=(target, statuses))
    batch.start()
    time.sleep(2)  # until all of them have been sent
    repeats, options.repeats = options.repeats, 0  # the burst does not come again
    beside = interactive()
    options.repeats = repeats
    under_way = BATCH - len(statuses)
    batch.join()
    return {"lane_p95_alone_ms": alone["p95"], "lane_p95_ms": beside["p95"], "lane_p50_alone_ms": alone["p50"], "lane_p50_ms": beside["p50"],
            "lane_batch_answered": statuses.count(200), "lane_batch_left": under_way}
