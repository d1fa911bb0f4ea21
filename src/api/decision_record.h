// What a decision says of itself, into the waybill of its request.
#pragma once

#include "route/decision.h"
#include "route/decision_service.h"
#include "telemetry/waybill.h"

namespace waybill::api {

void record_decision(telemetry::Waybill& waybill, const route::Decision& decision,
                     const route::DecisionTiming& timing);

}  // namespace waybill::api
