#include "route/evaluation.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <limits>
#include <numeric>
#include <unordered_map>

#include <fmt/format.h>

#include "base/suggest.h"
#include "embed/text.h"

namespace waybill::route {
namespace {

constexpr double kNone = std::numeric_limits<double>::quiet_NaN();

double ratio(std::size_t part, std::size_t whole, double otherwise) {
  return whole == 0 ? otherwise : static_cast<double>(part) / static_cast<double>(whole);
}

// The route of each example; kNoRoute where it belongs to none.
Result<std::vector<std::uint32_t>> labels_of(const Router& router, const Dataset& test) {
  std::unordered_map<std::string_view, std::uint32_t> index;
  std::vector<std::string_view> names;
  for (std::uint32_t i = 0; i < router.routes().size(); ++i) {
    names.push_back(router.routes()[i].name);
    index[names.back()] = names.back() == router.default_route() ? Decision::kNoRoute : i;
  }
  index.try_emplace(router.default_route(), Decision::kNoRoute);
  std::vector<std::uint32_t> labels;
  for (const Example& example : test.examples) {
    if (const auto found = index.find(example.label); found != index.end()) {
      labels.push_back(found->second);
    } else if (is_out_of_scope_label(example.label)) {
      labels.push_back(Decision::kNoRoute);
    } else {
      return fail(ErrorCode::kInvalidInput,
                  fmt::format("{}:{}: the label \"{}\" is no route{}; label what belongs to no route \"oos\"",
                              test.name, example.line, example.label, did_you_mean(example.label, names)));
    }
  }
  return labels;
}

std::uint32_t decided_route(const Router& router, const Decision& decision) {
  return decision.route == router.default_route() ? Decision::kNoRoute : decision.index;
}

Judgement judge(const Router& router, const Explanation& explanation, std::uint32_t label) {
  Judgement judgement{.label = label,
                      .best = Decision::kNoRoute,
                      .decided = decided_route(router, explanation.decision),
                      .score = 0};
  if (!explanation.runners_up.empty()) {
    judgement.best = explanation.runners_up.front().route;
    judgement.score = explanation.runners_up.front().score;
  }
  return judgement;
}

std::vector<Judgement> judge_embeddings(const Router& router, const Dataset& test,
                                        std::span<const std::uint32_t> labels,
                                        std::span<const float> embeddings, std::size_t dim) {
  std::vector<Judgement> judgements(labels.size());
  DecideScratch scratch;
  for (std::size_t i = 0; i < labels.size(); ++i) {
    const auto embedding = embeddings.subspan(i * dim, dim);
    judgements[i] =
        judge(router, router.explain_embedding(test.examples[i].text, embedding, scratch, 0, 1), labels[i]);
  }
  return judgements;
}

std::optional<StaticMetrics> evaluate_static(const Router& router, const Dataset& test,
                                             std::span<const Judgement> encoder, const Progress& progress) {
  if (!router.static_status().ready) return std::nullopt;
  std::size_t inside = 0, right = 0, same = 0, decided_inside = 0, decided_same = 0, decided_outside = 0,
              cascade = 0;
  DecideScratch scratch;
  for (std::size_t i = 0; i < encoder.size(); ++i) {
    if (i % 256 == 0) report(progress, "static tier", i, encoder.size());
    const Explanation explanation = router.explain(test.examples[i].text, scratch, Tier::kStatic, 0, 1);
    if (explanation.runners_up.empty()) continue;
    const std::uint32_t best = explanation.runners_up.front().route;
    const bool decides = explanation.margin >= explanation.margin_threshold;
    const bool in_scope = encoder[i].label != Decision::kNoRoute;
    inside += in_scope ? 1U : 0U;
    right += in_scope && best == encoder[i].label ? 1U : 0U;
    same += best == encoder[i].best ? 1U : 0U;
    decided_inside += in_scope && decides ? 1U : 0U;
    decided_outside += !in_scope && decides ? 1U : 0U;
    decided_same += decides && best == encoder[i].decided ? 1U : 0U;
    cascade += in_scope && (decides ? best : encoder[i].best) == encoder[i].label ? 1U : 0U;
  }
  report(progress, "static tier", encoder.size(), encoder.size());
  return StaticMetrics{.accuracy = ratio(right, inside, 0),
                       .agreement = ratio(same, encoder.size(), 0),
                       .decided = ratio(decided_inside, inside, 0),
                       .decided_agreement = ratio(decided_same, decided_inside + decided_outside, kNone),
                       .decided_out_of_scope = ratio(decided_outside, encoder.size() - inside, kNone),
                       .cascade_accuracy = ratio(cascade, inside, 0)};
}

// Replaces the embeddings of close calls with the exact model's; returns their share.
double recheck(const Router& router, std::span<const std::string> texts, std::span<float> embeddings,
               const EvaluationOptions& options) {
  const embed::Model* const exact = router.exact_model();
  if (exact == nullptr || texts.empty()) return 0;
  const std::size_t dim = exact->dim();
  std::vector<std::size_t> close;
  std::vector<std::string> close_texts;
  DecideScratch scratch;
  for (std::size_t i = 0; i < texts.size(); ++i) {
    if (!router.is_close_call(embeddings.subspan(i * dim, dim), scratch)) continue;
    close.push_back(i);
    close_texts.push_back(texts[i]);
  }
  const std::vector<float> again =
      embed::embed_texts(*exact, close_texts, router.text_options(), options.threads, options.progress);
  for (std::size_t j = 0; j < close.size(); ++j) {
    const auto from = std::span(again).subspan(j * dim, dim);
    std::copy(from.begin(), from.end(), embeddings.subspan(close[j] * dim, dim).begin());
  }
  return static_cast<double>(close.size()) / static_cast<double>(texts.size());
}

template <class Work>
LatencyMetrics time_tier(Tier tier, const Dataset& test, std::size_t samples, Work work) {
  samples = std::min(samples, test.examples.size());
  std::vector<double> times;
  for (std::size_t i = 0; i < samples; ++i) {
    const std::string& text = test.examples[i * test.examples.size() / samples].text;
    const auto start = std::chrono::steady_clock::now();
    work(text);
    times.push_back(
        std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - start).count());
  }
  const double sum = std::accumulate(times.begin(), times.end(), 0.0);
  return {.tier = tier,
          .samples = samples,
          .mean_us = times.empty() ? 0 : sum / static_cast<double>(times.size()),
          .p50_us = percentile(times, 0.5),
          .p99_us = percentile(times, 0.99)};
}

std::vector<LatencyMetrics> time_tiers(const Router& router, const Dataset& test,
                                       const EvaluationOptions& options) {
  std::vector<LatencyMetrics> out;
  if (options.latency_samples == 0 || router.load_stats().utterances == 0) return out;
  DecideScratch scratch;
  const auto explain = [&](Tier tier) {
    return [&, tier](const std::string& text) { (void)router.explain(text, scratch, tier, 0, 0); };
  };
  if (router.cache_stats().capacity != 0) {
    const auto ask = [&](const std::string& text) { (void)router.decide(text, scratch); };
    (void)time_tier(Tier::kCache, test, options.latency_samples, ask);  // the first time they are remembered
    out.push_back(time_tier(Tier::kCache, test, options.latency_samples, ask));
  }
  if (router.static_status().ready) {
    (void)time_tier(Tier::kStatic, test, 5, explain(Tier::kStatic));
    out.push_back(time_tier(Tier::kStatic, test, options.latency_samples, explain(Tier::kStatic)));
  }
  (void)time_tier(Tier::kEncoder, test, 5, explain(Tier::kEncoder));
  out.push_back(time_tier(Tier::kEncoder, test, options.latency_samples, explain(Tier::kEncoder)));
  return out;
}

PrecisionAgreement compare(const embed::Model& model, const embed::Model& reference,
                           std::span<const float> embeddings, std::span<const float> reference_embeddings,
                           std::span<const Judgement> judgements,
                           std::span<const Judgement> reference_judgements) {
  PrecisionAgreement out{.precision = model.precision(), .reference = reference.precision(), .min_cosine = 1};
  const std::size_t n = judgements.size();
  if (n == 0) return out;
  const std::size_t dim = model.dim();
  std::size_t route = 0, decision = 0;
  for (std::size_t i = 0; i < n; ++i) {
    route += judgements[i].best == reference_judgements[i].best ? 1U : 0U;
    decision += judgements[i].decided == reference_judgements[i].decided ? 1U : 0U;
    double dot = 0, a2 = 0, b2 = 0;
    for (std::size_t j = i * dim; j < (i + 1) * dim; ++j) {
      const double a = embeddings[j], b = reference_embeddings[j];
      dot += a * b;
      a2 += a * a;
      b2 += b * b;
    }
    const double cosine = dot / std::sqrt(std::max(a2 * b2, 1e-30));
    out.min_cosine = std::min(out.min_cosine, cosine);
    out.mean_cosine += cosine / static_cast<double>(n);
  }
  out.same_route = ratio(route, n, 1);
  out.same_decision = ratio(decision, n, 1);
  return out;
}

}  // namespace

Result<Evaluation> evaluate(const Router& router, const embed::Model& model, const Dataset& test,
                            const EvaluationOptions& options) {
  const Result<std::vector<std::uint32_t>> labels = labels_of(router, test);
  if (!labels) return std::unexpected(labels.error());
  std::vector<std::string> texts, names;
  for (const Example& example : test.examples) texts.push_back(example.text);
  for (const RouteInfo& route : router.routes()) names.push_back(route.name);

  Evaluation out;
  out.test_name = test.name;
  out.routes = names.size();
  out.utterances = router.load_stats().utterances;
  std::vector<float> embeddings =
      embed::embed_texts(model, texts, router.text_options(), options.threads, options.progress);
  out.rechecked = recheck(router, texts, embeddings, options);
  std::vector<Judgement> judgements = judge_embeddings(router, test, *labels, embeddings, model.dim());
  out.metrics = compute_metrics(judgements, names);
  out.static_tier = evaluate_static(router, test, judgements, options.progress);
  out.latency = time_tiers(router, test, options);
  if (options.reference != nullptr && options.reference_router != nullptr) {
    const embed::Model& reference = *options.reference;
    const std::vector<float> other =
        embed::embed_texts(reference, texts, router.text_options(), options.threads, options.progress);
    const std::vector<Judgement> theirs =
        judge_embeddings(*options.reference_router, test, *labels, other, reference.dim());
    out.precision = compare(model, reference, embeddings, other, judgements, theirs);
  }
  out.judgements = std::move(judgements);
  return out;
}

config::Config config_of_examples(const Dataset& dataset, std::span<const std::size_t> chosen,
                                  config::Config base) {
  base.routes.clear();
  std::unordered_map<std::string_view, std::size_t> index;
  const auto add = [&](const Example& example) {
    const config::Utterance utterance{.text = example.text,
                                      .position = {.file = dataset.name, .line = example.line}};
    if (is_out_of_scope_label(example.label) || example.label == base.default_route) {
      base.head.out_of_scope.push_back(utterance);
      return;
    }
    const auto [found, is_new] = index.try_emplace(example.label, base.routes.size());
    if (is_new) {
      config::Route& route = base.routes.emplace_back();
      route.name = route.model = example.label;
      route.position = utterance.position;
    }
    base.routes[found->second].utterances.push_back(utterance);
  };
  if (chosen.empty()) {
    for (const Example& example : dataset.examples) add(example);
  } else {
    for (const std::size_t i : chosen) add(dataset.examples[i]);
  }
  // Rules name routes that are no longer there.
  base.rules.clear();
  return base;
}

}  // namespace waybill::route
