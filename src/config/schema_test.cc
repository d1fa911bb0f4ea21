#include "config/schema.h"

#include <filesystem>
#include <set>
#include <string>

#include <boost/json.hpp>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/file.h"
#include "config/config.h"

namespace waybill::config {
namespace {

namespace json = boost::json;

json::object schema() { return json::parse(json_schema()).as_object(); }

// Every key of an object schema with its path ("routes[].name"), lists and references followed once.
void collect_keys(const json::value& node, const std::string& path, std::set<std::string>& keys) {
  const json::object& object = node.as_object();
  if (const auto* items = object.if_contains("items")) collect_keys(*items, path + "[]", keys);
  if (const auto* choices = object.if_contains("anyOf")) {
    for (const json::value& choice : choices->as_array()) collect_keys(choice, path, keys);
  }
  if (const auto* properties = object.if_contains("properties")) {
    for (const auto& [key, value] : properties->as_object()) {
      const std::string inner = path.empty() ? std::string(key) : path + '.' + std::string(key);
      keys.insert(inner);
      collect_keys(value, inner, keys);
    }
  }
}

std::set<std::string> keys_of_schema() {
  std::set<std::string> keys;
  const json::object whole = schema();
  collect_keys(whole, "", keys);
  collect_keys(whole.at("$defs").at("condition"), "when", keys);
  return keys;
}

void collect_keys_of_value(const json::value& node, const std::string& path, std::set<std::string>& keys) {
  if (node.is_array()) {
    for (const json::value& item : node.as_array()) collect_keys_of_value(item, path + "[]", keys);
  } else if (node.is_object()) {
    for (const auto& [key, value] : node.as_object()) {
      // Conditions are looked at from the condition on, as they nest.
      const std::string inner =
          key == "when" || path.ends_with("all[]") || path.ends_with("any[]") || path.ends_with(".not")
              ? std::string(key == "when" ? "" : "when.") + std::string(key)
              : path + (path.empty() ? "" : ".") + std::string(key);
      keys.insert(inner == "when" ? "rules[].when" : inner);
      if (key != "metadata" && inner != "providers[].headers") collect_keys_of_value(value, inner, keys);
    }
  }
}

// A configuration that gives every key.
constexpr std::string_view kEverything = R"(
default_route: chat
default_model: small
cache_folder: cache
routes:
  - name: coding
    model: qwen
    description: programs
    utterances: [write a function]
    utterances_file: more.txt
    threshold: 0.5
    metadata: {team: platform}
rules:
  - name: one
    when:
      all:
        - any: [{keyword: {words: [a], whole_words: false, case_sensitive: true}}, {regex: b}]
        - not: {language: [de]}
        - length: {min: 1, max: 5}
    route: coding
  - when: {keyword: x}
    veto: [coding]
encoder: {model: m, precision: f32, long_text: windows, max_windows: 4, threads: 2, cache_file: false}
head: {scoring: aurelio, reject_quantile: 0.1, aggregation: max, top_k: 3, out_of_scope: [x], out_of_scope_file: more.txt}
tiers:
  cache: {enabled: false, max_size: 1MiB}
  static: {enabled: false, agreement: 0.9, when_overloaded: false}
server:
  listen: [127.0.0.1:8000, "[::1]:8000", unix:waybill.sock]
  admin_listen: systemd
  io_threads: 2
  busy_poll_us: 50
  insecure: false
  tls: {certificate: cert.pem, private_key: key.pem}
  drain_timeout: 1m
  max_connections: 100
  max_header_size: 8KiB
  max_body_size: 1MiB
  max_total_body_size: 64MiB
  header_timeout: 5s
  body_timeout: 6s
  idle_timeout: 2m
  write_timeout: 250ms
  cors: {allow_origins: ["https://app.example.com"]}
  max_inputs: 16
keys:
  - {name: app, sha256: 2C26B46B68FFC68FF99B453C1D30413413422D706483BFA0F98A5E886266E7AE, admin: true}
  - name: batch
    env: BATCH_KEY
    tags: [nightly]
    limits:
      requests_per_minute: 60
      tokens_per_minute: 100000
      concurrency: 4
      models: [qwen, coding, auto, openai/o3]
      budget_per_day: 1.5
      budget_per_month: 30
      budget_mode: warn
  - {name: ops, file: ops.key}
providers:
  - name: openai
    kind: openai
    base_url: https://api.openai.com/v1
    keys: [{env: OPENAI_API_KEY}, {file: openai.key}]
    headers: {openai-project: shop}
    timeouts: {resolve: 1s, connect: 1s, tls: 1s, headers: 1s, answer: 1s, first_token: 1s, between_tokens: 1s, total: 1m}
    limits: {concurrency: 8, batch_concurrency: 6, requests_per_minute: 500, tokens_per_minute: 1000000, max_queue: 10, max_wait: 1s}
    health: {failures: 3, cooldown: 1s, max_cooldown: 1m, interval: 10s, path: /health}
    tls: {ca: ca.pem, certificate: cert.pem, private_key: key.pem, verify: true}
    proxy: http://proxy:3128
    stream_options: false
  - {name: ollama, kind: ollama, base_url: "http://127.0.0.1:11434", keep_alive: 10m, num_ctx: 4096}
models:
  - name: qwen
    targets: [{provider: openai, model: qwen3, priority: 1, weight: 3}]
    fallback: [small]
    prefix_affinity: true
    finish_abandoned: true
    cache: {enabled: true, ttl: 1m}
  - {name: small, targets: [{provider: openai}]}
prices: [{model: qwen, input: 1.5, cached_input: 0.1, output: 2}]
gateway: {conversation: windows, sticky: 1h, max_attempts: 2, retry_budget: 0.1, retry_floor: 5, cache_size: 1MiB, max_answer_size: 2MiB}
store: {path: jobs.db, inline_size: 1MiB, max_log_size: 1GiB, max_waiting: 5}
jobs:
  queues:
    - name: nightly
      workers: external
      concurrency: 2
      requests_per_minute: 60
      lane: interactive
      max_depth: 10
      max_receives: 5
      visibility: 5m
      timeout: 1h
      backoff: {first: 2s, most: 1d}
      in_doubt: hold
      require_idempotency_key: true
      retention: {completed: 1d, failed: 2d, dead: 0s}
  idempotency_ttl: 2d
  wait_for_same_key: false
  promote_after: 30s
  max_jobs_per_call: 10
  webhooks:
    secrets: [{env: WEBHOOK_SECRET}, {file: webhook.key}]
    allow_private: true
    allow_http: true
    allow_hosts: ["*.example.com"]
    timeout: 5s
    concurrency: 4
    schedule: [1s, 1m]
admission: {deadline: 10s, max_deadline: 1h, max_wait: 500ms, max_queue_tokens: 4096}
telemetry:
  waybills: {keep: 10, max_size: 1MiB, file: waybills.jsonl, rotate_size: 2MiB, rotate_keep: 1}
  log: {format: json, level: warn, healthy_per_second: 0}
  traces: {endpoint: "http://localhost:4318", sample_ratio: 0.5, service_name: gateway, max_queue: 100}
)";

std::expected<Config, ConfigErrors> parse_with_files(std::string_view yaml) {
  return parse(yaml, {.name = "waybill.yaml",
                      .folder = {},
                      .read_file = [](const std::filesystem::path&) -> Result<std::string> {
                        return "from the file\n";
                      }});
}

TEST(Schema, KnowsExactlyTheKeysThatAConfigurationWritesOut) {
  const auto config = parse_with_files(kEverything);
  ASSERT_TRUE(config) << config.error().text();
  std::set<std::string> written;
  collect_keys_of_value(json::parse(to_json(*config, Secrets::kShown)), "", written);
  written.insert(
      {"routes[].utterances_file", "head.out_of_scope_file"});  // read into utterances and out_of_scope
  EXPECT_EQ(written, keys_of_schema());
}

TEST(Schema, AllowsNoOtherKeys) {
  std::size_t objects = 0;
  const auto check = [&objects](const auto& self, const json::value& node) -> void {
    if (node.is_array()) {
      for (const json::value& item : node.as_array()) self(self, item);
    } else if (node.is_object()) {
      const json::object& object = node.as_object();
      if (object.contains("properties")) {
        ++objects;
        ASSERT_TRUE(object.contains("additionalProperties")) << json::serialize(node);
        EXPECT_EQ(object.at("additionalProperties"), json::value(false));
      }
      for (const auto& [key, value] : object) self(self, value);
    }
  };
  check(check, schema());
  EXPECT_GE(objects, 9U);
}

TEST(Schema, RepeatsTheDefaultsOfTheParser) {
  const json::object properties = schema().at("properties").as_object();
  EXPECT_EQ(properties.at("default_route").at("default"), "default");
  const json::value& encoder = properties.at("encoder").at("properties");
  EXPECT_EQ(encoder.at("model").at("default"), "models/all-MiniLM-L6-v2");
  EXPECT_EQ(encoder.at("threads").at("default"), "auto");
  EXPECT_EQ(properties.at("head").at("properties").at("reject_quantile").at("default").as_double(), 0.05);
}

TEST(Schema, TakesOnlyTheChoicesThatTheParserTakes) {
  const json::value head = schema().at("properties").at("head").at("properties");
  for (const json::value& choice : head.at("scoring").at("enum").as_array()) {
    const std::string yaml = "head: {scoring: " + std::string(choice.as_string()) + "}\nroutes: []\n";
    EXPECT_TRUE(parse(yaml)) << yaml;
  }
}

TEST(Schema, DescribesEveryKey) {
  const auto check = [](const auto& self, const json::value& node) -> void {
    if (!node.is_object()) return;
    if (const auto* properties = node.as_object().if_contains("properties")) {
      for (const auto& [key, value] : properties->as_object()) {
        EXPECT_TRUE(value.as_object().contains("description")) << key;
      }
    }
    for (const auto& [key, value] : node.as_object()) self(self, value);
  };
  check(check, schema());
}

TEST(Schema, IsExplainedKeyByKeyInTheReference) {
  const auto page = read_file(std::filesystem::path(WAYBILL_SOURCE_DIR) / "docs/config.md");
  ASSERT_TRUE(page) << page.error().message;
  for (const std::string& key : keys_of_schema()) {
    const std::string name = key.substr(key.find_last_of('.') + 1);
    EXPECT_THAT(*page, testing::HasSubstr("`" + name + "`")) << key << " is not in docs/config.md";
  }
}

}  // namespace
}  // namespace waybill::config
