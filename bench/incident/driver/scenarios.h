// The loads of the incident, run against one server.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "client.h"
#include "measure.h"

namespace burst {

struct Options {
  Target target;
  std::string label = "server";
  std::string json_file;
  std::vector<std::string> scenarios = {"burst300", "qps240", "closed100", "ramp"};
  int runs = 3;
  std::uint64_t seed = 1;
  std::size_t pool = 0;  // 0: all prompts distinct; else drawn from that many, each asked once before
  double timeout_s = 5;
  double hang_up_share =
      0;  // of qps240: clients go away, half of them at once, the others within hang_up_within_s
  double hang_up_within_s = 0.1;
  int warmup = 20;
  double settle_s = 120;   // a run begins only once the server is healthy
  double recovery_s = 15;  // the longest recovery after a run that is waited for
  int server_pid = 0;
  double rate = 240;  // qps240
  double seconds = 30;
  int clients = 100;  // closed100
  int rounds = 10;
  double ramp_start = 10;  // ramp
  double ramp_max = 40'000;
  double ramp_growth = 1.3;
  double ramp_step_s = 5;
  double p95_limit_ms = 320;
  int dump_prompts = 0;
};

[[nodiscard]] bool is_scenario(const std::string& name);

// One run of one scenario: waits until the server is healthy, warms it up, loads it, and measures how long it
// takes to be healthy again. The seed decides prompts and timing. Ends the program where the server does not
// get healthy.
[[nodiscard]] Metrics run_scenario(const std::string& scenario, const Options& options, std::uint64_t seed);

}  // namespace burst
