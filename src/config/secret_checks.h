// What can be checked of where secrets are, before any of them is read.
#pragma once

#include <string_view>
#include <vector>

#include "config/check_context.h"

namespace waybill::config {

// `path`: the key of the list ("providers[0].keys"). `example`: what such a variable is called.
void check_secrets(const CheckContext& context, const std::vector<SecretSource>& secrets,
                   std::string_view path, std::string_view example);

}  // namespace waybill::config
