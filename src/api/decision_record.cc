#include "api/decision_record.h"

namespace waybill::api {

using telemetry::Stage;

void record_decision(telemetry::Waybill& waybill, const route::Decision& decision,
                     const route::DecisionTiming& timing) {
  waybill.decision({.route = decision.route,
                    .model = decision.model,
                    .tier = to_string(decision.tier),
                    .reason = to_string(decision.reason),
                    .score = decision.score,
                    .degraded = decision.degraded});
  const auto stage = [&waybill](telemetry::Stage which, TimePoint begin, TimePoint end) {
    if (begin != TimePoint{} && end != TimePoint{}) waybill.stage(which, begin, end);
  };
  waybill.tokens(timing.tokens);
  stage(Stage::kTokenize, timing.arrived, timing.tokenized);
  stage(Stage::kQueue, timing.queued, timing.started);
  stage(Stage::kEncode, timing.started, timing.finished);
  stage(Stage::kDecide, timing.finished == TimePoint{} ? timing.arrived : timing.finished, timing.decided);
}

}  // namespace waybill::api
