// The router: tiers of decisions, cheapest first.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/progress.h"
#include "base/result.h"
#include "config/config.h"
#include "embed/model.h"
#include "embed/static_table.h"
#include "embed/text.h"
#include "route/decision.h"
#include "route/head.h"

namespace waybill::route {

struct RouteInfo {
  std::string name, model, description;
  float threshold = 0;                        // calibrated probability
  std::size_t utterances = 0;
  std::vector<std::pair<std::string, std::string>> metadata;
};

struct LoadStats {
  std::size_t utterances = 0, embedded = 0;   // embedded: those not found in the utterance cache
  double embed_seconds = 0, fit_seconds = 0, static_seconds = 0;
  bool static_ready = false;
  std::vector<std::string> notes;             // "utterance cache not written: no space left on device"
};

struct RouterOptions {
  unsigned threads = 0;                       // for embedding utterances at load; 0: one per core
  bool wait_for_static = false;               // distil the static table now if it is not cached (else: in the background, the tier joins when ready)
  Progress progress;
};

// Everything that one thread needs to decide without allocating.
struct DecideScratch {
  std::vector<embed::TokenId> ids;
  std::vector<std::uint32_t> offsets;
  std::vector<float> windows, embedding, scores, static_embedding;
  std::vector<std::byte> head;
  embed::Workspace workspace;
  std::string normalized;
};

// Immutable once loaded, but for the exact cache and counters, which are thread-safe; so are all functions.
// A reload makes a new Router; decisions of the old one stay valid as long as it lives.
//
//   decide()            rules -> exact cache -> static (where calibrated) -> encoder -> default
//   decide_cheaply()    the same without the encoder: empty when only the encoder can tell
//   decide_embedding()  the rest of it, once the encoder has answered (the server's batcher sits in between)
//   decide_degraded()   what overload gets: the static tier alone, marked so
class Router {
 public:
  [[nodiscard]] static Result<std::unique_ptr<Router>> load(const config::Config& config, const embed::Model& model,
                                                            const RouterOptions& options = {});
  ~Router();

  [[nodiscard]] Decision decide(std::string_view prompt, DecideScratch& scratch) const;
  [[nodiscard]] std::optional<Decision> decide_cheaply(std::string_view prompt, DecideScratch& scratch) const;
  [[nodiscard]] Decision decide_embedding(std::string_view prompt, std::span<const float> embedding, DecideScratch& scratch) const;
  // Empty when there is no static tier (disabled, or not yet distilled).
  [[nodiscard]] std::optional<Decision> decide_degraded(std::string_view prompt, DecideScratch& scratch) const;

  // The decision with its reasons; never from the exact cache. `tier` forces one (for evaluation).
  [[nodiscard]] Explanation explain(std::string_view prompt, DecideScratch& scratch, std::optional<Tier> tier = std::nullopt,
                                    std::size_t nearest = 3, std::size_t runners_up = 3) const;

  [[nodiscard]] std::span<const RouteInfo> routes() const noexcept;
  [[nodiscard]] const LoadStats& load_stats() const noexcept;

 private:
  struct Impl;
  explicit Router(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace waybill::route
