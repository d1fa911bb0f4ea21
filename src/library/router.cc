#include "route/router.h"

#include <exception>
#include <mutex>
#include <new>
#include <utility>

#include <waybill/router.h>

#include "config/config.h"
#include "embed/decision_models.h"
#include "embed/text.h"
#include "route/decide_batch.h"
#include "route/training_set.h"

namespace waybill {
namespace {

// Scratch memory lent to the calls that are under way; as many as there have ever been calls at once.
class ScratchPool {
 public:
  using Scratch = std::unique_ptr<::waybill::route::DecideScratch>;

  Scratch take() {
    {
      const std::lock_guard lock(mutex_);
      if (!free_.empty()) {
        Scratch scratch = std::move(free_.back());
        free_.pop_back();
        return scratch;
      }
    }
    return std::make_unique<::waybill::route::DecideScratch>();
  }

  void give_back(Scratch scratch) {
    const std::lock_guard lock(mutex_);
    free_.push_back(std::move(scratch));
  }

 private:
  std::mutex mutex_;
  std::vector<Scratch> free_;
};

class Lent {
 public:
  explicit Lent(ScratchPool& pool) : pool_(pool), scratch_(pool.take()) {}
  ~Lent() { pool_.give_back(std::move(scratch_)); }
  Lent(const Lent&) = delete;
  Lent& operator=(const Lent&) = delete;
  [[nodiscard]] ::waybill::route::DecideScratch& get() const { return *scratch_; }

 private:
  ScratchPool& pool_;
  ScratchPool::Scratch scratch_;
};

// The boundary: what is thrown inside (out of memory, a bug) comes out as an Error.
template <class Work>
auto guarded(Work&& work) noexcept -> decltype(work()) {
  try {
    return work();
  } catch (const std::bad_alloc&) {
    return std::unexpected(Error{ErrorCode::kInternal, "out of memory", {}});
  } catch (const std::exception& error) {
    return std::unexpected(Error{ErrorCode::kInternal, error.what(), {}});
  } catch (...) {
    return std::unexpected(Error{ErrorCode::kInternal, "an unknown failure", {}});
  }
}

Decision public_decision(const ::waybill::route::Decision& decision) {
  return {.route = std::string(decision.route),
          .model = std::string(decision.model),
          .score = static_cast<double>(decision.score),
          .tier = static_cast<DecidedBy>(decision.tier),
          .degraded = decision.degraded,
          .reason = std::string(to_string(decision.reason))};
}

static_assert(static_cast<int>(DecidedBy::kDefault) == static_cast<int>(::waybill::route::Tier::kDefault));

}  // namespace

struct Router::State {
  config::Config config;
  unsigned threads = 0;
  embed::DecisionModels models;  // the router refers to them
  embed::EmbeddingModel embeddings;
  std::unique_ptr<::waybill::route::Router> router;
  std::vector<RouteInfo> routes;
  ScratchPool scratch;
};

Router::Router(std::unique_ptr<State> state) noexcept : state_(std::move(state)) {}
Router::Router(Router&&) noexcept = default;
Router& Router::operator=(Router&&) noexcept = default;
Router::~Router() = default;

namespace {

Result<embed::ModelOptions> model_options(const config::Config& config, const RouterOptions& options) {
  embed::ModelOptions out;
  out.folder = options.model_folder.empty() ? config.encoder.model : options.model_folder;
  out.use_cache_file = config.encoder.cache_file;
  const std::string& precision = options.precision.empty() ? config.encoder.precision : options.precision;
  if (precision != "auto") {
    out.precision = embed::parse_precision(precision);
    if (!out.precision) {
      return fail(ErrorCode::kInvalidInput,
                  "there is no precision \"" + precision + "\"; it is one of f32, bf16, int16, int8",
                  "precision");
    }
  }
  return out;
}

}  // namespace

std::expected<Router, Error> Router::load(const std::filesystem::path& config_file,
                                          const RouterOptions& options) {
  return guarded([&]() -> std::expected<Router, Error> {
    auto state = std::make_unique<State>();
    auto config = config::load(config_file);
    if (!config) return fail(ErrorCode::kInvalidInput, config.error().text());
    state->config = std::move(*config);
    state->threads = options.threads != 0 ? options.threads : state->config.encoder.threads;

    const auto wanted = model_options(state->config, options);
    if (!wanted) return std::unexpected(wanted.error());
    auto models = embed::load_decision_models(*wanted);
    if (!models) return std::unexpected(models.error());
    state->models = std::move(*models);
    auto embeddings = embed::load_embedding_model(*wanted, state->models, state->models.notes);
    if (!embeddings) return std::unexpected(embeddings.error());
    state->embeddings = std::move(*embeddings);

    ::waybill::route::RouterOptions how;
    how.threads = state->threads;
    how.exact_model = state->models.exact.get();
    auto router = ::waybill::route::Router::load(state->config, *state->models.first, how);
    if (!router) return std::unexpected(router.error());
    state->router = std::move(*router);
    for (const auto& info : state->router->routes()) {
      state->routes.push_back({.name = info.name,
                               .model = info.model,
                               .description = info.description,
                               .threshold = static_cast<double>(info.threshold),
                               .utterances = info.utterances});
    }
    return Router(std::move(state));
  });
}

std::expected<Decision, Error> Router::route(std::string_view prompt) const {
  return guarded([&]() -> std::expected<Decision, Error> {
    const Lent scratch(state_->scratch);
    return public_decision(state_->router->decide(prompt, scratch.get()));
  });
}

std::expected<std::vector<Decision>, Error> Router::route_batch(std::span<const std::string> prompts) const {
  return guarded([&]() -> std::expected<std::vector<Decision>, Error> {
    const Lent scratch(state_->scratch);
    std::vector<Decision> decisions;
    decisions.reserve(prompts.size());
    for (const auto& decision : ::waybill::route::decide_batch(*state_->router, *state_->models.first,
                                                               prompts, state_->threads, scratch.get())) {
      decisions.push_back(public_decision(decision));
    }
    return decisions;
  });
}

std::expected<std::vector<float>, Error> Router::embed(std::string_view text) const {
  const std::string copy(text);
  return embed_batch(std::span(&copy, 1));
}

std::expected<std::vector<float>, Error> Router::embed_batch(std::span<const std::string> texts) const {
  return guarded([&]() -> std::expected<std::vector<float>, Error> {
    return embed::embed_texts(*state_->embeddings.model, texts,
                              ::waybill::route::embedding_text_options(state_->config),
                              texts.size() == 1 ? 1 : state_->threads);
  });
}

std::size_t Router::dim() const noexcept { return state_->embeddings.model->dim(); }

std::span<const RouteInfo> Router::routes() const noexcept { return state_->routes; }

}  // namespace waybill
