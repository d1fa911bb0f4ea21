"""What the demos put on the screen, and where they listen."""
import os
import socket
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "bench"))
import waybill_server  # noqa: E402

COLOR = sys.stdout.isatty() and "NO_COLOR" not in os.environ
# Whether the server runs on at the end, for the user to try.
STAYS = sys.stdout.isatty() and os.environ.get("DEMO_ONCE") != "1" and "CI" not in os.environ
TIMELINE = 40  # characters for the whole of a request
GOOD, BAD = "1;32", "1;31"


def paint(code, text):
    return f"\033[{code}m{text}\033[0m" if COLOR else text


def title(text):
    print(f"\n{paint('1', text)}\n", flush=True)


def port_that_is_free():
    for port in range(int(os.environ.get("PORT", "8000")), 65536):
        with socket.socket() as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                continue  # somebody answers there
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
            return port
    raise waybill_server.Failure("no port is free")


def show_ledger(ledger):
    outcomes = " + ".join(f"{ledger[name]:,} {name}" for name in ("completed", "failed", "rejected", "cancelled", "expired"))
    verdict = paint(GOOD, "balanced") if ledger["balanced"] else paint(BAD, "NOT BALANCED")
    print(f"\n  ledger   {ledger['accepted']:,} accepted = {outcomes} + {ledger['in_flight']:,} in flight   {verdict}")


def milliseconds(microseconds):
    return f"{microseconds / 1000:,.1f} ms" if microseconds < 1e6 else f"{microseconds / 1e6:,.2f} s"


def show_waybill(record):
    """One request, as a person reads it: how it ended, what was decided and called, and where its time went."""
    outcome = record["outcome"]
    code = GOOD if outcome == "completed" else "1;33"
    status = f", {record['status']}" if "status" in record else ""
    print(f"\n  waybill {record['id']}   {paint(code, outcome)}{status}, in {milliseconds(record['duration_us'])}")
    if decision := record.get("decision"):
        score = f", score {decision['score']:.2f}" if decision.get("score") else ""
        print(f"    decided  route {decision['route']}{score}, by {decision['tier']}: model {decision['model']}")
    if record.get("attempts"):
        calls = f"{record['attempts']} {'call' if record['attempts'] == 1 else 'calls'}, the last to" if record["attempts"] > 1 else "1 call, to"
        cost = f", ${record['cost_usd']:.6f}" if record.get("cost_usd") else ""
        print(f"    called   {calls} {record['target']}: {record.get('prompt_tokens', 0)} tokens in, {record.get('completion_tokens', 0)} out{cost}")
    if error := record.get("error"):
        print(f"    ended    {error['message']} (stage {error['stage']})")
    whole = max(record["duration_us"], 1)
    for stage in record["stages"]:
        begin = min(int(TIMELINE * stage["start_us"] / whole), TIMELINE - 1)
        length = min(max(1, round(TIMELINE * stage["length_us"] / whole)), TIMELINE - begin)
        bar = f"{'█' * length:<{TIMELINE - begin}}"
        print(f"    {stage['stage']:<12}{paint('2', '·' * begin)}{paint('36', bar)}  {milliseconds(stage['length_us']):>10}")


def leave_running(server, log):
    """Where the user may go on: until Ctrl-C."""
    if STAYS:
        print(f"\nThe server runs at {paint('1', server.url)} (log: {log.relative_to(ROOT)}). {paint('1', 'Ctrl-C')} stops it.", flush=True)
        server.process.wait()


def run(main):
    """A demo's main(), and what is said at its end."""
    os.chdir(ROOT)
    try:
        main()
        print("\nThe server has stopped.")
    except KeyboardInterrupt:
        print("\nThe server has stopped.")
    except waybill_server.Failure as failure:
        sys.exit(f"demo: {failure}")
