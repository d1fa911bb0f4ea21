"""The servers that are measured: the incident's gateway in its forms, and Waybill in three configurations."""
import os
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))
import waybill_server  # noqa: E402

ALL = ("burst300", "closed100", "qps240", "ramp")
BACKLOG_LAST = ("burst300", "closed100", "ramp", "qps240")  # for those that qps240 leaves with minutes of backlog


@dataclass
class Server:
    name: str
    what: str
    tuned: bool = False  # measured as often as Waybill
    waybill: bool = False
    config: str = ""  # what stands before the routes in waybill.yaml
    scenarios: tuple = ALL
    burst: list = field(default_factory=list)  # more options for the driver


# The client gives up after 5 s. `max_wait` 250 ms leaves 70 ms of the 320 ms that the ramp allows for the batch
# itself and the way back.
ENCODER_ONLY = """tiers: {static: {enabled: false, when_overloaded: false}}
admission: {deadline: 5s, max_wait: 4500ms}
"""
SHIPPED = """admission: {deadline: 5s, max_wait: 250ms}
"""
NO_CACHE = """tiers: {cache: {enabled: false}, static: {enabled: false, when_overloaded: false}}
admission: {deadline: 5s, max_wait: 4500ms}
"""
POOL = 2000

SERVERS = [
    Server("blocking", "the incident: the library called in the async handler", scenarios=BACKLOG_LAST),
    Server("to_thread", "the incident's fix: in a thread pool", scenarios=BACKLOG_LAST),
    Server("acall", "the library's own async call", scenarios=BACKLOG_LAST),
    Server("tuned", "micro-batches by length, OpenVINO, uvloop", tuned=True),
    Server("waybill-encoder", "every decision by the encoder", waybill=True, config=ENCODER_ONLY),
    Server("waybill", "all tiers, may degrade", waybill=True, config=SHIPPED),
    Server("waybill-warm", f"the same, {POOL:,} prompts that were all asked before", waybill=True, config=SHIPPED, burst=["--pool", POOL]),
    Server("waybill-no-cache", "encoder only, exact cache off", waybill=True, config=NO_CACHE, scenarios=("closed100",)),
]


def start(server, work):
    """The running server, a waybill_server.Process."""
    log = work / f"{server.name}.log"
    if server.waybill:
        return waybill_server.waybill(config_file(server, work), log, server.name)
    port = waybill_server.free_port()
    command = [work / "venv/bin/python", "-m", "uvicorn", "app:app", "--host", "127.0.0.1", "--port", port,
               "--log-level", "warning", "--no-access-log"]
    environment = {"MODE": server.name, "ONNX_FILE": str(work / "minilm.onnx")}
    return waybill_server.Process(server.name, command, port, log, env=environment, cwd=HERE / "gateway")


def config_file(server, work):
    """waybill.yaml of this server: its settings and the routes of the gateway."""
    path = work / f"{server.name}.yaml"
    model = os.path.relpath(waybill_server.ROOT / "models/all-MiniLM-L6-v2", work)
    path.write_text(f"encoder: {{model: {model}}}\n{server.config}" + (HERE / "gateway/routes.yaml").read_text())
    return path


def prepare(server, work):
    """Has Waybill make its caches, which it keeps: packed weights, fitted head, static table. The gateway's model was made by `run`."""
    prompts = work / "prompts.tsv"
    with prompts.open("w") as out:
        subprocess.run([waybill_server.BURST, "--dump-prompts", "300", "--seed", "77"], stdout=out, check=True)
    subprocess.run([waybill_server.PROGRAM, "eval", "--config", config_file(server, work), prompts],
                   stdout=subprocess.DEVNULL, check=True)
