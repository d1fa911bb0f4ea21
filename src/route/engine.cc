#include "route/engine.h"

#include <algorithm>
#include <filesystem>
#include <system_error>
#include <thread>
#include <utility>

#include "embed/model_batch_function.h"
#include "embed/precision.h"
#include "route/model_location.h"
#include "route/training_set.h"

namespace waybill::route {
namespace {

constexpr unsigned kDefaultQueueTokens = 1U << 16;

bool same_models(const config::Encoder& a, const config::Encoder& b) {
  return a.model == b.model && a.precision == b.precision && a.cache_file == b.cache_file;
}

unsigned computing_threads(const config::Config& config) {
  return config.encoder.threads != 0 ? config.encoder.threads
                                     : std::max(1U, std::thread::hardware_concurrency());
}

embed::BatcherOptions batcher_options(const config::Config& config, const embed::Model& model,
                                      const embed::BatcherStats* previous) {
  embed::BatcherOptions options;
  options.threads = computing_threads(config);
  // The longest prompt must fit.
  const std::size_t longest =
      model.config().max_tokens *
      (config.encoder.long_text == config::LongText::kWindows ? config.encoder.max_windows : 1);
  const unsigned wanted = config.admission.max_queue_tokens;
  options.max_queue_tokens = std::max<std::size_t>(wanted != 0 ? wanted : kDefaultQueueTokens, longest);
  if (previous != nullptr && previous->batches != 0)
    options.initial_tokens_per_second = previous->tokens_per_second / previous->threads;
  return options;
}

// Whoever only wants a gateway needs no model on disk.
bool does_without_encoder(const config::Config& config) {
  std::error_code ignored;
  return config.routes.empty() && config.rules.empty() && !config.providers.empty() &&
         !std::filesystem::exists(locate_model(config).folder, ignored);
}

}  // namespace

Result<std::unique_ptr<Engine>> load_engine(config::Config config, const EngineOptions& options,
                                            const Engine* previous) {
  std::unique_ptr<Engine> engine(new Engine(std::move(config)));
  if (Status status = engine->load(options, previous); !status)
    return std::unexpected(std::move(status.error()));
  return engine;
}

Engine::~Engine() { stop(); }

void Engine::stop() {
  if (embedding_batcher_) embedding_batcher_->stop();
  if (decisions_) decisions_->stop();
  if (embeddings_) embeddings_->stop();
  if (texts_) texts_->stop();
}

std::span<const RouteInfo> Engine::routes() const noexcept {
  return router_ ? std::span<const RouteInfo>(router_->routes()) : std::span<const RouteInfo>();
}

Status Engine::load(const EngineOptions& options, const Engine* previous) {
  if (does_without_encoder(config_)) {
    notes_.emplace_back(
        "no encoder is loaded: there are no routes, and no model at encoder.model; nothing is decided or "
        "embedded "
        "here");
    start_texts(options);
    return {};
  }
  if (Status status = load_models(previous); !status) return status;
  RouterOptions router;
  router.threads = config_.encoder.threads;
  router.wait_for_static = options.wait_for_static;
  router.exact_model = models_->decisions.exact.get();
  router.progress = options.progress;
  Result<std::unique_ptr<Router>> loaded = Router::load(config_, decision_model(), router);
  if (!loaded) return std::unexpected(std::move(loaded.error()));
  router_ = std::move(*loaded);
  const std::vector<std::string>& notes = router_->load_stats().notes;
  notes_.insert(notes_.end(), notes.begin(), notes.end());
  start_services(options, previous);
  return {};
}

Status Engine::load_models(const Engine* previous) {
  ModelLocation location = locate_model(config_);
  if (!location.note.empty()) notes_.push_back(std::move(location.note));
  model_folder_ = std::move(location.folder);
  model_name_ = model_folder_.filename().string();
  if (model_name_.empty()) model_name_ = model_folder_.parent_path().filename().string();  // "models/x/"
  if (previous != nullptr && previous->model_folder_ == model_folder_ &&
      same_models(previous->config_.encoder, config_.encoder)) {
    models_ = previous->models_;
    reused_models_ = true;
    return {};
  }
  Result<embed::ModelOptions> options =
      model_options(model_folder_, config_.encoder.precision, config_.encoder.cache_file);
  if (!options) return std::unexpected(std::move(options.error()));
  auto models = std::make_shared<EngineModels>();
  Result<embed::DecisionModels> decisions = embed::load_decision_models(*options);
  if (!decisions) return std::unexpected(with_remedy(std::move(decisions.error()), model_folder_));
  models->decisions = std::move(*decisions);
  notes_.insert(notes_.end(), models->decisions.notes.begin(), models->decisions.notes.end());
  Result<embed::EmbeddingModel> embeddings = embed::load_embedding_model(*options, models->decisions, notes_);
  if (!embeddings) return std::unexpected(std::move(embeddings.error()));
  models->embeddings = std::move(*embeddings);
  models_ = std::move(models);
  return {};
}

void Engine::start_texts(const EngineOptions& options) {
  texts_ = std::make_unique<WorkerPool>(WorkerPoolOptions{.name = "text", .threads = options.text_threads});
}

void Engine::start_services(const EngineOptions& options, const Engine* previous) {
  const Clock& clock = options.clock != nullptr ? *options.clock : steady_clock_;
  start_texts(options);
  const bool compare = previous != nullptr && reused_models_;
  const embed::BatcherStats before = compare ? previous->decisions().stats().batcher : embed::BatcherStats{};
  DecisionServiceOptions deciding;
  deciding.batcher = batcher_options(config_, decision_model(), compare ? &before : nullptr);
  deciding.max_wait = config_.admission.max_wait;
  deciding.observer = options.decision_batch_observer;
  decisions_ = std::make_unique<DecisionService>(*router_, decision_model(), *texts_, clock, deciding);

  embed::Batcher* batcher = &decisions_->batcher();
  if (&embedding_model() != &decision_model()) {
    const embed::BatcherStats earlier =
        compare ? previous->embeddings().stats().batcher : embed::BatcherStats{};
    const embed::BatcherOptions own =
        batcher_options(config_, embedding_model(), compare ? &earlier : nullptr);
    embedding_function_ = std::make_unique<embed::ModelBatchFunction>(embedding_model(), own.threads);
    embedding_batcher_ = std::make_unique<embed::Batcher>(*embedding_function_, own, clock);
    batcher = embedding_batcher_.get();
  }
  embed::EmbeddingServiceOptions embedding;
  embedding.text = embedding_text_options(config_);
  embedding.max_wait = config_.admission.max_wait;
  embedding.max_tokens_in_flight = 2 * computing_threads(config_) * deciding.batcher.max_batch_tokens;
  embeddings_ =
      std::make_unique<embed::EmbeddingService>(embedding_model(), *batcher, *texts_, clock, embedding);
}

}  // namespace waybill::route
