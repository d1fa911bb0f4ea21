// Whether a call must go to a provider, or has an answer already: by its Idempotency-Key, by the response
// cache, or because an equal call is under way.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "api/call.h"
#include "api/caller_pass.h"
#include "api/durable_answer.h"
#include "api/model_choice.h"
#include "http/cancellation.h"
#include "upstream/call.h"

namespace waybill::api {

class Gateway;

// One call on its way to an answer: first to what its Idempotency-Key had (in memory, then in the store of
// jobs, where there is one), then to the cache, then under the caller's limits to a provider. What is not
// asked for is passed by. On its loop.
class ReusedCall {
 public:
  ReusedCall(Call& call, const upstream::ChatRequest& request, const ModelChoice& choice)
      : call_(call), request_(request), choice_(choice) {}
  ReusedCall(const ReusedCall&) = delete;
  ReusedCall& operator=(const ReusedCall&) = delete;

  // Reads the headers. kInvalidInput: the key is too long.
  [[nodiscard]] Status prepare(upstream::Operation operation);
  void hang_up() { client_.request(); }
  // Of the call to the provider: nobody waits for it.
  [[nodiscard]] http::Cancellation& cancellation() noexcept {
    if (cache_key_) return cached_;
    return idempotency_key_ ? keyed_ : client_;
  }

  // `asked` has cancellation().
  [[nodiscard]] http::Task<upstream::Outcome> run(Gateway& gateway, const upstream::Call& asked,
                                                  upstream::Reply& reply);
  // x-waybill-cache, Idempotent-Replayed; once it is known how the answer comes.
  void add_headers(http::Response& response) const;

 private:
  class Keyed;
  class Cached;
  http::Task<upstream::Outcome> look_into_store(upstream::Reply& reply);
  http::Task<upstream::Outcome> look_into_cache(upstream::Reply& reply);
  void tell_refusal(upstream::Outcome& outcome) const;
  http::Task<upstream::Outcome> call_provider(upstream::Reply& reply);

  Call& call_;
  const upstream::ChatRequest& request_;
  const ModelChoice& choice_;
  std::optional<Hash128> idempotency_key_, cache_key_;
  Hash128 payload_;
  Duration cache_lifetime_{};
  http::Cancellation client_, keyed_, cached_;  // each is requested when those before it wait no more

  Pass pass_;
  std::string_view cache_result_;  // a literal; empty: the cache has no part in it
  bool replayed_ = false;
  KeyRefusal refusal_;

  // While it runs:
  Gateway* gateway_ = nullptr;
  const upstream::Call* asked_ = nullptr;
};

}  // namespace waybill::api
