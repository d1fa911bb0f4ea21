// Loading a router: collect, embed, fit; the static tier at the side.
#include <algorithm>
#include <chrono>
#include <utility>

#include <fmt/format.h>

#include "base/process.h"
#include "route/fit.h"
#include "route/router.h"
#include "route/router_state.h"

namespace waybill::route {
namespace {

HeadOptions head_options(const config::Config& config, const RouterOptions& router) {
  HeadOptions options;
  options.scoring = config.head.scoring;
  options.aggregation = config.head.aggregation;
  options.top_k = config.head.top_k;
  options.reject_quantile = config.head.reject_quantile;
  options.threads = router.threads;
  options.progress = router.progress;
  for (const config::Route& route : config.routes) {
    options.thresholds.push_back(route.threshold ? std::optional(static_cast<float>(*route.threshold))
                                                 : std::nullopt);
  }
  return options;
}

double seconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

}  // namespace

Result<std::unique_ptr<Router>> Router::load(const config::Config& config, const embed::Model& model,
                                             const RouterOptions& options) {
  auto impl = std::make_unique<Impl>(model, options.exact_model,
                                     config.tiers.cache.enabled ? config.tiers.cache.max_bytes : 0);
  if (Status status = impl->build(config, options); !status)
    return std::unexpected(std::move(status.error()));
  return std::unique_ptr<Router>(new Router(std::move(impl)));
}

Status Router::Impl::build(const config::Config& config, const RouterOptions& options) {
  Result<RuleSet> compiled = RuleSet::compile(config);
  if (!compiled) return std::unexpected(std::move(compiled.error()));
  rules = std::move(*compiled);

  Dataset examples;
  if (options.use_fit) {
    Result<Dataset> loaded = load_fit(config);
    if (!loaded) return std::unexpected(std::move(loaded.error()));
    examples = std::move(*loaded);
  }
  text = route::text_options(config);
  std::size_t ignored = 0;
  training = collect_training_set(config, examples, ignored);
  stats.utterances = training.utterances();
  stats.out_of_scope = training.out_of_scope();
  stats.fit_examples = examples.examples.size() - ignored;
  if (ignored != 0) {
    stats.notes.push_back(
        fmt::format("{} of the examples in {} name no route of this configuration; run waybill fit again",
                    ignored, fit_file(config).string()));
  }
  describe_routes(config);
  if (training.utterances() == 0) return {};

  EmbedReport embedded = embed_training_set(training, reference(), text, options.threads,
                                            config.cache_folder / "utterances.bin", options.progress);
  stats.embedded = embedded.embedded;
  stats.embed_seconds = embedded.seconds;
  stats.notes.insert(stats.notes.end(), embedded.notes.begin(), embedded.notes.end());

  const HeadOptions head_settings = head_options(config, options);
  Result<FittedHead> fitted = fit_or_load(training.head_data(), head_settings, config.cache_folder);
  if (!fitted) return std::unexpected(std::move(fitted.error()));
  stats.fit_seconds = fitted->seconds;
  stats.head_from_cache = fitted->from_cache;
  if (!fitted->note.empty()) stats.notes.push_back(fitted->note);
  held_out = std::move(fitted->held_out);
  head.emplace(std::move(fitted->head));
  stats.leave_one_out_accuracy = head->statistics().accuracy;
  for (std::size_t i = 0; i < routes.size(); ++i) routes[i].threshold = head->thresholds()[i];
  fit_guard(config, options);
  // It embedded the utterances, once for all; close calls are few.
  if (exact != nullptr && stats.embedded != 0) exact->drop_pages();
  start_static(config, options, head_settings);
  return {};
}

// Utterances from all over the set, embedded by the fast model too.
void Router::Impl::fit_guard(const config::Config& config, const RouterOptions& options) {
  if (exact == nullptr) return;
  TrainingSet sample;
  std::vector<float> embeddings;
  const std::size_t count = std::min(training.utterances(), RecheckGuard::kMaxSamples);
  for (std::size_t i = 0; i < count; ++i) {
    const std::size_t which = i * training.utterances() / count;
    sample.texts.push_back(training.texts[which]);
    const auto row = std::span(training.embeddings).subspan(which * training.dim, training.dim);
    embeddings.insert(embeddings.end(), row.begin(), row.end());
  }
  const EmbedReport embedded = embed_training_set(sample, model, text, options.threads,
                                                  config.cache_folder / "utterances.bin", options.progress);
  stats.embedded += embedded.embedded;
  stats.embed_seconds += embedded.seconds;
  guard = RecheckGuard::fit(*head, embeddings, sample.embeddings);
}

void Router::Impl::describe_routes(const config::Config& config) {
  default_name = config.default_route;
  default_model = config.default_model;
  for (std::uint32_t i = 0; i < config.routes.size(); ++i) {
    const config::Route& route = config.routes[i];
    RouteInfo& info = routes.emplace_back();
    info.name = route.name;
    info.model = route.model.empty() ? route.name : route.model;
    info.description = route.description;
    info.utterances = static_cast<std::size_t>(std::count(training.labels.begin(), training.labels.end(), i));
    info.metadata.assign(route.metadata.begin(), route.metadata.end());
    if (route.name != default_name) continue;
    default_index = i;
    if (default_model.empty()) default_model = info.model;
  }
  if (default_model.empty()) default_model = default_name;
}

void Router::Impl::start_static(const config::Config& config, const RouterOptions& options,
                                HeadOptions head_settings) {
  if (!config.tiers.static_tier.enabled) return;
  degrades = config.tiers.static_tier.when_overloaded;
  static_slot.enable();
  const auto start = std::chrono::steady_clock::now();
  const auto make = [this, start, agreement = config.tiers.static_tier.agreement,
                     folder = config.cache_folder](Result<embed::StaticTable> table, const HeadOptions& fit,
                                                   FitMode mode) {
    if (!table) {
      static_slot.set(std::unexpected(std::move(table.error())), seconds_since(start));
      return true;
    }
    auto tier = StaticTier::make(std::move(*table),
                                 {reference(), text, training, held_out, fit, agreement, folder}, mode);
    if (!tier && mode == FitMode::kCachedOnly) return false;
    static_slot.set(std::move(tier), seconds_since(start));
    return true;
  };
  if (options.wait_for_static) {
    make(embed::StaticTable::load_or_distill(reference(), options.threads, options.progress), head_settings,
         FitMode::kFit);
    return;
  }
  // What a start before this one has left is taken at once; everything else is made at the side.
  if (Result<embed::StaticTable> cached = embed::StaticTable::load(reference())) {
    if (make(std::move(cached), head_settings, FitMode::kCachedOnly)) return;
  }
  head_settings.progress = {};
  static_slot.run([this, make, head_settings = std::move(head_settings),
                   threads = options.threads](const std::stop_token& stop) mutable {
    run_at_low_priority();
    head_settings.stop = stop;
    make(embed::StaticTable::load_or_distill(reference(), threads, {}, nullptr, stop), head_settings,
         FitMode::kFit);
    if (exact != nullptr) exact->drop_pages();
    release_free_memory();
  });
}

}  // namespace waybill::route
