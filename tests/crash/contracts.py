"""What a crash check must know of a server: how it is started, and how jobs are sent, looked at and listed.

{port}, {dir}, {provider}, {here} and {python} are filled in by the checker; {key}, {marker}, {padding} for each job.
"""
import os

STATUS = {"path": "/v1/jobs/{id}", "terminal": ["completed", "failed", "cancelled", "expired", "dead"], "success": ["completed"],
          "echo": True,  # a completed job holds the provider's text
          "in_doubt": "in_doubt"}  # how many of its calls ended nobody knows how
SUBMIT = {"path": "/v1/jobs", "headers": {"Idempotency-Key": "{key}"}, "accepted": [202], "busy": [429, 503], "id": "id",
          "body": '{"request": {"model": "mock", "messages": [{"role": "user", "content": "say {marker} {padding}"}]}}'}


def listing(path):
    return {"path": path, "items": "data", "id": "id", "next": "next", "next_path": path + ("&" if "?" in path else "?") + "after={after}"}


def reference(broken):
    return {
        "name": f"reference server {broken}",
        "start": ["{python}", "{here}/reference_server.py", "--port", "{port}", "--db", "{dir}/jobs.db", "--provider", "{provider}", "--break", broken],
        "ready": {"path": "/healthz", "status": 200},
        "submit": SUBMIT, "status": STATUS, "list": listing("/v1/jobs"),
    }


# More receives than a job can lose to kills; rows small enough that the padded bodies and answers are files of their own.
WAYBILL = """\
server: {listen: "127.0.0.1:{port}"}
store: {path: "{dir}/jobs.db", inline_size: 4KiB}
providers:
  - {name: mock, base_url: "{provider}/v1", proxy: none}
models:
  - {name: mock, targets: [{provider: mock}]}
jobs:
  queues:
    - {name: default, concurrency: 16, max_receives: 100, backoff: {first: 20ms, most: 100ms}}
"""


def waybill(program):
    return {
        "name": "waybill",
        "files": {"waybill.yaml": WAYBILL},
        "start": [os.path.abspath(program), "serve", "--config", "{dir}/waybill.yaml"],
        "ready": {"path": "/ready", "status": 200},
        "submit": SUBMIT, "status": STATUS, "list": listing("/v1/jobs?limit=100"),
    }
