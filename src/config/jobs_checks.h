// What can only be checked of the store and of jobs once all of the configuration has been read.
#pragma once

#include "config/check_context.h"

namespace waybill::config {

void check_jobs(const CheckContext& context);

// The queue "default" is there whether it was named or not.
void complete_jobs(Jobs& jobs);

}  // namespace waybill::config
