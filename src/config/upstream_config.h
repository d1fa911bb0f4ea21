// The typed form of what is said of language models in waybill.yaml: providers, models, prices, gateway, and
// the limits of a caller's key.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "config/position.h"

namespace waybill::config {

// The wire format that a provider speaks.
enum class ProviderKind : std::uint8_t { kOpenAi, kOllama };

// Where a secret is (config/secret.h reads it). Exactly one of the two; the secret itself is never in the
// configuration.
struct SecretSource {
  std::string env;             // an environment variable, or
  std::filesystem::path file;  // a file, whose first line it is
  Position position;

  friend bool operator==(const SecretSource&, const SecretSource&) = default;
};

struct HttpHeader {
  std::string name, value;

  friend bool operator==(const HttpHeader&, const HttpHeader&) = default;
};

// Each has an error of its own that names it. What a client asks for in its headers wins where it is shorter.
struct UpstreamTimeouts {
  Duration resolve = std::chrono::seconds(2);
  Duration connect = std::chrono::seconds(2);
  Duration tls = std::chrono::seconds(3);
  Duration headers = std::chrono::seconds(30);         // of a stream: from the request sent to its headers
  Duration answer = std::chrono::minutes(5);           // of a call that does not stream: to its headers
  Duration first_token = std::chrono::seconds(30);     // from the headers to the first content
  Duration between_tokens = std::chrono::seconds(30);  // of a stream
  Duration total = std::chrono::minutes(10);

  friend bool operator==(const UpstreamTimeouts&, const UpstreamTimeouts&) = default;
};

struct ProviderLimits {
  std::size_t concurrency = 0;                   // calls at a time; 0: as many as come
  std::size_t batch_concurrency = 0;             // of these, by the batch lane at most; 0: seven eighths
  std::size_t requests_per_minute = 0;           // 0: not limited
  std::size_t tokens_per_minute = 0;             // 0: not limited
  std::size_t max_queue = 10'000;                // calls that wait for the limits above
  Duration max_wait = std::chrono::seconds(30);  // predicted; what would wait longer is refused at once

  friend bool operator==(const ProviderLimits&, const ProviderLimits&) = default;
};

// When a target is left alone for a while, and when it is tried again.
struct ProviderHealth {
  std::size_t failures = 5;                     // in a row, after which its targets are not called
  Duration cooldown = std::chrono::seconds(5);  // then one call goes out to look; doubled while it fails
  Duration max_cooldown = std::chrono::minutes(2);
  Duration interval = Duration::zero();  // ask by itself this often; zero: never
  std::string path;                      // what it asks for; empty: what the kind has for it

  friend bool operator==(const ProviderHealth&, const ProviderHealth&) = default;
};

// TLS towards a provider whose base_url is https.
struct UpstreamTls {
  std::filesystem::path ca;                        // PEM; empty: the system's authorities
  std::filesystem::path certificate, private_key;  // PEM, of this client; both or neither
  bool verify = true;

  friend bool operator==(const UpstreamTls&, const UpstreamTls&) = default;
};

struct Provider {
  std::string name;
  ProviderKind kind = ProviderKind::kOpenAi;
  std::string base_url;             // as base_url.h reads it: "https://api.openai.com/v1"
  std::vector<SecretSource> keys;   // taken in turn; none: no key is sent
  std::vector<HttpHeader> headers;  // sent with every call
  UpstreamTimeouts timeouts;
  ProviderLimits limits;
  ProviderHealth health;
  UpstreamTls tls;
  std::string proxy;  // "http://proxy:3128"; empty: HTTPS_PROXY, HTTP_PROXY and NO_PROXY; "none": none
  bool stream_options = true;  // kOpenAi: streams are asked for their usage; false: the provider refuses that
  std::string keep_alive;      // kOllama: how long models stay loaded, "10m", "-1" (for ever); empty: its own
  std::size_t num_ctx = 0;     // kOllama: tokens of context that models are loaded with; 0: their own
  Position position;

  friend bool operator==(const Provider&, const Provider&) = default;
};

// One upstream model at one provider.
struct Target {
  std::string provider;
  std::string model;         // what the provider calls it; the model's own name when not given
  std::size_t priority = 0;  // the lowest that can be called is called
  std::size_t weight = 1;    // share among targets of one priority
  Position position;
};

struct ResponseCache {
  bool enabled = false;
  Duration ttl = std::chrono::minutes(5);
};

struct Model {
  std::string name;  // what clients ask for
  std::vector<Target> targets;
  std::vector<std::string> fallback;  // models that are tried, in order, when no target could answer
  bool prefix_affinity = false;       // calls that begin alike go to the same target, while load is balanced
  bool finish_abandoned = false;      // let a call end whose client has gone, instead of cancelling it
  ResponseCache cache;
  Position position;
};

// In US dollars per million tokens.
struct Price {
  std::string model;  // of a target, as its provider calls it, or of `models`
  double input = 0;
  std::optional<double> cached_input;  // as input when not given
  double output = 0;
  Position position;
};

// What the router decides on when a conversation asks for `auto` or for a route.
enum class Conversation : std::uint8_t { kLastMessage, kWindows };

struct Gateway {
  Conversation conversation = Conversation::kLastMessage;
  Duration sticky =
      std::chrono::minutes(30);  // a conversation keeps its model this long after a call; zero: never
  std::size_t max_attempts = 4;  // calls to providers for one call of a client
  double retry_budget = 0.2;     // retries, as a share of the calls of the last ten seconds
  std::size_t retry_floor = 10;  // so many retries in ten seconds are always allowed
  std::size_t cache_bytes =
      64U << 20;  // answers that are kept: for the response cache and for Idempotency-Keys
  std::size_t max_answer_bytes = 64U << 20;  // of a call that does not stream
};

enum class BudgetMode : std::uint8_t { kHard, kWarn };

// What one caller may use. Zero, or empty: not limited.
struct CallerLimits {
  std::size_t requests_per_minute = 0;
  std::size_t tokens_per_minute = 0;
  std::size_t concurrency = 0;
  std::vector<std::string> models;  // names that may be asked for; "auto" and routes count by their own names
  double budget_per_day = 0;        // US dollars; days and months are those of UTC
  double budget_per_month = 0;
  BudgetMode budget_mode = BudgetMode::kHard;
};

}  // namespace waybill::config
