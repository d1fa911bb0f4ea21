// Everything that one configuration decides with.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/progress.h"
#include "base/result.h"
#include "base/worker_pool.h"
#include "config/config.h"
#include "embed/batcher.h"
#include "embed/decision_models.h"
#include "embed/embedding_service.h"
#include "embed/model.h"
#include "route/decision_service.h"
#include "route/router.h"

namespace waybill::route {

struct EngineOptions {
  const Clock* clock = nullptr;  // outlives the engine; null: the steady clock
  unsigned text_threads = 1;     // text-N: long prompts, bodies and batches are read there
  bool wait_for_static = false;  // have the static tier ready at the end of load_engine()
  Progress progress = {};
  std::function<void(const ComputedBatch&)> decision_batch_observer =
      {};  // as DecisionServiceOptions::observer
};

// The models of an encoder section. Immutable.
struct EngineModels {
  embed::DecisionModels decisions;
  embed::EmbeddingModel embeddings;
};

// One loaded configuration with its models, router, computing threads and services. A reload makes another
// and leaves this one alone; whoever has a call in flight, or uses an answer, holds it with a shared_ptr
// (engine_slot.h).
//
// Destruction answers everything that waits with kShuttingDown and joins threads, so it takes a batch's time:
// it belongs neither on an event loop nor on a thread of the engine.
class Engine {
 public:
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;
  ~Engine();  // stop()

  [[nodiscard]] const config::Config& config() const noexcept { return config_; }
  // False: only models of providers are configured, no routes, and there is no folder of the encoder. Then
  // there is no router, no service and no model below, and what asks for them must not be called.
  [[nodiscard]] bool has_encoder() const noexcept { return models_ != nullptr; }
  [[nodiscard]] std::span<const RouteInfo> routes() const noexcept;  // none without an encoder
  [[nodiscard]] const Router& router() const noexcept { return *router_; }
  // Calls are thread-safe and change nothing that a holder of a const engine could see.
  [[nodiscard]] DecisionService& decisions() const noexcept { return *decisions_; }
  [[nodiscard]] embed::EmbeddingService& embeddings() const noexcept { return *embeddings_; }
  // For what takes longer than an event loop may compute.
  [[nodiscard]] WorkerPool& texts() const noexcept { return *texts_; }
  [[nodiscard]] const embed::Model& decision_model() const noexcept { return *models_->decisions.first; }
  [[nodiscard]] const embed::Model& embedding_model() const noexcept { return *models_->embeddings.model; }
  // What clients call the embedding model: the name of its folder. Empty: there is none.
  [[nodiscard]] const std::string& model_name() const noexcept { return model_name_; }
  // What was odd about the load: "models/x is not there; using ...", cache files that could not be written.
  [[nodiscard]] const std::vector<std::string>& notes() const noexcept { return notes_; }
  [[nodiscard]] bool reused_models() const noexcept { return reused_models_; }

  // Takes no more calls and answers those that wait with kShuttingDown. Not to be called on a thread of the
  // engine.
  void stop();

 private:
  friend Result<std::unique_ptr<Engine>> load_engine(config::Config config, const EngineOptions& options,
                                                     const Engine* previous);
  explicit Engine(config::Config config) : config_(std::move(config)) {}
  Status load(const EngineOptions& options, const Engine* previous);
  Status load_models(const Engine* previous);
  void start_texts(const EngineOptions& options);
  void start_services(const EngineOptions& options, const Engine* previous);

  const config::Config config_;
  SteadyClock steady_clock_;
  std::vector<std::string> notes_;
  std::string model_name_;
  bool reused_models_ = false;
  std::filesystem::path model_folder_;
  // Shared: by the engines that one encoder section has loaded, of which the old one may still be answering.
  std::shared_ptr<const EngineModels> models_;
  std::unique_ptr<Router> router_;
  std::unique_ptr<WorkerPool> texts_;
  std::unique_ptr<DecisionService> decisions_;
  std::unique_ptr<embed::BatchFunction>
      embedding_function_;                             // null when the decisions' batcher computes embeddings
  std::unique_ptr<embed::Batcher> embedding_batcher_;  // likewise
  std::unique_ptr<embed::EmbeddingService> embeddings_;
};

// Everything is loaded before it returns (but for the static tier, which may join later). Models are shared
// with `previous` when its encoder section is the same in what concerns them (files that have changed in the
// model's folder are not looked at), so that a reload takes no second copy, and its measured speed is where
// predictions begin. Fails with a sentence, and has then changed nothing.
[[nodiscard]] Result<std::unique_ptr<Engine>> load_engine(config::Config config,
                                                          const EngineOptions& options = {},
                                                          const Engine* previous = nullptr);

}  // namespace waybill::route
