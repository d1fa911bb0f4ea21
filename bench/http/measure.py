"""Requests/s of one core: Waybill's /health and /route on a hit of the exact cache, beside nginx: measure.py WORK_FOLDER

nginx answers `return 200` with a body of the same size, on the same core, asked with the same bytes. The server has
core 0 and wrk core 1, with 64 connections; rounds alternate, and the best of each counts.
"""
import argparse
import contextlib
import json
import os
import re
import subprocess
import sys
import urllib.request
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
import waybill_server  # noqa: E402

ROOT = waybill_server.ROOT
SERVER_CORE, WRK_CORE, CONNECTIONS = "0", "1", "64"
PROMPT = b'{"prompt": "solve the equation 3x + 7 = 22"}'
CONFIG = """server: {io_threads: 1}
encoder: {model: %s}
"""
LUA = """wrk.method = "POST"
wrk.body = '%s'
wrk.headers["Content-Type"] = "application/json"
"""
NGINX = """worker_processes 1;
daemon off;
pid %(work)s/nginx.pid;
error_log %(work)s/nginx-error.log;
events { worker_connections 1024; }
http {
  access_log off;
  keepalive_requests 1000000000;
  client_body_temp_path %(work)s/body; proxy_temp_path %(work)s/proxy; fastcgi_temp_path %(work)s/fastcgi;
  uwsgi_temp_path %(work)s/uwsgi; scgi_temp_path %(work)s/scgi;
  default_type application/json;
  server {
    listen 127.0.0.1:%(port)d;
    location = /health { return 200 '%(health)s'; }
    location = /route { return 200 '%(route)s'; }
  }
}
"""


def ask(url, body=None):
    request = urllib.request.Request(url, data=body, headers={"Content-Type": "application/json"} if body else {})
    with urllib.request.urlopen(request, timeout=10) as answer:
        return answer.read(), len(str(answer.headers))


def wrk(url, seconds, script=None):
    command = ["taskset", "-c", WRK_CORE, "wrk", "-t", "1", "-c", CONNECTIONS, "-d", f"{seconds}s", *(["-s", str(script)] if script else []), url]
    out = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    if re.search(r"Non-2xx|Socket errors", out):
        raise waybill_server.Failure(f"{url} did not answer every request:\n{out}")
    return float(re.search(r"Requests/sec:\s*([\d.]+)", out).group(1))


def start_waybill(work):
    routes = (ROOT / "bench/incident/gateway/routes.yaml").read_text()
    config = work / "waybill.yaml"
    config.write_text(CONFIG % os.path.relpath(ROOT / "models/all-MiniLM-L6-v2", work) + routes)
    return waybill_server.waybill(config, work / "waybill.log", prefix=("taskset", "-c", SERVER_CORE))


def start_nginx(work, health, route):
    port = waybill_server.free_port()
    config = work / "nginx.conf"
    config.write_text(NGINX % {"work": work, "port": port, "health": health, "route": route})
    program = next((p for p in ("/usr/sbin/nginx", "/usr/local/sbin/nginx") if os.path.exists(p)), "nginx")
    return waybill_server.Process("nginx", ["taskset", "-c", SERVER_CORE, program, "-p", work, "-c", config], port, work / "nginx.log")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("work", type=Path)
    parser.add_argument("--pairs", type=int, default=5, help="rounds; each asks nginx and Waybill in turn")
    parser.add_argument("--seconds", type=int, default=4, help="of each measurement")
    parser.add_argument("--json", type=Path, help="all figures, here too")
    parser.add_argument("--quick", action="store_true", help="a round of a second, to see that it works; writes no document")
    options = parser.parse_args()
    work = options.work.resolve()
    if options.quick:
        options.pairs, options.seconds = 1, 1
    if os.cpu_count() < 2:
        raise waybill_server.Failure("needs two cores, one for the server and one for wrk")
    script = work / "route.lua"
    script.write_text(LUA % PROMPT.decode())

    best = {}
    with contextlib.ExitStack() as stack:
        waybill = stack.enter_context(start_waybill(work))
        ask(waybill.url + "/route", PROMPT)
        answers = {"/health": ask(waybill.url + "/health"), "/route": ask(waybill.url + "/route", PROMPT)}
        if json.loads(answers["/route"][0])["tier"] != "cache":
            raise waybill_server.Failure(f"the second time, the exact cache did not answer: {answers['/route'][0].decode()}")
        texts = {path: body.decode() for path, (body, _) in answers.items()}
        nginx = stack.enter_context(start_nginx(work, texts["/health"].replace("'", "_"), texts["/route"].replace("'", "_")))
        for pair in range(options.pairs):
            for path, lua in (("/health", None), ("/route", script)):
                for name, server in (("nginx", nginx), ("waybill", waybill)):
                    rate = wrk(server.url + path, options.seconds, lua)
                    print(f"pair {pair + 1} of {options.pairs}: {name} {path}: {rate:,.0f}/s", file=sys.stderr, flush=True)
                    best[name, path] = max(rate, best.get((name, path), 0))
        sizes = {path: (len(body), ask(nginx.url + path, PROMPT if path == "/route" else None)[1], head) for path, (body, head) in answers.items()}
        balanced = waybill.ledger()["balanced"]
    version = subprocess.run(["/usr/sbin/nginx", "-v"], capture_output=True, text=True, check=False).stderr.strip().split("/")[-1]
    lines = [f"CPU: {waybill_server.cpu_name()}; the server on core {SERVER_CORE} (Waybill: one event loop), wrk on core {WRK_CORE}, {CONNECTIONS} "
             f"connections; best of {options.pairs} alternating rounds of {options.seconds} s. nginx {version}: `return 200` with the same body. "
             f"Ledger afterwards {'balanced' if balanced else '**not balanced**'}. Command: `make bench-http`.", "",
             "| | body, bytes | header of nginx, of Waybill, bytes | nginx, requests/s | Waybill, requests/s | ÷ nginx | asked |",
             "| --- | ---: | ---: | ---: | ---: | ---: | ---: |"]
    for path, what in (("/health", "`/health`"), ("/route", "`/route`, exact cache")):
        body, theirs, ours = sizes[path]
        lines.append(f"| {what} | {body} | {theirs}, {ours} | {best['nginx', path]:,.0f} | {best['waybill', path]:,.0f} "
                     f"| {best['waybill', path] / best['nginx', path]:.2f} | ≥ 0.7 |")
    waybill_server.publish("bench-http", lines, not options.quick, {f"{name} {path}": rate for (name, path), rate in best.items()}, options.json)


if __name__ == "__main__":
    waybill_server.run("bench-http", main)
