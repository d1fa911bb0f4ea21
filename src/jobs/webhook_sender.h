// Tells webhooks that jobs have ended.
#pragma once

#include <functional>
#include <memory>

#include "base/clock.h"
#include "base/result.h"
#include "config/jobs_config.h"
#include "http/event_loop.h"
#include "jobs/service.h"
#include "jobs/webhook_event.h"
#include "telemetry/telemetry.h"

namespace waybill::jobs {

// Takes the deliveries that are due from the store and makes them, all on one loop. Each is made at least
// once: one that was made, and could not be written down as made, is made again.
class WebhookSender {
 public:
  // The job as its receiver is to be told of it, with its result where that is not null. On a reader's
  // thread.
  using Tell = std::function<WebhookContents(const store::Job&, const store::JobResult*)>;
  // Of a result that is sent along; a larger one is to be fetched.
  static constexpr std::size_t kMostResultBytes = 256U << 10;

  // The references outlive it.
  WebhookSender(Service& service, http::EventLoop& loop, telemetry::Telemetry& telemetry, Tell tell);
  ~WebhookSender();  // stop(), at once
  WebhookSender(const WebhookSender&) = delete;
  WebhookSender& operator=(const WebhookSender&) = delete;

  // From then on. Reads the secrets; where one cannot be had nothing changes. Thread-safe.
  [[nodiscard]] Status configure(const config::JobWebhooks& settings);

  // start() and stop() belong to one thread, which is not the loop's.
  void start();
  // Begins no delivery any more, lets those that are out end until the deadline, and waits. The loop and the
  // service must still run.
  void stop(TimePoint deadline);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace waybill::jobs
