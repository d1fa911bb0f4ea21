#include "route/router.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "base/check.h"
#include "route/router_state.h"

namespace waybill::route {

void StaticSlot::set(Result<std::unique_ptr<StaticTier>> tier, double seconds) {
  const std::lock_guard lock(mutex_);
  status_.seconds = seconds;
  if (tier) {
    tier_ = std::move(*tier);
    status_.ready = true;
    status_.margin = tier_->gate().threshold();
    status_.expected_share = tier_->gate().share();
    status_.note = tier_->note();
    ready_.store(tier_.get(), std::memory_order_release);
  } else {
    status_.note = "no static tier: " + tier.error().message;
  }
  done_ = true;
  changed_.notify_all();
}

StaticStatus StaticSlot::status() const {
  const std::lock_guard lock(mutex_);
  return status_;
}

void StaticSlot::wait() const {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return done_ || !status_.enabled; });
}

Decision Router::Impl::route_decision(std::uint32_t route, float score, Tier tier, Reason reason) const {
  return {.index = route,
          .route = routes[route].name,
          .model = routes[route].model,
          .score = score,
          .tier = tier,
          .reason = reason};
}

Decision Router::Impl::default_decision(float score, Reason reason) const {
  return {.index = default_index,
          .route = default_name,
          .model = default_model,
          .score = score,
          .tier = Tier::kDefault,
          .reason = reason};
}

// Empty when the rules leave it open; scratch.rules then says what they veto.
std::optional<Decision> Router::Impl::decide_by_rules(std::string_view prompt, DecideScratch& scratch) const {
  RuleOutcome& outcome = scratch.rules;
  if (rules.empty()) {
    outcome.veto_bits.clear();
    outcome.veto_rule = {};
  } else {
    rules.decide(prompt, outcome);
    if (outcome.verdict != RuleOutcome::Verdict::kOpen) {
      Decision decision = outcome.verdict == RuleOutcome::Verdict::kRoute
                              ? route_decision(outcome.route, 1, Tier::kRule, Reason::kRule)
                              : default_decision(1, Reason::kRule);
      decision.tier = Tier::kRule;
      decision.rule = outcome.rule;
      return decision;
    }
  }
  if (!head) return default_decision(0, Reason::kNoRoutes);
  return std::nullopt;
}

// The vetoes are part of the key, for they are part of what the decision depends on. Where a long text is cut
// by its bytes, blanks count, and only the very same prompt is the same; a text of fewer bytes than the model
// takes tokens is never cut.
std::optional<Hash128> Router::Impl::key_of(std::string_view prompt, DecideScratch& scratch) const {
  if (cache.capacity() == 0 || prompt.size() > PromptNormalizer::kMaxBytes) return std::nullopt;
  const std::vector<std::uint64_t>& vetoes = scratch.rules.veto_bits;
  const bool any = std::any_of(vetoes.begin(), vetoes.end(), [](std::uint64_t bits) { return bits != 0; });
  const std::uint64_t seed = any ? hash64(std::as_bytes(std::span(vetoes))) : 0;
  if (text.long_text != embed::LongText::kHead && prompt.size() > model.config().max_tokens - 2)
    return hash128(prompt, seed);
  normalizer.normalize(prompt, scratch.normalized);
  return hash128(scratch.normalized, seed);
}

std::optional<Decision> Router::Impl::decide_by_cache(const std::optional<Hash128>& key,
                                                      const RuleOutcome& outcome) const {
  if (!key) return std::nullopt;
  const std::optional<CachedDecision> cached = cache.find(*key);
  if (!cached) return std::nullopt;
  Decision decision = cached->to_default
                          ? default_decision(cached->score, Reason::kCache)
                          : route_decision(cached->route, cached->score, Tier::kCache, Reason::kCache);
  decision.tier = Tier::kCache;
  if (cached->vetoed) decision.rule = outcome.veto_rule;
  return decision;
}

void Router::Impl::remember(const std::optional<Hash128>& key, const Decision& decision) const noexcept {
  if (!key) return;
  cache.insert(*key, {.route = decision.index,
                      .score = decision.score,
                      .to_default = decision.tier == Tier::kDefault,
                      .vetoed = !decision.rule.empty()});
}

void Router::Impl::tokenize(std::string_view prompt, DecideScratch& scratch) const {
  scratch.ids.clear();
  scratch.offsets.assign(1, 0);
  embed::tokenize(model.tokenizer(), model.config(), prompt, text, scratch.ids, scratch.offsets);
}

// By the static tier where its gate opens, or whatever it thinks when it is `alone`.
std::optional<Decision> Router::Impl::decide_by_static(DecideScratch& scratch, bool alone,
                                                       HeadDecision* why) const {
  const StaticTier* const tier = static_slot.get();
  if (tier == nullptr) return std::nullopt;
  const HeadDecision said =
      tier->score(scratch.ids, scratch.static_embedding, scratch.static_scores, scratch.head);
  if (why != nullptr) *why = said;
  if (tier->gate().opens(said.margin) && !scratch.rules.vetoed(said.best)) {
    return route_decision(said.best, said.probability, Tier::kStatic, Reason::kMargin);
  }
  if (!alone) return std::nullopt;
  Decision decision = choose(said, scratch.static_scores, tier->thresholds(), scratch.rules);
  if (decision.tier == Tier::kEncoder) decision.tier = Tier::kStatic;
  decision.reason = Reason::kOverload;
  decision.degraded = true;
  return decision;
}

// The best route if it is not vetoed and above its threshold; the best one that is not vetoed if that is
// above its own.
Decision Router::Impl::choose(const HeadDecision& said, std::span<const float> scores,
                              std::span<const float> thresholds, const RuleOutcome& outcome) const {
  if (!outcome.vetoed(said.best)) {
    return said.accepted ? route_decision(said.best, said.probability, Tier::kEncoder, Reason::kScore)
                         : default_decision(said.probability, Reason::kBelowThreshold);
  }
  std::uint32_t next = Decision::kNoRoute;
  for (std::uint32_t i = 0; i < scores.size(); ++i) {
    if (outcome.vetoed(i) || scores[i] < thresholds[i]) continue;
    if (next == Decision::kNoRoute || scores[i] > scores[next]) next = i;
  }
  Decision decision = next == Decision::kNoRoute
                          ? default_decision(said.probability, Reason::kVetoed)
                          : route_decision(next, scores[next], Tier::kEncoder, Reason::kVetoed);
  decision.rule = outcome.veto_rule;
  return decision;
}

void Router::Impl::embed(const embed::Model& encoder, DecideScratch& scratch) const {
  const std::size_t dim = encoder.dim();
  const embed::PackedBatch batch{.ids = scratch.ids, .offsets = scratch.offsets};
  scratch.embedding.resize(dim);
  if (batch.sequences() == 1) {
    encoder.forward(batch, scratch.embedding, scratch.workspace);
    return;
  }
  scratch.windows.resize(batch.sequences() * dim);
  encoder.forward(batch, scratch.windows, scratch.workspace);
  scratch.lengths.resize(batch.sequences());
  for (std::size_t i = 0; i < scratch.lengths.size(); ++i)
    scratch.lengths[i] = scratch.offsets[i + 1] - scratch.offsets[i] - 2;
  embed::average_windows(scratch.windows, scratch.lengths, scratch.embedding);
}

HeadDecision Router::Impl::score(std::span<const float> embedding, DecideScratch& scratch) const {
  WAYBILL_CHECK(embedding.size() == training.dim);
  scratch.scores.resize(routes.size());
  return head->score(embedding, scratch.scores, scratch.head);
}

// Where a rule vetoes the best route, one further down decides, whose borders the guard does not know.
bool Router::Impl::is_close(const HeadDecision& said, const RuleOutcome& outcome) const {
  return exact != nullptr && (outcome.vetoed(said.best) || guard.is_close(said, head->thresholds()));
}

HeadDecision Router::Impl::encode_and_score(DecideScratch& scratch) const {
  embed(model, scratch);
  HeadDecision said = score(scratch.embedding, scratch);
  if (!is_close(said, scratch.rules)) return said;
  embed(*exact, scratch);
  said = score(scratch.embedding, scratch);
  rechecked.add();
  return said;
}

void Router::Impl::count(const Decision& decision) const noexcept {
  if (decision.degraded) degraded.add();
  switch (decision.tier) {
    case Tier::kRule:
      by_rule.add();
      break;
    case Tier::kCache:
      break;  // the cache counts its hits
    case Tier::kStatic:
      by_static.add();
      break;
    case Tier::kEncoder:
      by_encoder.add();
      break;
    case Tier::kDefault:
      by_default.add();
      break;
  }
}

// The tiers before the encoder. Leaves the prompt's key, vetoes and token ids for the one that follows.
std::optional<Decision> Router::Impl::decide_cheaply(std::string_view prompt, DecideScratch& scratch,
                                                     std::optional<Hash128>& key) const {
  std::optional<Decision> decision = decide_by_rules(prompt, scratch);
  if (!decision) {
    key = key_of(prompt, scratch);
    decision = decide_by_cache(key, scratch.rules);
  }
  if (!decision) {
    tokenize(prompt, scratch);
    decision = decide_by_static(scratch, false);
    if (decision) remember(key, *decision);
  }
  if (decision) count(*decision);
  return decision;
}

std::optional<Decision> Router::decide_cheaply(std::string_view prompt, DecideScratch& scratch) const {
  std::optional<Hash128> key;
  return impl_->decide_cheaply(prompt, scratch, key);
}

Decision Router::decide(std::string_view prompt, DecideScratch& scratch) const {
  std::optional<Hash128> key;
  if (const std::optional<Decision> cheap = impl_->decide_cheaply(prompt, scratch, key)) return *cheap;
  const HeadDecision said = impl_->encode_and_score(scratch);
  return impl_->finish(said, key, scratch);
}

std::optional<Decision> Router::decide_embedding(std::string_view prompt, std::span<const float> embedding,
                                                 DecideScratch& scratch) const {
  if (const std::optional<Decision> decision = impl_->decide_by_rules(prompt, scratch)) return decision;
  const HeadDecision said = impl_->score(embedding, scratch);
  if (impl_->is_close(said, scratch.rules)) return std::nullopt;
  return impl_->finish(said, impl_->key_of(prompt, scratch), scratch);
}

Decision Router::decide_exact_embedding(std::string_view prompt, std::span<const float> embedding,
                                        DecideScratch& scratch) const {
  if (const std::optional<Decision> decision = impl_->decide_by_rules(prompt, scratch)) return *decision;
  const HeadDecision said = impl_->score(embedding, scratch);
  if (impl_->exact != nullptr) impl_->rechecked.add();
  return impl_->finish(said, impl_->key_of(prompt, scratch), scratch);
}

bool Router::is_close_call(std::span<const float> embedding, DecideScratch& scratch) const {
  if (!impl_->head) return false;
  return impl_->is_close(impl_->score(embedding, scratch), scratch.rules);
}

Decision Router::Impl::finish(const HeadDecision& said, const std::optional<Hash128>& key,
                              DecideScratch& scratch) const {
  const Decision decision = choose(said, scratch.scores, head->thresholds(), scratch.rules);
  remember(key, decision);
  count(decision);
  return decision;
}

std::optional<Decision> Router::decide_degraded(std::string_view prompt, DecideScratch& scratch) const {
  std::optional<Decision> decision = impl_->decide_by_rules(prompt, scratch);
  if (!decision) decision = impl_->decide_by_cache(impl_->key_of(prompt, scratch), scratch.rules);
  if (decision) {
    impl_->count(*decision);
    return decision;
  }
  if (!impl_->degrades) return std::nullopt;
  impl_->tokenize(prompt, scratch);
  return decide_degraded(scratch);
}

std::optional<Decision> Router::decide_degraded(DecideScratch& scratch) const {
  if (!impl_->degrades) return std::nullopt;
  const std::optional<Decision> decision = impl_->decide_by_static(scratch, true);
  if (decision) impl_->count(*decision);
  return decision;
}

Explanation Router::explain(std::string_view prompt, DecideScratch& scratch, std::optional<Tier> tier,
                            std::size_t nearest, std::size_t runners_up) const {
  const std::optional<Decision> ruled = impl_->decide_by_rules(prompt, scratch);
  if (!impl_->head) return {.decision = *ruled};
  impl_->tokenize(prompt, scratch);
  Explanation out;
  if (const StaticTier* const fast = impl_->static_slot.get(); fast != nullptr && tier != Tier::kEncoder) {
    HeadDecision said;
    const std::optional<Decision> decision = impl_->decide_by_static(scratch, tier == Tier::kStatic, &said);
    if (decision) {
      out.decision = ruled.value_or(*decision);
      out.threshold = fast->thresholds()[said.best];
      out.margin = said.margin;
      out.margin_threshold = fast->gate().threshold();
      impl_->add_runners_up(scratch.static_scores, runners_up, out);
      if (nearest != 0) {
        impl_->embed(impl_->reference(), scratch);
        impl_->add_nearest(scratch.embedding, nearest, out);
      }
      return out;
    }
  }
  (void)impl_->encode_and_score(scratch);
  return explain_embedding(prompt, scratch.embedding, scratch, nearest, runners_up);
}

Explanation Router::explain_embedding(std::string_view prompt, std::span<const float> embedding,
                                      DecideScratch& scratch, std::size_t nearest,
                                      std::size_t runners_up) const {
  const std::optional<Decision> ruled = impl_->decide_by_rules(prompt, scratch);
  if (!impl_->head) return {.decision = *ruled};
  Explanation out;
  const HeadDecision said = impl_->score(embedding, scratch);
  out.decision =
      ruled ? *ruled : impl_->choose(said, scratch.scores, impl_->head->thresholds(), scratch.rules);
  out.threshold = impl_->head->thresholds()[said.best];
  impl_->add_runners_up(scratch.scores, runners_up, out);
  impl_->add_nearest(embedding, nearest, out);
  return out;
}

void Router::Impl::add_runners_up(std::span<const float> scores, std::size_t runners_up,
                                  Explanation& out) const {
  if (runners_up == 0) return;
  for (std::uint32_t i = 0; i < scores.size(); ++i)
    out.runners_up.push_back({.route = i, .score = scores[i]});
  const std::size_t count = std::min(runners_up, out.runners_up.size());
  std::partial_sort(out.runners_up.begin(), out.runners_up.begin() + static_cast<std::ptrdiff_t>(count),
                    out.runners_up.end(), [](const ScoredRoute& a, const ScoredRoute& b) {
                      return a.score != b.score ? a.score > b.score : a.route < b.route;
                    });
  out.runners_up.resize(count);
}

void Router::Impl::add_nearest(std::span<const float> embedding, std::size_t nearest,
                               Explanation& out) const {
  if (nearest == 0) return;
  const std::size_t dim = training.dim;
  for (std::size_t i = 0; i < training.utterances(); ++i) {
    const auto row = std::span(training.embeddings).subspan(i * dim, dim);
    out.nearest.push_back(
        {.route = training.labels[i],
         .text = training.texts[i],
         .similarity = std::inner_product(row.begin(), row.end(), embedding.begin(), 0.0F)});
  }
  const std::size_t count = std::min(nearest, out.nearest.size());
  std::partial_sort(
      out.nearest.begin(), out.nearest.begin() + static_cast<std::ptrdiff_t>(count), out.nearest.end(),
      [](const NearestUtterance& a, const NearestUtterance& b) { return a.similarity > b.similarity; });
  out.nearest.resize(count);
}

Router::Router(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Router::~Router() = default;

std::span<const RouteInfo> Router::routes() const noexcept { return impl_->routes; }
const embed::Model* Router::exact_model() const noexcept { return impl_->exact; }
std::string_view Router::default_route() const noexcept { return impl_->default_name; }
const embed::TextOptions& Router::text_options() const noexcept { return impl_->text; }
const LoadStats& Router::load_stats() const noexcept { return impl_->stats; }
StaticStatus Router::static_status() const { return impl_->static_slot.status(); }
void Router::wait_for_static() const { impl_->static_slot.wait(); }
ExactCacheStats Router::cache_stats() const noexcept { return impl_->cache.stats(); }

RouterCounts Router::counts() const noexcept {
  const auto value = [](const Count& count) { return count.value.load(std::memory_order_relaxed); };
  return {.rule = value(impl_->by_rule),
          .cache = impl_->cache.stats().hits,
          .static_tier = value(impl_->by_static),
          .encoder = value(impl_->by_encoder),
          .fallback = value(impl_->by_default),
          .degraded = value(impl_->degraded),
          .rechecked = value(impl_->rechecked)};
}

}  // namespace waybill::route
