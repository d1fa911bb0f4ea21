// The typed form of what is said of jobs in waybill.yaml: store, jobs.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "base/clock.h"
#include "config/position.h"
#include "config/upstream_config.h"

namespace waybill::config {

// Where jobs are kept. Without a path there are none.
struct Store {
  std::filesystem::path path;              // of the SQLite file; its log and its large bodies lie beside it
  std::size_t inline_bytes = 64U << 10;    // bodies and results that are larger are files of their own
  std::size_t max_log_bytes = 256U << 20;  // of the write-ahead log, before writers wait for a checkpoint
  std::size_t max_waiting = 20'000;        // changes that wait for the disk; more are refused
};

enum class QueueWorkers : std::uint8_t { kServer, kExternal };
enum class InDoubt : std::uint8_t { kRetry, kHold };
enum class JobLane : std::uint8_t { kBatch, kInteractive };

// How long jobs are kept when they have ended. Zero: for ever.
struct JobRetention {
  Duration completed = std::chrono::hours(24 * 7);
  Duration failed = std::chrono::hours(24 * 14);  // failed, cancelled, expired
  Duration dead = std::chrono::hours(24 * 30);
};

struct JobBackoff {
  Duration first = std::chrono::seconds(1);  // doubled with each receive, less a random part of it
  Duration most = std::chrono::minutes(5);
};

struct JobQueue {
  std::string name;
  QueueWorkers workers = QueueWorkers::kServer;  // this server, or whoever leases over HTTP
  std::size_t concurrency = 16;                  // jobs that run at a time
  std::size_t requests_per_minute = 0;           // 0: not limited
  JobLane lane = JobLane::kBatch;
  std::size_t max_depth = 1'000'000;               // jobs that wait; more are refused
  std::size_t max_receives = 3;                    // then a dead letter
  Duration visibility = std::chrono::seconds(60);  // of a lease that is not renewed
  Duration timeout = std::chrono::minutes(10);     // of one attempt
  JobBackoff backoff;
  InDoubt in_doubt = InDoubt::kRetry;
  bool require_idempotency_key = false;
  JobRetention retention;
  Position position;
};

struct JobWebhooks {
  std::vector<SecretSource> secrets;     // "whsec_..." each; signed with all of them, the newest first
  bool allow_private = false;            // addresses that are not public: 10/8, 127/8, ::1, ...
  bool allow_http = false;               // URLs without TLS
  std::vector<std::string> allow_hosts;  // empty: all; "*.example.com" for all below it
  Duration timeout = std::chrono::seconds(15);
  std::size_t concurrency = 32;  // deliveries at a time
  // Between attempts; after the last of them the delivery is dead.
  std::vector<Duration> schedule = {
      std::chrono::seconds(5), std::chrono::minutes(5), std::chrono::minutes(30),
      std::chrono::hours(2),   std::chrono::hours(5),   std::chrono::hours(10),
      std::chrono::hours(14),  std::chrono::hours(20),  std::chrono::hours(24)};
};

struct Jobs {
  std::vector<JobQueue> queues;  // "default" is there whether it is named or not
  Duration idempotency_ttl = std::chrono::hours(24);
  // What a synchronous call with an Idempotency-Key does while another with that key runs.
  bool wait_for_same_key = true;  // false: 409
  // A model call whose predicted time is longer than this becomes a job by itself, where its client can take
  // a 202 (it sends Prefer: respond-async, or the header x-waybill-gateway-timeout-ms). Zero: never.
  Duration promote_after = Duration::zero();
  std::size_t max_jobs_per_call = 1000;
  JobWebhooks webhooks;
};

}  // namespace waybill::config
