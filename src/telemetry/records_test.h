// Records for tests.
#pragma once

#include <chrono>

#include "base/uuid.h"
#include "telemetry/record.h"

namespace waybill::telemetry {

inline constexpr std::int64_t kTestTimeUs = 1'767'225'600'123'456;  // 2026-01-01T00:00:00.123456Z

inline Record test_record(Outcome outcome = Outcome::kCompleted) {
  Record record;
  record.id =
      uuid_v7(std::chrono::sys_time<std::chrono::nanoseconds>(std::chrono::microseconds(kTestTimeUs)));
  record.trace_id = {0x4b, 0xf9, 0x2f, 0x35, 0x77, 0xb3, 0x4d, 0xa6,
                     0xa3, 0xce, 0x92, 0x9d, 0x0e, 0x0e, 0x47, 0x36};
  record.span_id = {1, 2, 3, 4, 5, 6, 7, 8};
  record.parent_id = {0, 0xf0, 0x67, 0xaa, 0x0b, 0xa9, 0x02, 0xb7};
  record.sampled = true;
  record.started_us = kTestTimeUs;
  record.duration_us = 1500;
  record.open = false;
  record.outcome = outcome;
  record.status = outcome == Outcome::kCompleted ? 200 : 504;
  record.stages[static_cast<std::size_t>(Stage::kQueue)] = {.start_us = 20, .length_us = 300};
  record.stages[static_cast<std::size_t>(Stage::kEncode)] = {.start_us = 320, .length_us = 1000};
  record.endpoint = "/v1/route";
  record.caller = "batch";
  record.request_id = "abc-1";
  record.decided = true;
  record.route = "coding";
  record.model = "qwen2.5-coder-32b";
  record.tier = "encoder";
  record.reason = "score";
  record.score = 0.97F;
  record.tokens = 12;
  if (outcome != Outcome::kCompleted) {
    record.error_code = "deadline_exceeded";
    record.error_message = "the deadline passed";
    record.error_stage = Stage::kEncode;
  }
  return record;
}

}  // namespace waybill::telemetry
