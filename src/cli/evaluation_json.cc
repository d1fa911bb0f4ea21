// The evaluation for programs: one JSON object, names as in route/evaluation.h. What cannot be said (the
// AUROC when no text is out of scope) is null.
#include "base/json_writer.h"
#include "cli/evaluation_report.h"

namespace waybill::cli {
namespace {

std::int64_t integer(std::size_t value) { return static_cast<std::int64_t>(value); }

void write_routes(JsonWriter& json, const route::Metrics& metrics) {
  json.key("per_route").begin_array();
  for (const route::RouteMetrics& r : metrics.routes) {
    json.begin_object().key("route").string(r.route).key("support").integer(integer(r.support));
    json.key("decided").integer(integer(r.decided)).key("correct").integer(integer(r.correct));
    json.key("precision")
        .number(r.precision())
        .key("recall")
        .number(r.recall())
        .key("f1")
        .number(r.f1())
        .end_object();
  }
  json.end_array().key("confusions").begin_array();
  for (const route::ConfusionPair& pair : metrics.confusions) {
    json.begin_object().key("label").string(pair.label).key("decided").string(pair.decided);
    json.key("count").integer(integer(pair.count)).end_object();
  }
  json.end_array();
}

void write_reliability(JsonWriter& json, const route::Metrics& metrics) {
  json.key("reliability").begin_array();
  for (const route::ScoreBin& bin : metrics.reliability) {
    json.begin_object().key("low").number(bin.low).key("high").number(bin.high).key("count").integer(
        integer(bin.count));
    json.key("mean_score").number(bin.mean_score).key("accuracy").number(bin.accuracy).end_object();
  }
  json.end_array();
}

void write_static(JsonWriter& json, const route::StaticMetrics& s) {
  json.key("static").begin_object().key("accuracy").number(s.accuracy).key("agreement").number(s.agreement);
  json.key("decided").number(s.decided).key("decided_agreement").number(s.decided_agreement);
  json.key("decided_out_of_scope")
      .number(s.decided_out_of_scope)
      .key("cascade_accuracy")
      .number(s.cascade_accuracy)
      .end_object();
}

}  // namespace

std::string evaluation_json(const route::Evaluation& evaluation) {
  const route::Metrics& m = evaluation.metrics;
  std::string line;
  JsonWriter json(line);
  json.begin_object()
      .key("test")
      .string(evaluation.test_name)
      .key("routes")
      .integer(integer(evaluation.routes));
  json.key("utterances").integer(integer(evaluation.utterances)).key("in_scope").integer(integer(m.in_scope));
  json.key("out_of_scope")
      .integer(integer(m.out_of_scope))
      .key("accuracy")
      .number(m.accuracy)
      .key("kept")
      .number(m.kept);
  json.key("correct_and_kept")
      .number(m.correct_and_kept)
      .key("decision_accuracy")
      .number(m.decision_accuracy);
  json.key("out_of_scope_recall")
      .number(m.out_of_scope_recall)
      .key("out_of_scope_auroc")
      .number(m.out_of_scope_auroc);
  json.key("macro_precision").number(m.macro_precision).key("macro_recall").number(m.macro_recall);
  json.key("macro_f1").number(m.macro_f1).key("calibration_error").number(m.calibration_error);
  json.key("rechecked").number(evaluation.rechecked);
  if (evaluation.static_tier) write_static(json, *evaluation.static_tier);
  json.key("latency").begin_object();
  for (const route::LatencyMetrics& l : evaluation.latency) {
    json.key(to_string(l.tier))
        .begin_object()
        .key("samples")
        .integer(integer(l.samples))
        .key("mean_us")
        .number(l.mean_us);
    json.key("p50_us").number(l.p50_us).key("p99_us").number(l.p99_us).end_object();
  }
  json.end_object();
  if (evaluation.precision) {
    const route::PrecisionAgreement& p = *evaluation.precision;
    json.key("agreement").begin_object().key("precision").string(to_string(p.precision));
    json.key("reference").string(to_string(p.reference)).key("same_route").number(p.same_route);
    json.key("same_decision").number(p.same_decision).key("min_cosine").number(p.min_cosine, 9);
    json.key("mean_cosine").number(p.mean_cosine, 9).end_object();
  }
  write_reliability(json, m);
  write_routes(json, m);
  json.end_object();
  return line + '\n';
}

}  // namespace waybill::cli
