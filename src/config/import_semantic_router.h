// From what the semantic-router library saved to a waybill.yaml.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace waybill::config {

struct ImportedConfig {
  std::string yaml;                // complete, and accepted by parse()
  std::vector<std::string> notes;  // what could not be carried over; the same stands in comments of the yaml
};

// Reads the JSON or YAML written by RouteLayer.to_json()/to_yaml() and SemanticRouter.to_json()/to_yaml() of
// github.com/aurelio-labs/semantic-router 0.x (keys encoder_type, encoder_name, routes) and by the routers
// of 1.x (router_type; encoder; routes; chains and merges are taken apart), or a bare list of routes. `name`
// stands for the file in messages. Its thresholds are aggregates of cosines, not probabilities, so they come
// as comments for those who choose scoring: aurelio. Fails with kInvalidInput when it is none of these or
// holds no route with utterances.
[[nodiscard]] Result<ImportedConfig> import_semantic_router(std::string_view text, std::string_view name);

}  // namespace waybill::config
