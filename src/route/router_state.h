// What a loaded router is made of. Internal to router.cc and router_load.cc.
#pragma once

#include <atomic>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <optional>
#include <stop_token>
#include <thread>

#include "route/exact_cache.h"
#include "route/fitted_head.h"
#include "route/prompt_key.h"
#include "route/recheck.h"
#include "route/router.h"
#include "route/rules.h"
#include "route/static_tier.h"
#include "route/training_set.h"

namespace waybill::route {

// The static tier and the thread that may still be making it. `get()` is what deciding threads call.
class StaticSlot {
 public:
  [[nodiscard]] const StaticTier* get() const noexcept { return ready_.load(std::memory_order_acquire); }
  [[nodiscard]] StaticStatus status() const;
  void wait() const;

  void enable() { status_.enabled = true; }  // before it is shared
  void set(Result<std::unique_ptr<StaticTier>> tier, double seconds);
  void run(std::move_only_function<void(std::stop_token)> work) { thread_ = std::jthread(std::move(work)); }

 private:
  std::unique_ptr<StaticTier> tier_;
  std::atomic<const StaticTier*> ready_{nullptr};
  mutable std::mutex mutex_;
  mutable std::condition_variable changed_;
  StaticStatus status_;  // guarded by mutex_
  bool done_ = false;    // guarded by mutex_
  std::jthread thread_;  // last: joined before the rest goes
};

struct alignas(64) Count {
  std::atomic<std::uint64_t> value{0};
  void add() noexcept { value.fetch_add(1, std::memory_order_relaxed); }
};

struct Router::Impl {
  Impl(const embed::Model& encoder, const embed::Model* exact_encoder, std::size_t cache_bytes)
      : model(encoder),
        exact(exact_encoder),
        normalizer(case_is_irrelevant(encoder.tokenizer())),
        cache(cache_bytes) {}

  // What the utterances were embedded with.
  [[nodiscard]] const embed::Model& reference() const noexcept { return exact != nullptr ? *exact : model; }

  // router_load.cc
  Status build(const config::Config& config, const RouterOptions& options);
  void describe_routes(const config::Config& config);
  void fit_guard(const config::Config& config, const RouterOptions& options);
  void start_static(const config::Config& config, const RouterOptions& options, HeadOptions head_settings);

  // router.cc; all thread-safe
  [[nodiscard]] std::optional<Decision> decide_by_rules(std::string_view prompt,
                                                        DecideScratch& scratch) const;
  [[nodiscard]] std::optional<Hash128> key_of(std::string_view prompt, DecideScratch& scratch) const;
  [[nodiscard]] std::optional<Decision> decide_by_cache(const std::optional<Hash128>& key,
                                                        const RuleOutcome& outcome) const;
  [[nodiscard]] std::optional<Decision> decide_by_static(DecideScratch& scratch, bool alone,
                                                         HeadDecision* why = nullptr) const;
  [[nodiscard]] std::optional<Decision> decide_cheaply(std::string_view prompt, DecideScratch& scratch,
                                                       std::optional<Hash128>& key) const;
  // The end of the road: decides, remembers and counts.
  [[nodiscard]] Decision finish(const HeadDecision& said, const std::optional<Hash128>& key,
                                DecideScratch& scratch) const;
  // Scores what the fast model made of the prompt in scratch.ids; a close call is encoded and scored once
  // more, and scratch.embedding is then the exact one.
  [[nodiscard]] HeadDecision encode_and_score(DecideScratch& scratch) const;
  [[nodiscard]] Decision choose(const HeadDecision& said, std::span<const float> scores,
                                std::span<const float> thresholds, const RuleOutcome& outcome) const;
  [[nodiscard]] Decision route_decision(std::uint32_t route, float score, Tier tier, Reason reason) const;
  [[nodiscard]] Decision default_decision(float score, Reason reason) const;
  void tokenize(std::string_view prompt, DecideScratch& scratch) const;
  void embed(const embed::Model& encoder, DecideScratch& scratch) const;  // scratch.ids -> scratch.embedding
  [[nodiscard]] HeadDecision score(std::span<const float> embedding, DecideScratch& scratch) const;
  [[nodiscard]] bool is_close(const HeadDecision& said, const RuleOutcome& outcome) const;
  void remember(const std::optional<Hash128>& key, const Decision& decision) const noexcept;
  void count(const Decision& decision) const noexcept;
  void add_nearest(std::span<const float> embedding, std::size_t nearest, Explanation& out) const;
  void add_runners_up(std::span<const float> scores, std::size_t runners_up, Explanation& out) const;

  const embed::Model& model;
  const embed::Model* exact;  // may be null
  RecheckGuard guard;
  embed::TextOptions text;
  std::vector<RouteInfo> routes;
  std::string default_name, default_model;
  std::uint32_t default_index = Decision::kNoRoute;
  RuleSet rules;
  TrainingSet training;
  std::optional<Head> head;            // empty when there are no utterances
  std::vector<HeadDecision> held_out;  // of `head`, one for each utterance
  PromptNormalizer normalizer;
  bool degrades = false;  // the static tier may decide alone
  LoadStats stats;

  mutable ExactCache cache;
  mutable Count by_rule, by_static, by_encoder, by_default, degraded, rechecked;
  StaticSlot static_slot;  // last: its thread uses the rest
};

}  // namespace waybill::route
