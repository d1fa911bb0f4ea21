"""The server that is killed."""
import asyncio
import os
import re
import signal
import socket
import subprocess
import sys

from wire import Client, now


def fill(template, **values):
    """{name} placeholders; other braces (JSON, YAML) stay as they are."""
    return re.sub(r"\{(\w+)\}", lambda m: str(values.get(m[1], m[0])), template)


class Server:
    def __init__(self, contract, work, provider_port, power_cut):
        self.c, self.dir, self.cut, self.proc = contract, work, power_cut, None
        with socket.socket() as s:
            s.bind(("127.0.0.1", 0))
            self.port = s.getsockname()[1]
        here = os.path.dirname(os.path.abspath(__file__))
        self.values = dict(port=self.port, dir=work, provider=f"http://127.0.0.1:{provider_port}", here=here, python=sys.executable)
        for name, text in contract.get("files", {}).items():
            with open(os.path.join(work, name), "w") as f:
                f.write(fill(text, **self.values))

    def start(self):
        argv = [fill(a, **self.values) for a in self.c["start"]]
        env = dict(os.environ, **{k: fill(str(v), **self.values) for k, v in self.c.get("env", {}).items()})
        if self.cut:
            env.update(self.cut.env())
        with open(os.path.join(self.dir, "server.log"), "ab") as log:
            self.proc = subprocess.Popen(argv, stdout=log, stderr=log, stdin=subprocess.DEVNULL, env=env, start_new_session=True)

    async def ready(self, limit):
        want, client, end = self.c.get("ready", {}), Client(self.port, 2), now() + limit
        while now() < end:
            if self.proc.poll() is not None:
                raise RuntimeError(f"the server ended by itself with status {self.proc.returncode}; see {self.dir}/server.log")
            try:
                status, _, _ = await client.call("GET", want.get("path", "/"))
                if status == want.get("status", status):
                    return client.close()
            except OSError:
                pass
            await asyncio.sleep(0.01)
        raise RuntimeError(f"the server was not ready within {limit} s; see {self.dir}/server.log")

    def kill(self):
        if self.proc and self.proc.poll() is None:
            os.killpg(self.proc.pid, signal.SIGKILL)  # its own session: no other process is in this group
            self.proc.wait()
