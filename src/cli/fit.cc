// `waybill fit`: labelled texts that the head learns from, and what they change.
#include "route/fit.h"

#include <cmath>
#include <filesystem>
#include <memory>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "base/json_writer.h"
#include "base/suggest.h"
#include "cli/command.h"
#include "cli/commands.h"
#include "cli/common_options.h"
#include "cli/locate.h"
#include "cli/output.h"
#include "cli/terminal.h"
#include "route/dataset.h"
#include "route/router.h"

namespace waybill::cli {
namespace {

struct FitOptions {
  std::string file, format, out_of_scope;
  std::string config, model, precision;
  unsigned threads = 0;
  bool forget = false;
  bool json = false;
};

struct Snapshot {
  std::vector<route::RouteInfo> routes;
  double leave_one_out = 0;
  std::size_t examples = 0;
};

Result<Snapshot> load_snapshot(const config::Config& config, const embed::DecisionModels& models,
                               const FitOptions& options, ProgressLine& progress) {
  const auto router = route::Router::load(
      config, *models.first,
      {.threads = options.threads, .exact_model = models.exact.get(), .progress = progress.reporter()});
  progress.clear();
  if (!router) return std::unexpected(router.error());
  for (const std::string& note : (*router)->load_stats().notes) print_note(note);
  const auto routes = (*router)->routes();
  return Snapshot{.routes = {routes.begin(), routes.end()},
                  .leave_one_out = (*router)->load_stats().leave_one_out_accuracy,
                  .examples = (*router)->load_stats().fit_examples};
}

// Every label must be a route, or say that the text belongs to none.
Status check_labels(const route::Dataset& examples, const config::Config& config) {
  std::vector<std::string_view> names;
  for (const config::Route& r : config.routes) names.push_back(r.name);
  for (const route::Example& example : examples.examples) {
    const bool known = std::ranges::find(names, example.label) != names.end();
    if (known || example.label == config.default_route || route::is_out_of_scope_label(example.label))
      continue;
    return fail(ErrorCode::kInvalidInput,
                fmt::format("{}:{}: there is no route \"{}\"{}", examples.name, example.line, example.label,
                            did_you_mean(example.label, names)));
  }
  return {};
}

Result<route::Dataset> load_examples(const FitOptions& options, const config::Config& config) {
  const auto format = options.format.empty() ? std::nullopt : route::parse_dataset_format(options.format);
  Result<route::Dataset> examples = route::Dataset{};
  if (!options.file.empty()) {
    examples = route::load_dataset(options.file, format);
    if (!examples) return examples;
    if (const Status checked = check_labels(*examples, config); !checked)
      return std::unexpected(checked.error());
  }
  if (!options.out_of_scope.empty()) {
    Result<route::Dataset> more = route::load_dataset(options.out_of_scope, format);
    if (!more) return more;
    for (route::Example& example : more->examples) {
      example.label = "oos";
      examples->examples.push_back(std::move(example));
    }
  }
  return examples;
}

std::string change_text(const Snapshot& before, const Snapshot& after) {
  using Align = Table::Align;
  Table table({{"route", Align::kLeft},
               {"utterances", Align::kRight},
               {"", Align::kLeft},
               {"threshold", Align::kRight},
               {"", Align::kLeft}});
  for (std::size_t i = 0; i < after.routes.size(); ++i) {
    const route::RouteInfo& old = before.routes[i];
    const route::RouteInfo& now = after.routes[i];
    const bool moved = std::abs(now.threshold - old.threshold) >= 0.0005F;
    table.add_row({fit_width(now.name, 40), fmt::format("{}", old.utterances),
                   fmt::format("→ {}", now.utterances), fmt::format("{:.3f}", old.threshold),
                   paint(moved ? Style::kBold : Style::kDim, fmt::format("→ {:.3f}", now.threshold))});
  }
  const auto percent = [](double share) {
    return std::isfinite(share) ? fmt::format("{:.1f} %", share * 100) : "-";
  };
  return table.text() + fmt::format("\nleave-one-out accuracy {} → {}\nlabelled examples in use {} → {}\n",
                                    percent(before.leave_one_out), percent(after.leave_one_out),
                                    before.examples, after.examples);
}

std::string change_json(const Snapshot& before, const Snapshot& after, const std::filesystem::path& file) {
  std::string line;
  JsonWriter json(line);
  json.begin_object()
      .key("file")
      .string(file.string())
      .key("examples")
      .integer(static_cast<std::int64_t>(after.examples));
  json.key("leave_one_out_accuracy_before").number(before.leave_one_out);
  json.key("leave_one_out_accuracy").number(after.leave_one_out).key("routes").begin_array();
  for (std::size_t i = 0; i < after.routes.size(); ++i) {
    json.begin_object().key("route").string(after.routes[i].name);
    json.key("utterances_before").integer(static_cast<std::int64_t>(before.routes[i].utterances));
    json.key("utterances").integer(static_cast<std::int64_t>(after.routes[i].utterances));
    json.key("threshold_before").number(static_cast<double>(before.routes[i].threshold));
    json.key("threshold").number(static_cast<double>(after.routes[i].threshold)).end_object();
  }
  json.end_array().end_object();
  return line + '\n';
}

// The examples take effect together with a head that could be fitted on them, or not at all.
Result<Snapshot> replace_examples(const config::Config& config, const embed::DecisionModels& models,
                                  const FitOptions& options, const route::Dataset& examples,
                                  ProgressLine& progress) {
  const Result<route::Dataset> old = route::load_fit(config);
  if (const Status saved = route::save_fit(config, examples); !saved) return std::unexpected(saved.error());
  Result<Snapshot> after = load_snapshot(config, models, options, progress);
  if (!after && old) (void)route::save_fit(config, *old);
  return after;
}

Outcome run_fit(const FitOptions& options) {
  if (options.file.empty() && options.out_of_scope.empty() && !options.forget) {
    print_error(
        "waybill fit needs a labelled file, or --forget to go back to the utterances of the configuration");
    return ExitCode::kUsage;
  }
  const Result<config::Config> config = load_config(options.config);
  if (!config) return std::unexpected(config.error());
  const Result<route::Dataset> examples = load_examples(options, *config);
  if (!examples) return std::unexpected(examples.error());
  const Result<embed::DecisionModels> models =
      load_decision_models(choose_model(*config, options.model, options.precision));
  if (!models) return std::unexpected(models.error());
  ProgressLine progress;
  const Result<Snapshot> before = load_snapshot(*config, *models, options, progress);
  if (!before) return std::unexpected(before.error());
  const Result<Snapshot> after = replace_examples(*config, *models, options, *examples, progress);
  if (!after) return std::unexpected(after.error());
  Output output;
  output.write(options.json
                   ? change_json(*before, *after, route::fit_file(*config))
                   : change_text(*before, *after) + "kept in " + route::fit_file(*config).string() + "\n");
  return finish(output);
}

}  // namespace

void add_fit(CLI::App& app) {
  auto options = std::make_shared<FitOptions>();
  CLI::App& command = add_command(
      app,
      {.name = "fit",
       .summary = "learn from labelled texts and set the thresholds anew",
       .details =
           "Fits the head on the utterances of the configuration together with the texts of a labelled file, "
           "sets the automatic thresholds anew and says what changed. The labels are names of routes; oos, "
           "out_of_scope, none and default mark texts that belong to no route, and teach the head what to "
           "leave to the default route. The texts are kept in the configuration's cache folder, where "
           "`waybill route` finds them from then on; a second fit replaces them.",
       .examples = "waybill fit labelled.tsv\n"
                   "waybill fit labelled.jsonl --oos-file not-for-us.tsv\n"
                   "waybill fit --forget"});
  add_file(command, "FILE", options->file, "The labelled texts: TSV (label, tab, text), CSV or JSON Lines");
  add_config_option(command, options->config);
  add_file(command, "--oos-file", options->out_of_scope, "More texts, all of which belong to no route");
  add_format_option(command, options->format);
  command.add_flag("--forget", options->forget, "Drop the labelled texts of earlier fits");
  add_json_flag(command, options->json, "One JSON object with thresholds and accuracy before and after");
  add_precision_option(command, options->precision);
  add_model_option(command, options->model);
  add_threads_option(command, options->threads);
  set_action(command, [options] { return run_fit(*options); });
}

}  // namespace waybill::cli
