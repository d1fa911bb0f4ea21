// What can only be checked of the server's sections once all of them have been read.
#pragma once

#include "config/check_context.h"

namespace waybill::config {

void check_server(const CheckContext& context);

}  // namespace waybill::config
