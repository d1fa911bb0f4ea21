"""The gateways that are measured: how each is started, and what it wants in a call."""
import hashlib
import json
import os
import re
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request
from dataclasses import dataclass, field
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))
import waybill_server  # noqa: E402

KEY, ADMIN_KEY = "sk-mock", "sk-operations"
PROMPT = "Say hello to the wide world, please, in one short sentence."
STREAM_MODEL = "mock;tokens=64;itl=20;stamp=1"  # the mock provider does what stands behind its model's name
HELD_MODEL = "mock;tokens=20;itl=500;stamp=1"
ROUTES = HERE.parent / "incident/gateway/routes.yaml"
TICK = os.sysconf("SC_CLK_TCK")


@dataclass
class Gateway:
    """{{PORT}}, {{MOCK}} (the provider's port), {{WORK}} and {{PEERS}} are filled in in all of it."""

    name: str
    start: list
    config: str = ""  # a file of configs/, copied into {{WORK}}
    headers: dict = field(default_factory=dict)
    environment: dict = field(default_factory=dict)
    models: dict = field(default_factory=dict)  # where it wants other names than the mock's
    version: list = field(default_factory=list)


def pip(name):
    return ["{{PEERS}}/%s/bin/pip" % name, "show", name]


GATEWAYS = [
    Gateway("nginx", ["nginx", "-p", "{{WORK}}", "-c", "nginx.conf", "-e", "error.log"], "nginx.conf", version=["nginx", "-v"]),
    Gateway("haproxy", ["haproxy", "-db", "-f", "{{WORK}}/haproxy.cfg"], "haproxy.cfg", version=["haproxy", "-v"]),
    Gateway("vllm-router", ["{{PEERS}}/vllm-router/bin/vllm-router", "--worker-urls", "http://127.0.0.1:{{MOCK}}", "--policy", "round_robin",
                            "--host", "127.0.0.1", "--port", "{{PORT}}", "--log-level", "error"], version=pip("vllm-router")),
    Gateway("envoy", ["{{PEERS}}/envoy/bin/envoy", "-c", "{{WORK}}/envoy.yaml", "--concurrency", "1", "--disable-hot-restart", "--log-level", "error"],
            "envoy.yaml", version=["{{PEERS}}/envoy/bin/envoy", "--version"]),
    Gateway("smg", ["{{PEERS}}/smg/bin/smg", "launch", "--backend", "openai", "--worker-urls", "http://127.0.0.1:{{MOCK}}", "--host", "127.0.0.1",
                    "--port", "{{PORT}}", "--log-level", "error"], version=pip("smg")),
    Gateway("portkey", ["node", "{{PEERS}}/portkey/node_modules/@portkey-ai/gateway/build/start-server.js", "--headless", "--port={{PORT}}"],
            headers={"x-portkey-provider": "openai", "x-portkey-custom-host": "http://127.0.0.1:{{MOCK}}/v1"},
            version=["node", "-p", "require('{{PEERS}}/portkey/node_modules/@portkey-ai/gateway/package.json').version"]),
    Gateway("litellm", ["{{PEERS}}/litellm/bin/litellm", "--config", "{{WORK}}/litellm.yaml", "--host", "127.0.0.1", "--port", "{{PORT}}",
                        "--num_workers", "1"], "litellm.yaml",
            environment={"LITELLM_LOCAL_MODEL_COST_MAP": "True", "LITELLM_LOG": "ERROR", "LITELLM_MODE": "PRODUCTION"}, version=pip("litellm")),
    Gateway("waybill", [str(waybill_server.PROGRAM), "serve", "--config", "{{WORK}}/waybill.yaml"], "waybill.yaml", environment={"MOCK_KEY": KEY},
            models={STREAM_MODEL: "stream", HELD_MODEL: "held"}, version=[str(waybill_server.PROGRAM), "--version"]),
]


# ---- processes

def proc_stat(pid):
    """(parent, CPU seconds, resident bytes) of a process, or None."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
        return int(fields[1]), (int(fields[11]) + int(fields[12])) / TICK, int(fields[21]) * 4096
    except (OSError, IndexError):
        return None


def tree(root):
    """The live processes under root, root included, with their stat."""
    stats = {int(pid): stat for pid in os.listdir("/proc") if pid.isdigit() and (stat := proc_stat(pid))}
    members = {root} & stats.keys()
    while more := {pid for pid, stat in stats.items() if stat[0] in members} - members:
        members |= more
    return {pid: stats[pid] for pid in members}


class Pinned:
    """A process and its children on one core, in a group of their own, so that all of them end."""

    def __init__(self, command, core, log, cwd=None, environment=None):
        self.log_path = Path(log)
        self.log = open(log, "wb")
        self.popen = subprocess.Popen(["taskset", "-c", str(core), *command], cwd=cwd, stdin=subprocess.DEVNULL, stdout=self.log,
                                      stderr=subprocess.STDOUT, env={**os.environ, **(environment or {})}, start_new_session=True)
        self.pid = self.popen.pid

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.stop()

    def cpu(self):
        return sum(stat[1] for stat in tree(self.pid).values())

    def resident_mb(self):
        return sum(stat[2] for stat in tree(self.pid).values()) / 2**20

    def last_words(self):
        return " / ".join(self.log_path.read_text(errors="replace").strip().splitlines()[-3:])

    def stop(self):
        for end, patience in ((signal.SIGTERM, 10), (signal.SIGKILL, 10)):
            try:
                os.killpg(self.pid, end)
                self.popen.wait(patience)
            except ProcessLookupError:
                break
            except subprocess.TimeoutExpired:
                continue
        self.log.close()


class Target:
    """What calls go to: the mock itself, or a gateway in front of it. `process` is None for the mock."""

    def __init__(self, name, port, process=None, headers=None, models=None):
        self.name, self.port, self.process = name, port, process
        self.root = f"http://127.0.0.1:{port}"
        self.url = self.root + "/v1/chat/completions"
        self.headers = {"content-type": "application/json", "authorization": f"Bearer {KEY}", **(headers or {})}
        self.models = models or {}

    def body(self, model="mock", stream=False, prompt=PROMPT, **more):
        return json.dumps({"model": self.models.get(model, model), **({"stream": True} if stream else {}),
                           "messages": [{"role": "user", "content": prompt}], **more})

    def call(self, model="mock", stream=False, timeout=10):
        request = urllib.request.Request(self.url, self.body(model, stream).encode(), self.headers)
        with urllib.request.urlopen(request, timeout=timeout) as answer:
            return answer.read().decode()

    def admin(self, path):
        request = urllib.request.Request(self.root + path, headers={"authorization": f"Bearer {ADMIN_KEY}"})
        with urllib.request.urlopen(request, timeout=10) as answer:
            return answer.read().decode()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.process:
            self.process.stop()


def route_models():
    """A model for each route of the incident's gateway, all served by the mock."""
    names = re.findall(r"^  - name: (\w+)$", ROUTES.read_text(), re.MULTILINE)
    return "\n".join(f"  - {{name: {name}, targets: [{{provider: mock, model: mock}}]}}" for name in names)


def sha256(text):
    return hashlib.sha256(text.encode()).hexdigest()


def fill(value, places):
    if isinstance(value, dict):
        return {name: fill(each, places) for name, each in value.items()}
    if isinstance(value, list):
        return [fill(each, places) for each in value]
    return re.sub(r"\{\{(\w+)\}\}", lambda found: str(places[found[1]]), value)


def start(gateway, work, core, mock_port, streams=True):
    """(Target, its version) once it has answered a call of each kind."""
    folder = work / gateway.name
    folder.mkdir(exist_ok=True)
    port = waybill_server.free_port()
    places = {"PORT": port, "MOCK": mock_port, "WORK": folder, "PEERS": work / "peers", "KEY_SHA256": sha256(KEY), "ADMIN_SHA256": sha256(ADMIN_KEY),
              "MODEL": waybill_server.ROOT / "models/all-MiniLM-L6-v2", "ROUTE_MODELS": route_models()}
    if gateway.config:
        text = fill((HERE / "configs" / gateway.config).read_text(), places)
        if gateway.name == "waybill":
            text += ROUTES.read_text()
        (folder / gateway.config).write_text(text)
    version = version_of(fill(gateway.version, places))
    process = Pinned(fill(gateway.start, places), core, folder / "log", folder, fill(gateway.environment, places))
    target = Target(gateway.name, port, process, fill(gateway.headers, places), gateway.models)
    problem, deadline = "", time.monotonic() + 120
    while time.monotonic() < deadline and process.popen.poll() is None:
        try:
            if "w15" in target.call():
                if streams:
                    check_stream(target)
                return target, version
        except (OSError, urllib.error.URLError) as error:
            problem = str(error)
        time.sleep(0.2)
    process.stop()
    raise waybill_server.Failure(f"{gateway.name} does not answer ({problem}): {process.last_words()}")


def check_stream(target):
    text = target.call(STREAM_MODEL, stream=True)
    tokens = len(re.findall(r"t=\d{19}", text))
    if tokens != 64 or "[DONE]" not in text:
        target.process.stop()
        raise waybill_server.Failure(f"{target.name}: a stream had {tokens} tokens of 64: {text[-300:]}")


def version_of(command):
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    except OSError:
        return ""
    found = re.search(r"\b\d+\.\d+(\.\d+)+", "\n".join(line for line in (done.stdout + done.stderr).splitlines() if "Location" not in line))
    return found[0] if found else ""
