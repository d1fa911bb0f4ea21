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
#include "embed/text.h"
#include "route/decision.h"
#include "route/exact_cache.h"
#include "route/head.h"
#include "route/rules.h"

namespace waybill::route {

struct RouteInfo {
  std::string name, model, description;
  float threshold = 0;         // calibrated probability
  std::size_t utterances = 0;  // those of `waybill fit` counted
  std::vector<std::pair<std::string, std::string>> metadata;
};

struct LoadStats {
  std::size_t utterances = 0, out_of_scope = 0,
              embedded = 0;      // embedded: those not found in the utterance cache
  std::size_t fit_examples = 0;  // labelled examples of `waybill fit` among them
  bool head_from_cache = false;
  double leave_one_out_accuracy = 0;  // of the head, each utterance left out in turn
  double embed_seconds = 0, fit_seconds = 0;
  std::vector<std::string> notes;  // "utterance cache not written: no space left on device"
};

// The static tier as it is at this moment.
struct StaticStatus {
  bool enabled = false;
  bool ready = false;        // false while the table is distilled, and when that failed
  float margin = 0;          // from which it decides; infinite: never alone
  float expected_share = 0;  // of prompts like the utterances that it decides
  double seconds = 0;        // to make it ready
  std::string note;          // why it is not ready, or has not been cached
};

struct RouterOptions {
  unsigned threads = 0;          // for embedding utterances at load; 0: one per core
  bool wait_for_static = false;  // have the static tier ready when load() returns (else it joins when it is)
  bool use_fit = true;           // take the examples that `waybill fit` has left (fit.h)
  // Decides the close calls of `model` once more (recheck.h), and embeds the utterances; null: nobody does.
  // Another precision of the same folder, to outlive the router.
  const embed::Model* exact_model = nullptr;
  Progress progress = {};
};

// Everything that one thread needs to decide without allocating.
struct DecideScratch {
  std::vector<embed::TokenId> ids;
  std::vector<std::uint32_t> offsets;
  std::vector<std::uint32_t> lengths;
  std::vector<float> windows, embedding, scores, static_embedding, static_scores;
  Head::Scratch head;
  embed::Workspace workspace;
  std::string normalized;
  RuleOutcome rules;
};

// How many decisions came from where, since load().
struct RouterCounts {
  std::uint64_t rule = 0, cache = 0, static_tier = 0, encoder = 0, fallback = 0, degraded = 0;
  std::uint64_t rechecked = 0;  // of `encoder` and `fallback`: encoded by both models
};

// Immutable once loaded, but for the exact cache, the static tier that may join later, and counters; all
// functions are thread-safe. `model` must outlive it. A reload makes a new Router; decisions of the old one
// stay valid as long as it lives.
//
//   decide()            rules -> exact cache -> static (where calibrated) -> encoder -> default
//   decide_cheaply()    the same without the encoder: empty when only the encoder can tell
//   decide_embedding()  the rest of it, once the encoder has answered (the server's batcher sits in between):
//   empty
//                       for a close call, which goes to the exact model and then to decide_exact_embedding()
//   decide_degraded()   what overload gets: the cheap tiers, and the static one alone where they do not know
//
// Deciding rules are asked first. What rules veto is passed over for the best route that is not vetoed, if
// that one is above its own threshold; else the default route gets the prompt.
//
// Any bytes are a prompt: invalid UTF-8 is read as U+FFFD, an empty prompt is a prompt like any other.
class Router {
 public:
  // Fails with a sentence (a rule that does not compile, examples of `waybill fit` that cannot be read). A
  // cache folder that is damaged or cannot be written only gives a note.
  [[nodiscard]] static Result<std::unique_ptr<Router>> load(const config::Config& config,
                                                            const embed::Model& model,
                                                            const RouterOptions& options = {});
  ~Router();

  [[nodiscard]] Decision decide(std::string_view prompt, DecideScratch& scratch) const;
  // When empty, scratch.ids and scratch.offsets hold the prompt's sequences, ready for the encoder.
  [[nodiscard]] std::optional<Decision> decide_cheaply(std::string_view prompt, DecideScratch& scratch) const;
  // `embedding`: of the prompt (windows averaged) by the model given to load(), dim() floats. Never empty
  // when there is no exact model.
  [[nodiscard]] std::optional<Decision> decide_embedding(std::string_view prompt,
                                                         std::span<const float> embedding,
                                                         DecideScratch& scratch) const;
  // The same by the exact model.
  [[nodiscard]] Decision decide_exact_embedding(std::string_view prompt, std::span<const float> embedding,
                                                DecideScratch& scratch) const;
  // Empty when there is no static tier (disabled, not for overload, or not yet distilled).
  [[nodiscard]] std::optional<Decision> decide_degraded(std::string_view prompt,
                                                        DecideScratch& scratch) const;

  // The same for the prompt that decide_cheaply() has just been empty for, with what it left in `scratch`.
  [[nodiscard]] std::optional<Decision> decide_degraded(DecideScratch& scratch) const;

  // The decision with its reasons; never from the exact cache, and not counted. `tier` kStatic or kEncoder
  // forces one; when kStatic is not ready, the encoder answers.
  [[nodiscard]] Explanation explain(std::string_view prompt, DecideScratch& scratch,
                                    std::optional<Tier> tier = std::nullopt, std::size_t nearest = 3,
                                    std::size_t runners_up = 3) const;
  // The same for the encoder tier when the embedding is known.
  [[nodiscard]] Explanation explain_embedding(std::string_view prompt, std::span<const float> embedding,
                                              DecideScratch& scratch, std::size_t nearest = 3,
                                              std::size_t runners_up = 3) const;

  // Whether the exact model has to be asked about what the fast one made of a text.
  [[nodiscard]] bool is_close_call(std::span<const float> embedding, DecideScratch& scratch) const;
  [[nodiscard]] const embed::Model* exact_model() const noexcept;

  [[nodiscard]] std::span<const RouteInfo> routes() const noexcept;
  [[nodiscard]] std::string_view default_route() const noexcept;
  [[nodiscard]] const embed::TextOptions& text_options() const noexcept;
  [[nodiscard]] const LoadStats& load_stats() const noexcept;
  [[nodiscard]] StaticStatus static_status() const;
  // Waits until the static tier is ready or has failed.
  void wait_for_static() const;
  [[nodiscard]] RouterCounts counts() const noexcept;
  [[nodiscard]] ExactCacheStats cache_stats() const noexcept;

 private:
  struct Impl;
  explicit Router(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace waybill::route
