// The keys of what is said of jobs, as describe.h has those of the decision.
#pragma once

#include <array>
#include <chrono>

#include "config/describe_upstream.h"
#include "config/jobs_config.h"
#include "config/key.h"

namespace waybill::config {

inline constexpr std::array kQueueWorkers = {Choice<QueueWorkers>{"server", QueueWorkers::kServer},
                                             Choice<QueueWorkers>{"external", QueueWorkers::kExternal}};
inline constexpr std::array kInDoubts = {Choice<InDoubt>{"retry", InDoubt::kRetry},
                                         Choice<InDoubt>{"hold", InDoubt::kHold}};
inline constexpr std::array kJobLanes = {Choice<JobLane>{"batch", JobLane::kBatch},
                                         Choice<JobLane>{"interactive", JobLane::kInteractive}};
inline constexpr DurationBounds kRetentions = {std::chrono::seconds(0), std::chrono::hours(24 * 3650)};
inline constexpr DurationBounds kBackoffs = {std::chrono::milliseconds(1), std::chrono::hours(24 * 7)};
inline constexpr DurationBounds kDeliveryPauses = {std::chrono::milliseconds(1), std::chrono::hours(24 * 30)};

template <class Visitor>
void describe(Visitor& v, Store& s) {
  v.file({"path",
          "The SQLite file in which jobs are kept; its log and its large bodies lie beside it. Relative to "
          "this file. Default: there are no jobs."},
         s.path);
  v.size({"inline_size", "Bodies and results that are larger are files of their own."}, s.inline_bytes);
  v.size({"max_log_size", "Of the write-ahead log, before writers wait until it is merged."},
         s.max_log_bytes);
  v.integer({"max_waiting", "Changes that wait for the disk at most; more are refused."}, {1, 10'000'000},
            s.max_waiting);
}

template <class Visitor>
void describe(Visitor& v, JobBackoff& b) {
  v.duration({"first", "Up to this long after the first attempt; doubled with each one more."}, kBackoffs,
             b.first);
  v.duration({"most", "Doubled up to this."}, kBackoffs, b.most);
}

template <class Visitor>
void describe(Visitor& v, JobRetention& r) {
  v.duration({"completed", "A job that has its answer. 0s: for ever."}, kRetentions, r.completed);
  v.duration({"failed", "One that failed, was cancelled or expired. 0s: for ever."}, kRetentions, r.failed);
  v.duration({"dead", "A dead letter. 0s: for ever."}, kRetentions, r.dead);
}

template <class Visitor>
void describe(Visitor& v, JobQueue& q) {
  v.text({"name", "What jobs, logs and metrics call it.", true}, q.name);
  v.choice({"workers", "Who does its jobs: this server, or external: whoever leases them over HTTP."},
           kQueueWorkers, q.workers);
  v.integer({"concurrency", "Jobs that run at a time."}, {1, 100'000}, q.concurrency);
  v.integer({"requests_per_minute", "Jobs that begin in a minute. 0: not limited."}, kCalls,
            q.requests_per_minute);
  v.choice({"lane", "The lane of their calls at the providers."}, kJobLanes, q.lane);
  v.integer({"max_depth", "Jobs that wait at most; more are refused."}, {1, 1'000'000'000}, q.max_depth);
  v.integer({"max_receives", "A job that was tried so often without an answer is a dead letter."},
            {1, 1'000'000}, q.max_receives);
  v.duration({"visibility", "A lease that is not renewed for this long is lost: another may take the job."},
             {std::chrono::seconds(1), std::chrono::hours(24)}, q.visibility);
  v.duration({"timeout", "Of one attempt."}, {std::chrono::milliseconds(1), std::chrono::hours(24 * 7)},
             q.timeout);
  v.section({"backoff", "How long a job waits before it is tried again; the wait is random up to a bound."},
            q.backoff);
  v.choice({"in_doubt",
            "What becomes of a job whose worker was lost when its call had begun. retry: it is tried again; "
            "hold: it waits for a person."},
           kInDoubts, q.in_doubt);
  v.flag({"require_idempotency_key", "Refuse jobs that come without the header Idempotency-Key."},
         q.require_idempotency_key);
  v.section({"retention", "How long jobs are kept when they have ended."}, q.retention);
}

template <class Visitor>
void describe(Visitor& v, JobWebhooks& w) {
  v.sections({"secrets",
              "Where the keys are that sign deliveries (whsec_...), each an env or a file; all of them sign, "
              "the newest first."},
             w.secrets);
  v.flag({"allow_private", "Deliver to addresses that are not public too: 10.0.0.0/8, 127.0.0.1, ::1, ..."},
         w.allow_private);
  v.flag({"allow_http", "Deliver to URLs without TLS too."}, w.allow_http);
  v.texts({"allow_hosts", "Deliver to these hosts only; *.example.com: to all below it. Default: to all."},
          w.allow_hosts);
  v.duration({"timeout", "Of one delivery."}, {std::chrono::milliseconds(1), std::chrono::hours(1)},
             w.timeout);
  v.integer({"concurrency", "Deliveries at a time."}, {1, 10'000}, w.concurrency);
  v.durations({"schedule", "The waits between attempts; after the last of them the delivery is dead."},
              kDeliveryPauses, w.schedule);
}

template <class Visitor>
void describe(Visitor& v, Jobs& j) {
  v.sections({"queues", "What jobs wait in. The queue default is there whether it is named or not."},
             j.queues);
  v.duration({"idempotency_ttl", "An Idempotency-Key is known for this long."},
             {std::chrono::seconds(1), std::chrono::hours(24 * 365)}, j.idempotency_ttl);
  v.flag({"wait_for_same_key",
          "A call whose Idempotency-Key is that of a call under way waits for its answer. false: it is "
          "answered 409."},
         j.wait_for_same_key);
  v.duration({"promote_after",
              "A model call whose predicted time is longer becomes a job by itself, where its client can "
              "take that. 0s: never."},
             kPauses, j.promote_after);
  v.integer({"max_jobs_per_call", "Jobs that one request may make."}, {1, 100'000}, j.max_jobs_per_call);
  v.section({"webhooks", "Telling others that a job has ended."}, j.webhooks);
}

}  // namespace waybill::config
