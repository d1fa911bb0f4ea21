#include "api/job_performer.h"

#include <memory>
#include <string>
#include <utility>

#include "api/error_answer.h"
#include "api/gateway.h"
#include "api/job_exchange.h"
#include "base/json_writer.h"
#include "upstream/json_scanner.h"

namespace waybill::api {
namespace {

// Writes down that the call begins.
class Gate final : public upstream::CallGate {
 public:
  explicit Gate(jobs::Performance& performance) : performance_(performance) {}
  http::Task<Status> open() override {
    Status begun = co_await performance_.call_begins();
    opened_ = begun.has_value();
    co_return begun;
  }
  [[nodiscard]] bool opened() const noexcept { return opened_; }

 private:
  jobs::Performance& performance_;
  bool opened_ = false;
};

bool is_number(std::string_view text) noexcept {
  upstream::JsonScanner json(text);
  return json.peek() == upstream::JsonKind::kNumber && !json.skip().empty() && json.at_end();
}

// {"request_id", "model", "target", "attempts", ...}: the x-waybill-* headers, and what was used.
std::string facts_of(std::string_view headers, const telemetry::Record& record) {
  constexpr std::string_view kPrefix = "x-waybill-";
  std::string facts;
  JsonWriter json(facts);
  json.begin_object();
  bool cost = false;
  for (std::size_t at = 0; at < headers.size();) {
    const std::size_t end = headers.find("\r\n", at);
    const std::string_view line = headers.substr(at, end - at);
    at = end == std::string_view::npos ? headers.size() : end + 2;
    const std::size_t colon = line.find(": ");
    if (!line.starts_with(kPrefix) || colon == std::string_view::npos) continue;
    std::string name(line.substr(kPrefix.size(), colon - kPrefix.size()));
    for (char& c : name) {
      if (c == '-') c = '_';
    }
    cost = cost || name == "cost_usd";
    const std::string_view value = line.substr(colon + 2);
    json.key(name);
    if (is_number(value)) {
      json.raw(value);
    } else {
      json.string(value);
    }
  }
  if (!cost && record.cost_nano_usd > 0)
    json.key("cost_usd").number(static_cast<double>(record.cost_nano_usd) * 1e-9, 9);
  json.key("prompt_tokens").integer(record.prompt_tokens);
  json.key("completion_tokens").integer(record.completion_tokens).end_object();
  return facts;
}

}  // namespace

http::Task<jobs::Performed> JobPerformer::perform(jobs::Performance& performance) {
  const store::Job& job = performance.job();
  const std::shared_ptr<const config::JobQueue> queue = gateway_.jobs()->queue(job.queue);
  const config::JobLane lane = queue ? queue->lane : config::JobLane::kBatch;
  const std::size_t most = gateway_.deployment()->config().gateway.max_answer_bytes;
  JobExchange exchange(performance, lane, most);
  Gate gate(performance);
  JobCall call = {.gate = gate,
                  .caller = job.caller,
                  .idempotency_key = exchange.idempotency_key(),
                  .deadline = performance.deadline()};
  Status status = co_await gateway_.perform(exchange, call);
  jobs::Performed performed;
  performed.called = gate.opened();
  http::Response& response = exchange.response;
  performed.status = response.status;
  performed.content_type = response.content_type;
  performed.facts = facts_of(response.headers, call.record);
  performed.body = exchange.body_begun() ? std::move(exchange.streamed()) : std::move(response.body);
  if (exchange.too_large()) {
    status = fail(ErrorCode::kUnsupported, "The stream is larger than gateway.max_answer_bytes.");
  } else if (!status) {
    performed.retry_after = status.error().retry_after;
  }
  if (!status && (exchange.body_begun() || exchange.too_large())) {
    // The head said that all was well.
    const Problem problem = problem_of(status.error().code);
    write_error(status.error(), problem, response);
    performed.status = problem.status;
    performed.content_type = response.content_type;
    performed.body = std::move(response.body);
  }
  if (exchange.on_sent) std::exchange(exchange.on_sent, nullptr)(true);
  co_return performed;
}

}  // namespace waybill::api
