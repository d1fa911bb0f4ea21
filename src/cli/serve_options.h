// From the configuration to what the server's parts take.
#pragma once

#include "config/config.h"
#include "http/server.h"
#include "telemetry/telemetry.h"

namespace waybill::cli {

[[nodiscard]] telemetry::Options telemetry_options(const config::Config& config);

// Without the observers.
[[nodiscard]] http::ServerOptions server_options(const config::Server& server);

}  // namespace waybill::cli
