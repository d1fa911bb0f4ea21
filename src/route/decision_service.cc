#include "route/decision_service.h"

#include <algorithm>
#include <thread>
#include <utility>

#include "base/check.h"
#include "base/gate.h"
#include "embed/text.h"
#include "route/decision_call.h"
#include "route/decision_function.h"
#include "route/decision_job.h"

namespace waybill::route {
namespace {

// Of the threads that call. Holds nothing of a router from one call to the next.
DecideScratch& thread_scratch() {
  static thread_local DecideScratch scratch;
  return scratch;
}

embed::BatcherOptions with_threads(embed::BatcherOptions options) {
  if (options.threads == 0) options.threads = std::max(1U, std::thread::hardware_concurrency());
  return options;
}

Error error_of(ErrorCode code, std::string message) {
  return {.code = code, .message = std::move(message), .field = {}};
}

Error texts_are_busy(const WorkerPool& texts) {
  Error error = error_of(ErrorCode::kOverloaded,
                         "too many long prompts and batches wait to be read; send them again later");
  error.retry_after = texts.predicted_wait();
  return error;
}

Error shutting_down() { return error_of(ErrorCode::kShuttingDown, "the router is shutting down"); }

}  // namespace

struct DecisionService::Impl final : JobHost {
  Impl(const Router& r, const embed::Model& m, WorkerPool& t, const Clock& c, const DecisionServiceOptions& o)
      : router(r),
        model(m),
        texts(t),
        clock(c),
        options(o),
        batcher_options(with_threads(o.batcher)),
        function(r, m, batcher_options.threads, c, o.observer),
        batcher(function, batcher_options, c) {}

  // Why a call need not be looked at.
  [[nodiscard]] std::optional<Error> refused_at_once(const DecisionCall& call, TimePoint now) const;
  [[nodiscard]] std::optional<Decision> decide_cheaply(const DecisionCall& call, bool explain,
                                                       DecideScratch& scratch);
  // Empty when the prompt in `scratch` has been queued; `state` then belongs to the one that answers it.
  [[nodiscard]] std::optional<Error> submit(Call& state, const DecisionCall& call,
                                            const DecideScratch& scratch);
  // What the static tier makes of a prompt that the queue refused, where it may step in.
  [[nodiscard]] std::optional<Decision> degrade(const DecisionCall& call, bool explain, const Error& refusal,
                                                DecideScratch& scratch);
  // The whole road on this thread. Empty when `state` has been queued; else the decision or refusal.
  [[nodiscard]] std::optional<Result<Decision>> begin(Call& state, const DecisionCall& call);
  // The same on a text thread. Empty when it has been posted.
  [[nodiscard]] std::optional<Error> begin_on_text_thread(Call& state, const DecisionCall& call);

  void stop();

  std::unexpected<Error> refuse(Error error) {
    pool->count(error.code);
    return std::unexpected(std::move(error));
  }

  // JobHost
  std::optional<Result<DecisionAnswer>> begin_member(DecisionJob& job, std::uint32_t member,
                                                     const DecisionCall& call, std::size_t& tokens) override;
  bool resume(WorkerPool::Work&& work) override { return texts.resume(std::move(work)); }
  void job_ended() noexcept override { gate.leave(); }

  const Router& router;
  const embed::Model& model;
  WorkerPool& texts;
  const Clock& clock;
  const DecisionServiceOptions options;
  const embed::BatcherOptions batcher_options;
  InlineExecutor compute_here;  // the batcher's answers stay on its threads
  // Shared: answers may be with executors when the service is gone.
  const std::shared_ptr<CallPool> pool = std::make_shared<CallPool>(clock);

  Gate gate;  // of text work that has been accepted

  DecisionFunction function;
  embed::Batcher batcher;  // last: its threads use the rest
};

DecisionService::DecisionService(const Router& router, const embed::Model& model, WorkerPool& texts,
                                 const Clock& clock, const DecisionServiceOptions& options)
    : impl_(std::make_unique<Impl>(router, model, texts, clock, options)) {}

DecisionService::~DecisionService() { impl_->stop(); }

void DecisionService::stop() { impl_->stop(); }

embed::Batcher& DecisionService::batcher() noexcept { return impl_->batcher; }

Duration DecisionService::predicted_wait(std::size_t tokens) const noexcept {
  return impl_->batcher.predicted_wait(tokens);
}

std::optional<Result<DecisionAnswer>> DecisionService::decide(const DecisionCall& call, Completion&& done) {
  WAYBILL_CHECK(call.executor != nullptr && done != nullptr);
  const TimePoint arrived = impl_->clock.now();
  if (auto error = impl_->refused_at_once(call, arrived)) return impl_->refuse(*std::move(error));
  CallPool::Held state(*impl_->pool);
  state->timing.arrived = arrived;
  state->done = std::move(done);
  if (call.prompt.size() > impl_->options.long_prompt) {
    std::optional<Error> error = impl_->begin_on_text_thread(*state, call);
    if (!error) return state.passed_on();
    done = std::move(state->done);
    return impl_->refuse(*std::move(error));
  }
  std::optional<Result<Decision>> decision = impl_->begin(*state, call);
  if (!decision) return state.passed_on();
  done = std::move(state->done);
  if (!*decision) return impl_->refuse(std::move(decision->error()));
  return DecisionAnswer{.decision = **decision, .timing = state->timing};
}

std::optional<Result<ExplanationAnswer>> DecisionService::explain(const DecisionCall& call,
                                                                  const ExplainOptions& options,
                                                                  ExplanationCompletion&& done) {
  WAYBILL_CHECK(call.executor != nullptr && done != nullptr);
  const TimePoint arrived = impl_->clock.now();
  if (auto error = impl_->refused_at_once(call, arrived)) return impl_->refuse(*std::move(error));
  CallPool::Held state(*impl_->pool);
  state->timing.arrived = arrived;
  state->explained = std::move(done);
  state->explain = options;
  std::optional<Error> error;
  if (call.prompt.size() > impl_->options.long_prompt) {
    error = impl_->begin_on_text_thread(*state, call);
    if (!error) return state.passed_on();
  } else {
    std::optional<Result<Decision>> decision = impl_->begin(*state, call);
    if (!decision) return state.passed_on();
    if (*decision) {
      done = std::move(state->explained);
      return ExplanationAnswer{.explanation = {.decision = **decision}, .timing = state->timing};
    }
    error = std::move(decision->error());
  }
  done = std::move(state->explained);
  return impl_->refuse(*std::move(error));
}

std::optional<Result<std::vector<DecisionAnswer>>> DecisionService::decide_all(
    std::span<const std::string_view> prompts, const CallOptions& call, BatchCompletion&& done) {
  WAYBILL_CHECK(call.executor != nullptr && done != nullptr);
  const DecisionCall as_one{.prompt = {},
                            .deadline = call.deadline,
                            .executor = call.executor,
                            .cancelled = call.cancelled,
                            .allow_degraded = call.allow_degraded};
  if (auto error = impl_->refused_at_once(as_one, impl_->clock.now()))
    return impl_->refuse(*std::move(error));
  if (prompts.empty()) return std::vector<DecisionAnswer>{};
  if (!impl_->gate.enter()) return impl_->refuse(shutting_down());
  const std::size_t in_flight = 2 * impl_->batcher_options.threads * impl_->batcher_options.max_batch_tokens;
  auto job = std::make_unique<DecisionJob>(*impl_, impl_->pool, prompts, call, std::move(done), in_flight);
  if (impl_->texts.post([raw = job.get()] { raw->pump(); })) {
    (void)job.release();  // owns itself
    return std::nullopt;
  }
  done = job->take_done();
  impl_->gate.leave();
  return impl_->refuse(texts_are_busy(impl_->texts));
}

DecisionStats DecisionService::stats() const {
  const Impl& s = *impl_;
  const auto value = [](const std::atomic<std::uint64_t>& count) {
    return count.load(std::memory_order_relaxed);
  };
  const CallPool::Counts& counts = s.pool->counts;
  return {.batcher = s.batcher.stats(),
          .decisions = s.router.counts(),
          .cache = s.router.cache_stats(),
          .predicted_wait = predicted_wait(),
          .refused = value(counts.refused),
          .degraded = value(counts.degraded),
          .expired = value(counts.expired),
          .cancelled = value(counts.cancelled),
          .stopped = value(counts.stopped),
          .failed = value(counts.failed),
          .completions_threw = value(counts.threw),
          .waiting_texts = s.texts.waiting()};
}

std::optional<Error> DecisionService::Impl::refused_at_once(const DecisionCall& call, TimePoint now) const {
  if (gate.closed()) return shutting_down();
  if (call.cancelled != nullptr && call.cancelled->load(std::memory_order_acquire))
    return error_of(ErrorCode::kCancelled, "cancelled before it was read");
  if (call.deadline <= now)
    return error_of(ErrorCode::kDeadlineExceeded, "the deadline passed before the prompt was read");
  return std::nullopt;
}

std::optional<Decision> DecisionService::Impl::decide_cheaply(const DecisionCall& call, bool explain,
                                                              DecideScratch& scratch) {
  if (!explain) return router.decide_cheaply(call.prompt, scratch);
  scratch.ids.clear();
  scratch.offsets.assign(1, 0);
  embed::tokenize(model.tokenizer(), model.config(), call.prompt, router.text_options(), scratch.ids,
                  scratch.offsets);
  return std::nullopt;
}

std::optional<Error> DecisionService::Impl::submit(Call& state, const DecisionCall& call,
                                                   const DecideScratch& scratch) {
  const std::size_t parts = scratch.offsets.size() - 1;
  state.prompt = call.prompt;
  state.executor = call.executor;
  state.parts.resize(parts);
  state.to_compute.store(static_cast<std::uint32_t>(parts), std::memory_order_relaxed);
  state.to_answer.store(static_cast<std::uint32_t>(parts), std::memory_order_relaxed);
  const auto item = [&](std::size_t i) {
    Part& part = state.parts[i];
    part = {.call = &state, .index = static_cast<std::uint32_t>(i)};
    return embed::Batcher::Item{
        .ids =
            std::span(scratch.ids).subspan(scratch.offsets[i], scratch.offsets[i + 1] - scratch.offsets[i]),
        .deadline = call.deadline,
        .max_wait = options.max_wait,
        .executor = &compute_here,
        .cancelled = call.cancelled,
        .context = &part,
        .done = [&part](Result<std::span<const float>> embedding, const embed::BatchTiming& timing) {
          part.call->pool->part_answered(part, embedding ? nullptr : &embedding.error(), timing);
        }};
  };
  Status status;
  if (parts == 1) {
    status = batcher.submit(item(0));
  } else {
    state.ids = scratch.ids;
    state.offsets = scratch.offsets;
    state.windows.resize(parts * model.dim());
    std::vector<embed::Batcher::Item> items;
    items.reserve(parts);
    for (std::size_t i = 0; i < parts; ++i) items.push_back(item(i));
    status = batcher.submit(std::span(items));
  }
  if (status) return std::nullopt;
  return std::move(status.error());
}

std::optional<Decision> DecisionService::Impl::degrade(const DecisionCall& call, bool explain,
                                                       const Error& refusal, DecideScratch& scratch) {
  if (refusal.code != ErrorCode::kOverloaded || !call.allow_degraded) return std::nullopt;
  const std::optional<Decision> decision =
      explain ? router.decide_degraded(call.prompt, scratch) : router.decide_degraded(scratch);
  if (decision) pool->counts.degraded.fetch_add(1, std::memory_order_relaxed);
  return decision;
}

std::optional<Result<Decision>> DecisionService::Impl::begin(Call& state, const DecisionCall& call) {
  DecideScratch& scratch = thread_scratch();
  const bool explain = state.explained != nullptr;
  std::optional<Decision> decision = decide_cheaply(call, explain, scratch);
  if (!decision) {
    state.timing.tokenized = clock.now();
    state.timing.tokens = static_cast<std::uint32_t>(scratch.ids.size());
    std::optional<Error> refusal = submit(state, call, scratch);
    if (!refusal) return std::nullopt;
    decision = degrade(call, explain, *refusal, scratch);
    if (!decision) return std::unexpected(*std::move(refusal));
  }
  state.timing.decided = clock.now();
  return *decision;
}

std::optional<Error> DecisionService::Impl::begin_on_text_thread(Call& state, const DecisionCall& call) {
  if (!gate.enter()) return shutting_down();
  state.prompt = call.prompt;
  state.executor = call.executor;
  const bool posted = texts.post([this, &state, call] {
    std::optional<Result<Decision>> decision;
    if (auto error = refused_at_once(call, clock.now())) {
      decision = std::unexpected(*std::move(error));
    } else {
      decision = begin(state, call);
    }
    if (decision) pool->answer(state, *std::move(decision));
    gate.leave();
  });
  if (posted) return std::nullopt;
  gate.leave();
  return texts_are_busy(texts);
}

std::optional<Result<DecisionAnswer>> DecisionService::Impl::begin_member(DecisionJob& job,
                                                                          std::uint32_t member,
                                                                          const DecisionCall& call,
                                                                          std::size_t& tokens) {
  const TimePoint now = clock.now();
  if (auto error = refused_at_once(call, now)) return std::unexpected(*std::move(error));
  CallPool::Held state(*pool);
  state->timing.arrived = now;
  state->member = member;
  state->job = &job;
  const std::optional<Result<Decision>> decision = begin(*state, call);
  tokens = thread_scratch().ids.size();
  if (!decision) return state.passed_on();
  if (!*decision) return std::unexpected(decision->error());
  return DecisionAnswer{.decision = **decision, .timing = state->timing};
}

void DecisionService::Impl::stop() {
  gate.close();
  batcher.stop();
  gate.wait();
}

}  // namespace waybill::route
