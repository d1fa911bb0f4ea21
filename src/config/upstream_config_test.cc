#include "config/upstream_config.h"

#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "config/config.h"

namespace waybill::config {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

constexpr std::string_view kSmall = R"(providers:
  - {name: openai, base_url: "https://api.openai.com/v1", keys: [{env: OPENAI_API_KEY}]}
  - {name: ollama, kind: ollama, base_url: "http://127.0.0.1:11434"}
models:
  - name: small
    targets: [{provider: ollama, model: "qwen3:4b"}]
  - name: gpt-4o
    targets: [{provider: openai}]
    fallback: [small]
)";

std::string with_small(std::string_view yaml) { return std::string(kSmall) + std::string(yaml); }

// One provider that is as `settings` say, and a model at it.
std::string with_provider(std::string_view settings, std::string_view url = "https://host/v1") {
  return "providers:\n  - name: p\n    base_url: \"" + std::string(url) + "\"\n    " + std::string(settings) +
         "\nmodels: [{name: m, targets: [{provider: p}]}]\n";
}

Config parsed(std::string_view yaml) {
  auto config = parse(yaml);
  EXPECT_TRUE(config) << config.error().text() << '\n' << yaml;
  return config ? *std::move(config) : Config{};
}

std::string errors_of(std::string_view yaml) {
  const auto config = parse(yaml);
  EXPECT_FALSE(config) << yaml;
  return config ? std::string() : config.error().text();
}

std::vector<std::string> warnings_of(std::string_view yaml) {
  std::vector<std::string> texts;
  for (const Diagnostic& warning : parsed(yaml).warnings) texts.push_back(warning.text());
  return texts;
}

TEST(UpstreamConfig, ServesModelsWithoutRoutes) {
  const Config config = parsed(kSmall);
  ASSERT_EQ(config.models.size(), 2U);
  EXPECT_EQ(config.models[0].targets[0].model, "qwen3:4b");
  EXPECT_EQ(config.models[1].targets[0].model, "gpt-4o");
  EXPECT_EQ(config.models[1].position.text(), "waybill.yaml:7");
  EXPECT_EQ(config.providers[0].kind, ProviderKind::kOpenAi);
  EXPECT_EQ(config.providers[1].kind, ProviderKind::kOllama);
  EXPECT_EQ(config.providers[0].keys[0].env, "OPENAI_API_KEY");
  EXPECT_EQ(config.providers[0].timeouts.connect, std::chrono::seconds(2));
  EXPECT_EQ(config.gateway.max_attempts, 4U);
  EXPECT_EQ(config.default_model, "");  // nothing is ever decided
  EXPECT_THAT(config.warnings, IsEmpty());
}

TEST(UpstreamConfig, WhatIsWrittenOutIsReadBack) {
  const Config config = parsed(with_small(R"(
prices: [{model: small, input: 0.1, cached_input: 0, output: 1e-7}, {model: big, input: 3, output: 15}]
gateway: {conversation: windows, retry_budget: 0.1, cache_size: 1MiB, sticky: 0s}
keys: [{name: a, env: A, tags: [team], limits: {models: [small, auto], budget_per_day: 2.5, budget_mode: warn}}]
)"));
  const std::string yaml = to_yaml(config, Secrets::kShown);
  const auto again = parse(yaml);
  ASSERT_TRUE(again) << again.error().text() << yaml;
  EXPECT_EQ(to_yaml(*again, Secrets::kShown), yaml);
  EXPECT_EQ(again->prices[0].cached_input, 0.0);
  EXPECT_EQ(again->prices[0].output, 1e-7);
  EXPECT_EQ(again->prices[1].cached_input, std::nullopt);
  EXPECT_EQ(again->gateway.conversation, Conversation::kWindows);
  EXPECT_EQ(again->gateway.sticky, Duration::zero());
  EXPECT_THAT(again->keys[0].limits.models, ElementsAre("small", "auto"));
  EXPECT_EQ(again->keys[0].limits.budget_per_day, 2.5);
  EXPECT_EQ(again->keys[0].limits.budget_mode, BudgetMode::kWarn);
  EXPECT_THAT(again->keys[0].tags, ElementsAre("team"));
  EXPECT_EQ(again->models[1].fallback, config.models[1].fallback);
}

TEST(UpstreamConfig, ReadsHeadersAsTheyStand) {
  const Config config =
      parsed(with_provider("headers: {x-title: \"a: b\", HTTP-Referer: https://example.com, x-n: 1}"));
  ASSERT_EQ(config.providers[0].headers.size(), 3U);
  EXPECT_EQ(config.providers[0].headers[0].name, "x-title");
  EXPECT_EQ(config.providers[0].headers[0].value, "a: b");
  EXPECT_EQ(config.providers[0].headers[2].value, "1");
  const Config again = parsed(to_yaml(config, Secrets::kShown));
  EXPECT_EQ(again.providers[0].headers[1].value, "https://example.com");

  EXPECT_THAT(errors_of(with_provider("headers: [x]")), HasSubstr("providers[0].headers must be a mapping"));
  EXPECT_THAT(errors_of(with_provider("headers: {x: [1]}")),
              HasSubstr("waybill.yaml:4: providers[0].headers.x must be text"));
  EXPECT_THAT(errors_of(with_provider("headers: {\"a b\": c}")),
              HasSubstr("a b is not the name of a header"));
  EXPECT_THAT(errors_of(with_provider("headers: {x: 1, X: 2}")), HasSubstr("headers.X is there twice"));
  EXPECT_THAT(errors_of(with_provider("headers: {Host: other}")), HasSubstr("is set by the program"));
  EXPECT_THAT(errors_of(with_provider("headers: {x: \"a\\r\\nb: c\"}")), HasSubstr("a line break in it"));
  EXPECT_THAT(errors_of(with_provider("headers: {x: \"Bearer ${KEY}\"}")),
              HasSubstr("environment variables are not put in"));
  EXPECT_THAT(errors_of(with_provider("headers: {Authorization: Bearer sk-1}")),
              AllOf(HasSubstr("name where it is under keys"), Not(HasSubstr("sk-1"))));
  EXPECT_THAT(warnings_of(with_provider("headers: {api-key: abc}")),
              ElementsAre(AllOf(HasSubstr("waybill.yaml:4: providers[0].headers.api-key looks like a key"),
                                Not(HasSubstr("abc")))));
}

TEST(UpstreamConfig, ABaseUrlIsWhatStandsBeforeThePathOfEachCall) {
  const auto error = [](std::string_view url, std::string_view kind = "openai") {
    return errors_of(with_provider("kind: " + std::string(kind), url));
  };
  EXPECT_THAT(error("api.openai.com/v1"),
              HasSubstr("waybill.yaml:3: providers[0].base_url: \"api.openai.com/v1\" has no scheme; write "
                        "https://api.openai.com/v1"));
  EXPECT_THAT(error("https://api.openai.com/v1/chat/completions"),
              HasSubstr("ends with /chat/completions, which is added to it for each call; write "
                        "https://api.openai.com/v1"));
  EXPECT_THAT(error("https://host/v1/models/"), HasSubstr("ends with /models"));
  EXPECT_THAT(error("http://localhost:11434/api/chat", "ollama"), HasSubstr("write http://localhost:11434"));
  EXPECT_THAT(error("http://localhost:11434/api", "ollama"), HasSubstr("ends with /api,"));
  EXPECT_THAT(
      error("http://localhost:11434/v1", "ollama"),
      HasSubstr("is Ollama's copy of OpenAI's API; write http://localhost:11434 for its own, or say kind: "
                "openai"));
  EXPECT_THAT(error("https://api.openai.com"), HasSubstr("has no path; write https://api.openai.com/v1"));
  EXPECT_THAT(error("https://host/v1?a=b"), HasSubstr("has a query"));
  EXPECT_THAT(error("https://${HOST}/v1"), HasSubstr("environment variables are not put in"));
  EXPECT_THAT(error("https://me:hunter2@host/v1"),
              AllOf(HasSubstr("a user name or password in it"), HasSubstr("give the key under keys"),
                    Not(HasSubstr("hunter2"))));
  EXPECT_THAT(errors_of("providers: [{name: a}]"), HasSubstr("base_url is missing in providers[0]"));
  parsed(with_provider("kind: openai", "https://openrouter.ai/api"));
  parsed(with_provider("kind: openai", "http://vllm:8000/v1"));
}

TEST(UpstreamConfig, AProviderHasANameOfItsOwn) {
  EXPECT_THAT(errors_of("providers:\n  - {name: a, base_url: http://a}\n  - {name: a, base_url: http://b}\n"),
              HasSubstr("waybill.yaml:3: the provider \"a\" is there twice (first at waybill.yaml:2)"));
  EXPECT_THAT(errors_of("providers: [{name: a/b, base_url: http://a}]"),
              HasSubstr("which parts provider/model; rename it"));
  EXPECT_THAT(errors_of("providers: [{base_url: http://a}]"), HasSubstr("name is missing"));
  EXPECT_THAT(errors_of("providers: [{name: a, url: http://a}]"), HasSubstr("did you mean \"base_url\"?"));
  EXPECT_THAT(errors_of(with_provider("kind: anthropic")), HasSubstr("must be openai or ollama"));
}

TEST(UpstreamConfig, SomeSettingsAreOfOneKindOnly) {
  const std::string address = "http://127.0.0.1:11434";
  const auto errors = [&](const std::string& settings, const std::string& kind = "ollama") {
    return errors_of(with_provider("kind: " + kind + "\n    " + settings, address));
  };
  const Config config = parsed(with_provider("kind: ollama\n    keep_alive: -1\n    num_ctx: 8192", address));
  EXPECT_EQ(config.providers[0].keep_alive, "-1");
  EXPECT_EQ(config.providers[0].num_ctx, 8192U);
  for (const char* good : {"0", "300", "-1", "10m", "1h30m", "500ms", "-1s"})
    parsed(with_provider(std::string("kind: ollama\n    keep_alive: ") + good, address));
  for (const char* bad : {"10 m", "m", "1d", "10m5", "--1", "1.5h", "forever", "-"})
    EXPECT_THAT(errors(std::string("keep_alive: \"") + bad + "\""),
                HasSubstr("is not a time; write one like 10m"))
        << bad;
  EXPECT_THAT(
      errors("keep_alive: 10m", "openai"),
      HasSubstr("waybill.yaml:5: providers[0].keep_alive is Ollama's; remove it, or say kind: ollama"));
  EXPECT_THAT(errors("num_ctx: 8192", "openai"), HasSubstr("providers[0].num_ctx is Ollama's"));
  EXPECT_THAT(errors("stream_options: false"),
              HasSubstr("providers[0].stream_options is of kind openai only"));
  EXPECT_FALSE(parsed(with_provider("stream_options: false")).providers[0].stream_options);
}

TEST(UpstreamConfig, ASecretHasOneSource) {
  EXPECT_THAT(errors_of(with_provider("keys: [{}]")),
              HasSubstr("waybill.yaml:4: providers[0].keys[0] must have one of env and file; add where"));
  EXPECT_THAT(errors_of(with_provider("keys: [{env: A, file: a}]")), HasSubstr("not both; remove one"));
  EXPECT_THAT(errors_of(with_provider("keys: [{env: A}, {env: A}]")), HasSubstr("is the same key as"));
  EXPECT_THAT(errors_of(with_provider("keys: [{env: sk-hunter2}]")),
              AllOf(HasSubstr("is not the name of an environment variable"), Not(HasSubstr("hunter2"))));
  EXPECT_THAT(errors_of(with_provider("keys: [{env: $KEY}]")), HasSubstr("not the key, and no $"));
  EXPECT_THAT(errors_of(with_provider("api_key: abc")), HasSubstr("did you mean \"keys\"?"));
  const auto config = parse(with_provider("keys: [{file: a.key}, {env: A}]"),
                            {.name = "conf/waybill.yaml", .folder = "conf", .read_file = {}});
  ASSERT_TRUE(config) << config.error().text();
  EXPECT_EQ(config->providers[0].keys[0].file, "conf/a.key");
}

TEST(UpstreamConfig, WarnsOfKeysThatAnybodyCanRead) {
  EXPECT_THAT(
      warnings_of(with_provider("keys: [{env: A}]", "http://gpu.example/v1")),
      ElementsAre(HasSubstr("waybill.yaml:4: providers[0].keys are sent to gpu.example without encryption")));
  EXPECT_THAT(warnings_of(with_provider("keys: [{env: A}]", "http://127.0.0.1:8000/v1")), IsEmpty());
  EXPECT_THAT(warnings_of(with_provider("keys: [{env: A}]")), IsEmpty());
  EXPECT_THAT(warnings_of(with_provider("kind: openai", "http://gpu.example/v1")), IsEmpty());
}

TEST(UpstreamConfig, LimitsHangTogether) {
  EXPECT_THAT(errors_of(with_provider("limits: {concurrency: 8, batch_concurrency: 9}")),
              HasSubstr("waybill.yaml:4: providers[0].limits.batch_concurrency is 9, more than the 8 of "
                        "providers[0].limits.concurrency; lower it"));
  parsed(with_provider("limits: {concurrency: 8, batch_concurrency: 8}"));
  parsed(with_provider("limits: {batch_concurrency: 9}"));
  EXPECT_THAT(errors_of(with_provider("limits: {rpm: 9}")),
              HasSubstr("did you mean \"requests_per_minute\"?"));
  EXPECT_THAT(
      errors_of(with_provider("health: {cooldown: 3m}")),
      HasSubstr(
          "waybill.yaml:4: providers[0].health.cooldown is longer than providers[0].health.max_cooldown"));
  EXPECT_THAT(errors_of(with_provider("health: {max_cooldown: 1s}")), HasSubstr("is longer than"));
  EXPECT_THAT(errors_of(with_provider("health: {path: health}")),
              HasSubstr("must begin with a slash; write /health"));
  for (const std::string_view name :
       {"resolve", "connect", "tls", "headers", "answer", "first_token", "between_tokens", "total"}) {
    EXPECT_THAT(errors_of(with_provider("timeouts: {" + std::string(name) + ": 0s}")),
                HasSubstr("providers[0].timeouts." + std::string(name) +
                          " is \"0s\", which must be a duration from 1ms"));
  }
}

TEST(UpstreamConfig, TlsAndProxyAreWhole) {
  EXPECT_THAT(
      errors_of(with_provider("tls: {certificate: c.pem}")),
      HasSubstr("waybill.yaml:4: providers[0].tls has a certificate and no private_key; add private_key"));
  EXPECT_THAT(errors_of(with_provider("tls: {private_key: k.pem}")),
              HasSubstr("has a private_key and no certificate"));
  EXPECT_THAT(warnings_of(with_provider("tls: {certificate: c.pem, private_key: k.pem, ca: ca.pem}")),
              IsEmpty());
  EXPECT_THAT(warnings_of(with_provider("tls: {ca: ca.pem}", "http://host/v1")),
              ElementsAre(HasSubstr("providers[0].tls has no effect, as base_url is http")));
  EXPECT_THAT(warnings_of(with_provider("tls: {verify: false}")),
              ElementsAre(HasSubstr("whoever stands between can read")));
  parsed(with_provider("proxy: none"));
  parsed(with_provider("proxy: http://proxy:3128"));
  EXPECT_THAT(errors_of(with_provider("proxy: proxy:3128")), HasSubstr("providers[0].proxy has no scheme"));
  EXPECT_THAT(errors_of(with_provider("proxy: https://proxy")),
              HasSubstr("must be http://host:port or none"));
  EXPECT_THAT(errors_of(with_provider("proxy: http://me:hunter2@proxy")),
              AllOf(HasSubstr("HTTPS_PROXY"), Not(HasSubstr("hunter2"))));
}

TEST(UpstreamConfig, AModelHasANameAndTargetsThatAreThere) {
  const auto error = [](std::string_view models) {
    return errors_of("providers: [{name: openai, base_url: http://a}]\nmodels:\n  - " + std::string(models) +
                     "\n");
  };
  EXPECT_THAT(
      error("{name: a, targets: [{provider: opena}]}"),
      HasSubstr("waybill.yaml:3: the model \"a\" has a target at the provider \"opena\", which is not there; "
                "did you mean \"openai\"?"));
  EXPECT_THAT(error("{name: a, targets: [{provider: groq}]}"),
              HasSubstr("add it to providers, or correct the name"));
  EXPECT_THAT(error("{name: a}"), HasSubstr("targets is missing in models[0]"));
  EXPECT_THAT(error("{name: a, targets: []}"), HasSubstr("the model \"a\" has no targets; add"));
  EXPECT_THAT(error("{name: a, targets: [{provider: openai}, {provider: openai, model: a}]}"),
              HasSubstr("has the target openai/a twice"));
  EXPECT_THAT(error("{name: a, targets: [{provider: openai, weight: 0}]}"), HasSubstr("from 1 to"));
  EXPECT_THAT(error("{name: auto, targets: [{provider: openai}]}"),
              HasSubstr("the model \"auto\" has the name that asks for a decision; rename it"));
  EXPECT_THAT(
      error("{name: meta/llama, targets: [{provider: openai}]}"),
      HasSubstr(
          "which is taken for provider/model; name it \"llama\" and give its target model: meta/llama"));
  EXPECT_THAT(error("{name: a, targets: [{provider: openai}]}\n  - {name: a, targets: [{provider: openai}]}"),
              HasSubstr("waybill.yaml:4: the model \"a\" is there twice (first at waybill.yaml:3)"));
  EXPECT_THAT(error("{name: a, targets: [{provider: openai}], fallbacks: [b]}"),
              HasSubstr("did you mean \"fallback\"?"));
}

std::string models_with_fallbacks(std::vector<std::pair<std::string, std::string>> models) {
  std::string yaml = "providers: [{name: p, base_url: http://a}]\nmodels:\n";
  for (const auto& [name, fallback] : models)
    yaml += "  - {name: " + name + ", targets: [{provider: p}]" +
            (fallback.empty() ? "" : ", fallback: " + fallback) + "}\n";
  return yaml;
}

TEST(UpstreamConfig, AFallbackLeadsToAnotherModelAndNotBack) {
  parsed(models_with_fallbacks({{"a", "[b, c]"}, {"b", "[c]"}, {"c", ""}}));
  EXPECT_THAT(
      errors_of(models_with_fallbacks({{"small", "[smal]"}, {"b", ""}})),
      HasSubstr(
          "waybill.yaml:3: the model \"small\" falls back to \"smal\", which is none of models; did you "
          "mean \"small\"?"));
  EXPECT_THAT(errors_of(models_with_fallbacks({{"a", "[zzzzz]"}})),
              HasSubstr("add it there, or correct the name"));
  EXPECT_THAT(errors_of(models_with_fallbacks({{"a", "[a]"}})), HasSubstr("falls back to itself"));
  EXPECT_THAT(errors_of(models_with_fallbacks({{"a", "[b, b]"}, {"b", ""}})),
              HasSubstr("falls back to \"b\" twice"));
  EXPECT_THAT(errors_of(models_with_fallbacks({{"x", "[a]"}, {"a", "[b]"}, {"b", "[c]"}, {"c", "[a]"}})),
              HasSubstr("waybill.yaml:4: the fallback of \"a\" leads back to it (a, b, c, a); take it out"));
}

TEST(UpstreamConfig, AChainOfFallbacksMayBeLong) {
  std::vector<std::pair<std::string, std::string>> models;
  for (int i = 0; i < 3000; ++i)
    models.emplace_back("m" + std::to_string(i), "[m" + std::to_string(i + 1) + "]");
  models.emplace_back("m3000", "");
  parsed(models_with_fallbacks(models));
  models.back().second = "[m0]";
  EXPECT_THAT(errors_of(models_with_fallbacks(models)), HasSubstr("the fallback of \"m0\" leads back to it"));
}

TEST(UpstreamConfig, ARouteIsServedByAModelThatIsThere) {
  const auto routed = [](std::string_view route, std::string_view rest = "default_model: small") {
    return with_small(std::string(rest) + "\nroutes:\n  - {utterances: [x], " + std::string(route) + "}\n");
  };
  EXPECT_EQ(parsed(routed("name: chat, model: small")).routes[0].model, "small");
  EXPECT_EQ(parsed(routed("name: chat, model: openai/gpt-4.1")).routes[0].model, "openai/gpt-4.1");
  EXPECT_EQ(parsed(routed("name: small")).routes[0].model, "small");
  EXPECT_THAT(
      errors_of(routed("name: chat, model: smal")),
      HasSubstr("waybill.yaml:12: the route \"chat\" is served by \"smal\", which is none of models; did you "
                "mean \"small\"?"));
  EXPECT_THAT(errors_of(routed("name: chat, model: opena/gpt")),
              HasSubstr("and no provider is called \"opena\"; did you mean \"openai\"?"));
  EXPECT_THAT(errors_of(routed("name: chat, model: openai/")),
              HasSubstr("add it to models, or write provider/model"));
  EXPECT_THAT(errors_of(routed("name: chat")),
              HasSubstr("the route \"chat\" has no model, and none of models is called "
                        "as it is; add model: small"));
  EXPECT_THAT(errors_of(routed("name: small, model: gpt-4o")),
              HasSubstr("\"small\" is both a route, served by \"gpt-4o\", and one of models"));
  EXPECT_THAT(errors_of(routed("name: auto, model: small")),
              HasSubstr("the route \"auto\" has the name that asks"));
  EXPECT_THAT(errors_of(routed("name: a/b, model: small")),
              HasSubstr("which is taken for provider/model; rename it"));
}

TEST(UpstreamConfig, ProvidersAloneServeTargetsByTheirName) {
  constexpr std::string_view kProvider = "providers: [{name: p, base_url: http://a}]\n";
  EXPECT_EQ(parsed(std::string(kProvider) + "default_model: p/m").default_model, "p/m");
  EXPECT_THAT(errors_of(std::string(kProvider) + "default_model: m"), HasSubstr("is served by \"m\""));
  EXPECT_THAT(errors_of(std::string(kProvider) + "default_model: p/m\nroutes: [{name: a, utterances: [x]}]"),
              HasSubstr("add model: PROVIDER/MODEL"));
}

TEST(UpstreamConfig, TheDefaultRouteIsServedByAModelThatIsThere) {
  constexpr std::string_view kRoutes = "routes: [{name: chat, model: small, utterances: [x]}]\n";
  EXPECT_THAT(
      errors_of(with_small(kRoutes)),
      HasSubstr(
          "waybill.yaml: the default route \"default\" has no model, and none of models is called as it "
          "is; add default_model: small"));
  EXPECT_EQ(parsed(with_small(std::string(kRoutes) + "default_route: chat")).default_model, "small");
  EXPECT_EQ(parsed(with_small(std::string(kRoutes) + "default_route: gpt-4o")).default_model, "gpt-4o");
  EXPECT_EQ(parsed(with_small("default_model: openai/o3")).default_model, "openai/o3");
  EXPECT_THAT(
      errors_of(with_small("default_model: smal")),
      HasSubstr(
          "waybill.yaml:10: the default route \"default\" is served by \"smal\", which is none of models; "
          "did you mean \"small\"?"));
  EXPECT_THAT(errors_of(with_small("default_route: small\ndefault_model: gpt-4o")),
              HasSubstr("\"small\" is both a default route, served by \"gpt-4o\", and one of models"));
  EXPECT_THAT(errors_of(with_small("default_route: auto\ndefault_model: small")),
              HasSubstr("the default route \"auto\""));
  EXPECT_THAT(errors_of(with_small("rules: [{when: {keyword: x}, route: default}]")),
              HasSubstr("add default_model"));
}

TEST(UpstreamConfig, WithoutProvidersAndModelsNamesAreFree) {
  const Config config = parsed("routes: [{name: auto, model: any/thing, utterances: [x]}]\n");
  EXPECT_EQ(config.routes[0].model, "any/thing");
  EXPECT_EQ(config.default_model, "default");
  EXPECT_THAT(warnings_of("default_route: a\n"), ElementsAre(HasSubstr("there are no routes")));
}

TEST(UpstreamConfig, PricesAreNotNegativeAndStandOnce) {
  const auto error = [](std::string_view prices) {
    return errors_of("prices:\n  - " + std::string(prices) + "\n");
  };
  EXPECT_THAT(error("{model: a, input: -1, output: 1}"),
              HasSubstr("waybill.yaml:2: prices[0].input is -1, which must be a number from 0 to 1000000"));
  EXPECT_THAT(error("{model: a, input: 1, cached_input: -0.5, output: 1}"),
              HasSubstr("prices[0].cached_input is -0.5"));
  EXPECT_THAT(error("{model: a, input: 1, output: nan}"), HasSubstr("prices[0].output is nan"));
  EXPECT_THAT(error("{model: a, input: 1}"), HasSubstr("output is missing in prices[0]"));
  EXPECT_THAT(error("{model: a, input: 1, output: 1}\n  - {model: a, input: 2, output: 1}"),
              HasSubstr("waybill.yaml:3: the price of \"a\" is there twice (first at waybill.yaml:2)"));
}

TEST(UpstreamConfig, ACallerMayAskForWhatIsThere) {
  const auto limited = [](std::string_view limits) {
    return with_small(
        "routes: [{name: chat, model: small, utterances: [x]}]\ndefault_model: small\nkeys:\n"
        "  - {name: a, env: A, admin: true, limits: {" +
        std::string(limits) + "}}\n");
  };
  parsed(limited("models: [small, chat, auto, default, openai/gpt-4.1]"));
  EXPECT_THAT(
      errors_of(limited("models: [chatt]")),
      HasSubstr(
          "waybill.yaml:13: the key \"a\" may ask for \"chatt\", which is neither a model nor a route; did "
          "you mean \"chat\"?"));
  EXPECT_THAT(errors_of(limited("models: [groq/x]")), HasSubstr("add it to models, or write provider/model"));
  EXPECT_THAT(errors_of(limited("budget_per_day: -1")), HasSubstr("must be a number from 0"));
  EXPECT_THAT(errors_of(limited("budget_mode: soft")), HasSubstr("must be hard or warn"));
  EXPECT_THAT(
      warnings_of(limited("budget_per_day: 10, budget_per_month: 5")),
      ElementsAre(HasSubstr("keys[0].limits.budget_per_day is more than keys[0].limits.budget_per_month")));
  EXPECT_THAT(warnings_of(limited("budget_per_day: 10")), IsEmpty());
}

}  // namespace
}  // namespace waybill::config
