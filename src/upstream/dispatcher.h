// The one road to models: a call goes in, an outcome comes out.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>

#include "http/resolver.h"
#include "http/task.h"
#include "telemetry/program_metrics.h"
#include "upstream/attempt.h"
#include "upstream/call.h"
#include "upstream/catalog.h"
#include "upstream/retry_budget.h"

namespace waybill::upstream {

// Chooses a target, waits for a slot at its provider, calls it, and goes on to another target, and then to
// the model's fallbacks, as long as nothing of an answer has reached the client: within the call's deadline,
// the attempts and the retry budget. A failing target is called once; the same one again only where there is
// no other and trying again may help, after a backoff. Thread-safe; a call runs on its own loop.
class Dispatcher {
 public:
  explicit Dispatcher(telemetry::ProgramMetrics& metrics);

  // `catalog` is kept alive by the caller until the call has ended.
  [[nodiscard]] http::Task<Outcome> run(const Call& call, const Catalog& catalog, const Model& model,
                                        Reply& reply);

  [[nodiscard]] http::Resolver& resolver() noexcept { return resolver_; }
  // No more lookups of names; to be called while the loops still run.
  void stop() { resolver_.stop(); }

 private:
  struct Run;
  http::Task<> use(Run& run, const Model& model, bool last);
  http::Task<> try_target(Run& run, const Model& model, Choice choice);
  http::Task<bool> back_off(Run& run);
  void account(Run& run, const Target& target, const AttemptResult& result, Duration time);
  void conclude(Run& run, const Model& model);
  [[nodiscard]] std::uint64_t random() noexcept;

  telemetry::ProgramMetrics& metrics_;
  RetryBudget budget_;
  http::Resolver resolver_;
  std::atomic<std::uint64_t> random_;
};

}  // namespace waybill::upstream
