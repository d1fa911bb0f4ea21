// The keys of what is said of language models, as describe.h has those of the decision.
#pragma once

#include <array>
#include <chrono>

#include "config/key.h"
#include "config/upstream_config.h"

namespace waybill::config {

inline constexpr std::array kProviderKinds = {Choice<ProviderKind>{"openai", ProviderKind::kOpenAi},
                                              Choice<ProviderKind>{"ollama", ProviderKind::kOllama}};
inline constexpr std::array kConversations = {
    Choice<Conversation>{"last_message", Conversation::kLastMessage},
    Choice<Conversation>{"windows", Conversation::kWindows}};
inline constexpr std::array kBudgetModes = {Choice<BudgetMode>{"hard", BudgetMode::kHard},
                                            Choice<BudgetMode>{"warn", BudgetMode::kWarn}};
inline constexpr Bounds kCalls = {0, 1'000'000'000};
inline constexpr Bounds kTokens = {0, 1'000'000'000'000};
inline constexpr Bounds kPrices = {0, 1'000'000};  // US dollars per million tokens
inline constexpr Bounds kDollars = {0, 1'000'000'000};
inline constexpr DurationBounds kUpstreamTimeouts = {std::chrono::milliseconds(1), std::chrono::hours(24)};
inline constexpr DurationBounds kPauses = {std::chrono::seconds(0), std::chrono::hours(24)};
inline constexpr DurationBounds kLifetimes = {std::chrono::seconds(0), std::chrono::hours(24 * 30)};

template <class Visitor>
void describe(Visitor& v, SecretSource& s) {
  v.text({"env", "The environment variable that holds the key."}, s.env);
  v.file({"file", "The file whose first line is the key; relative to this file."}, s.file);
}

template <class Visitor>
void describe(Visitor& v, UpstreamTimeouts& t) {
  v.duration({"resolve", "To find the address of the host."}, kUpstreamTimeouts, t.resolve);
  v.duration({"connect", "To open a connection."}, kUpstreamTimeouts, t.connect);
  v.duration({"tls", "For the TLS handshake."}, kUpstreamTimeouts, t.tls);
  v.duration({"headers", "Of a stream: from the request sent to the header of the answer."},
             kUpstreamTimeouts, t.headers);
  v.duration({"answer", "Of a call that does not stream: from the request sent to the header of the answer."},
             kUpstreamTimeouts, t.answer);
  v.duration({"first_token", "Of a stream: from the header of the answer to the first content."},
             kUpstreamTimeouts, t.first_token);
  v.duration({"between_tokens", "Of a stream: the longest pause between two pieces of content."},
             kUpstreamTimeouts, t.between_tokens);
  v.duration({"total", "The whole call."}, kUpstreamTimeouts, t.total);
}

template <class Visitor>
void describe(Visitor& v, ProviderLimits& l) {
  v.integer({"concurrency", "Calls at a time. 0: as many as come."}, kCalls, l.concurrency);
  v.integer({"batch_concurrency", "Of these, at most so many for the batch lane. 0: seven eighths."}, kCalls,
            l.batch_concurrency);
  v.integer({"requests_per_minute", "0: not limited."}, kCalls, l.requests_per_minute);
  v.integer({"tokens_per_minute", "Of prompts and answers together. 0: not limited."}, kTokens,
            l.tokens_per_minute);
  v.integer({"max_queue", "Calls that wait for these limits at most."}, {0, 10'000'000}, l.max_queue);
  v.duration({"max_wait", "What would wait longer than this for them is refused at once."}, kPauses,
             l.max_wait);
}

template <class Visitor>
void describe(Visitor& v, ProviderHealth& h) {
  v.integer({"failures", "After so many failures in a row a target is left alone."}, {1, 1'000'000},
            h.failures);
  v.duration({"cooldown", "For this long; then one call goes out to look. Doubled while it fails."},
             kUpstreamTimeouts, h.cooldown);
  v.duration({"max_cooldown", "Doubled up to this."}, kUpstreamTimeouts, h.max_cooldown);
  v.duration({"interval", "The provider is asked for its health this often. 0s: never."}, kPauses,
             h.interval);
  v.text({"path", "The path it is asked for, from the root of its host. Default: what the kind has for it."},
         h.path);
}

template <class Visitor>
void describe(Visitor& v, UpstreamTls& t) {
  v.file({"ca", "Authorities that sign the provider's certificate, in PEM. Default: the system's."}, t.ca);
  v.file({"certificate", "The certificate that is shown to the provider, in PEM."}, t.certificate);
  v.file({"private_key", "The key of that certificate, in PEM."}, t.private_key);
  v.flag({"verify", "Refuse a provider whose certificate is not valid for its host."}, t.verify);
}

template <class Visitor>
void describe(Visitor& v, Provider& p) {
  v.text({"name", "What targets, logs and metrics call it.", true}, p.name);
  v.choice({"kind",
            "The API that it speaks. openai: OpenAI's (vLLM, llama.cpp, SGLang and many more); ollama: "
            "Ollama's own."},
           kProviderKinds, p.kind);
  v.text(
      {"base_url",
       "What stands before the path of every call: https://api.openai.com/v1, http://127.0.0.1:11434.", true},
      p.base_url);
  v.sections({"keys", "Where the keys for this provider are, each an env or a file; taken in turn."}, p.keys);
  v.headers({"headers", "Sent with every call."}, p.headers);
  v.section({"timeouts", "How long each part of a call may take."}, p.timeouts);
  v.section({"limits", "What may be asked of it at a time and in a minute."}, p.limits);
  v.section({"health", "When a target that fails is left alone, and when it is tried again."}, p.health);
  v.section({"tls", "For a base_url that is https."}, p.tls);
  v.text({"proxy",
          "The HTTP proxy to it, http://host:port; none: no proxy. Default: what HTTPS_PROXY, HTTP_PROXY and "
          "NO_PROXY say."},
         p.proxy);
  v.flag({"stream_options",
          "Of kind openai: ask streams for their usage. false: for a provider that refuses the field "
          "stream_options, as Mistral does."},
         p.stream_options);
  v.text({"keep_alive",
          "Of kind ollama: how long a model stays loaded after a call, 10m; -1: for ever; 0: not at all. "
          "Default: what Ollama is set to."},
         p.keep_alive);
  v.integer({"num_ctx", "Of kind ollama: tokens of context that models are loaded with. 0: the model's own."},
            {0, 100'000'000}, p.num_ctx);
}

template <class Visitor>
void describe(Visitor& v, Target& t) {
  v.text({"provider", "The name of one of the providers.", true}, t.provider);
  v.text({"model", "What that provider calls the model. Default: the model's name."}, t.model);
  v.integer({"priority", "Targets with the lowest are called; the others when none of these can be."},
            {0, 1'000'000}, t.priority);
  v.integer({"weight", "The share among targets of one priority."}, {1, 1'000'000}, t.weight);
}

template <class Visitor>
void describe(Visitor& v, ResponseCache& c) {
  v.flag({"enabled", "Answer a call that was answered before from memory."}, c.enabled);
  v.duration({"ttl", "For this long."}, kLifetimes, c.ttl);
}

template <class Visitor>
void describe(Visitor& v, Model& m) {
  v.text({"name", "What clients ask for.", true}, m.name);
  v.sections({"targets", "What can serve it: a model at a provider each.", true}, m.targets);
  v.texts({"fallback", "Other models, tried in this order when no target could answer."}, m.fallback);
  v.flag(
      {"prefix_affinity",
       "Calls that begin alike go to the same target, whose cache then knows them, while the load is even."},
      m.prefix_affinity);
  v.flag({"finish_abandoned", "Let a call end whose client has gone, instead of cancelling it."},
         m.finish_abandoned);
  v.section({"cache", "Answers that are kept."}, m.cache);
}

template <class Visitor>
void describe(Visitor& v, Price& p) {
  v.text({"model", "As its provider calls it, or one of models.", true}, p.model);
  v.number({"input", "US dollars per million tokens of the prompt.", true}, kPrices, p.input);
  v.optional_number({"cached_input", "And of its tokens that the provider had kept. Default: as input."},
                    kPrices, p.cached_input);
  v.number({"output", "US dollars per million tokens of the answer.", true}, kPrices, p.output);
}

template <class Visitor>
void describe(Visitor& v, Gateway& g) {
  v.choice(
      {"conversation",
       "What decides the route of a conversation: the user's last message, or the surest of the last eight."},
      kConversations, g.conversation);
  v.duration(
      {"sticky", "A conversation keeps its model this long after a call. 0s: it is decided each time."},
      kLifetimes, g.sticky);
  v.integer({"max_attempts", "Calls to providers for one call of a client, at most."}, {1, 100},
            g.max_attempts);
  v.number({"retry_budget", "Retries, as a share of the calls of the last ten seconds."}, {0, 10},
           g.retry_budget);
  v.integer({"retry_floor", "So many retries in ten seconds are allowed whatever that share is."}, kCalls,
            g.retry_floor);
  v.size({"cache_size",
          "Memory for answers that are kept: half for the response cache, half for Idempotency-Keys."},
         g.cache_bytes);
  v.size({"max_answer_size", "Of a call that does not stream; a longer answer is an error."},
         g.max_answer_bytes);
}

template <class Visitor>
void describe(Visitor& v, CallerLimits& l) {
  v.integer({"requests_per_minute", "0: not limited."}, kCalls, l.requests_per_minute);
  v.integer({"tokens_per_minute", "Of prompts and answers together. 0: not limited."}, kTokens,
            l.tokens_per_minute);
  v.integer({"concurrency", "Calls at a time. 0: as many as come."}, kCalls, l.concurrency);
  v.texts({"models", "Only these may be asked for: models, routes, provider/model, auto. Default: all."},
          l.models);
  v.number({"budget_per_day", "US dollars a day (UTC). 0: not limited."}, kDollars, l.budget_per_day);
  v.number({"budget_per_month", "US dollars a month (UTC). 0: not limited."}, kDollars, l.budget_per_month);
  v.choice({"budget_mode", "hard: what is over the budget is refused; warn: it goes through."}, kBudgetModes,
           l.budget_mode);
}

}  // namespace waybill::config
