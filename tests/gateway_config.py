"""waybill.yaml for the tests of the gateway: routes, two providers that are mocks, models at them."""
import tempfile

import blackbox

# The keys are "app-key", "ops-key", "narrow-key", "slow-key", "one-key", "poor-key" and "warned-key".
KEYS = """\
keys:
  - {name: app, sha256: 2924a27d7fc715372a952b03583ae5f1221556bcdabbf2a57ff5de577efe11c1}
  - {name: ops, env: OPS_KEY, admin: true}
  - {name: narrow, env: NARROW_KEY, limits: {models: [mock]}}
  - {name: slow, env: SLOW_KEY, limits: {requests_per_minute: 3, tokens_per_minute: 100000}}
  - {name: one, env: ONE_KEY, limits: {concurrency: 1}}
  - {name: poor, env: POOR_KEY, tags: [team-a], limits: {budget_per_day: 0.1}}
  - {name: warned, env: WARNED_KEY, tags: [team-a, nightly], limits: {budget_per_day: 0.1, budget_mode: warn}}
"""
PROVIDER_KEY = "sk-very-secret-provider-key"
ENVIRONMENT = {"OPS_KEY": "ops-key", "NARROW_KEY": "narrow-key", "SLOW_KEY": "slow-key", "ONE_KEY": "one-key", "POOR_KEY": "poor-key",
               "WARNED_KEY": "warned-key",
               "PROVIDER_KEY": PROVIDER_KEY}
APP = {"Authorization": "Bearer app-key"}
OPS = {"Authorization": "Bearer ops-key"}

PROVIDERS = """\
providers:
  - {name: a, kind: openai, base_url: "{a}/v1", keys: [{env: PROVIDER_KEY}]}
  - {name: b, kind: openai, base_url: "{b}/v1", keys: [{env: PROVIDER_KEY}]}
models:
  - name: mock
    targets: [{provider: a, priority: 0}, {provider: b, priority: 1}]
  - {name: qwen-coder, targets: [{provider: a, model: mock-small}]}
  - {name: claude, targets: [{provider: b, model: mock-large}]}
  - {name: chatter, targets: [{provider: b, model: mock}]}
  - {name: mock-embed, targets: [{provider: a}]}
  - {name: kept, targets: [{provider: a, model: mock}], cache: {enabled: true, ttl: 1h}}
prices:
  - {model: mock, input: 1000, output: 2000}
  - {model: mock-small, input: 1000, output: 2000}
  - {model: mock-large, input: 1000, output: 2000}
"""


CACHE = tempfile.TemporaryDirectory(prefix="waybill-test-cache-")  # the routes are learnt once


def text(a, b, more=""):
    return (f"cache_folder: {CACHE.name}\n" + KEYS + PROVIDERS.replace("{a}", a.url).replace("{b}", b.url) + more
            + blackbox.CONFIG.replace("default_route: chat", "default_route: chat\ndefault_model: chatter"))


def open_text(a, b):
    """The same for everybody: without keys."""
    return text(a, b).replace(KEYS, "")
