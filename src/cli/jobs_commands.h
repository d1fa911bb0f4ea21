// The parts of `waybill jobs` that have a file of their own.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "cli/api_client.h"
#include "cli/command.h"

namespace waybill::cli {

using SharedServer = std::shared_ptr<const ServerOptions>;

void add_jobs_submit(CLI::App& parent, const SharedServer& server);
void add_jobs_wait(CLI::App& parent, const SharedServer& server);
void add_jobs_tail(CLI::App& parent, const SharedServer& server);

// Waits until each has ended, `seconds` at most in all, and prints what came of it.
// kDone: all are completed.
[[nodiscard]] Outcome wait_for_jobs(ApiClient& client, const std::vector<std::string>& ids,
                                    std::optional<double> seconds, bool json);

}  // namespace waybill::cli
