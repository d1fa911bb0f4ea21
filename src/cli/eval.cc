// `waybill eval`: how good the decisions are on labelled texts.
#include <cstdlib>
#include <filesystem>
#include <memory>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "base/file.h"
#include "cli/command.h"
#include "cli/commands.h"
#include "cli/common_options.h"
#include "cli/evaluation_report.h"
#include "cli/locate.h"
#include "cli/output.h"
#include "cli/terminal.h"
#include "route/dataset.h"
#include "route/evaluation.h"
#include "route/router.h"

namespace waybill::cli {
namespace {

struct EvalOptions {
  std::string test, train, out_of_scope, format;
  std::string config, model, precision, compare;
  std::string html;
  std::size_t shots = 0;
  std::uint64_t seed = 1;
  std::size_t latency_samples = 200;
  unsigned threads = 0;
  bool json = false;
  bool all = false;
};

Result<route::Dataset> load_labelled(const std::string& path, const std::string& format) {
  return route::load_dataset(path, format.empty() ? std::nullopt : route::parse_dataset_format(format));
}

// The test file, and the texts of --oos-file, which all belong to no route whatever their label says.
Result<route::Dataset> load_test(const EvalOptions& options) {
  Result<route::Dataset> test = load_labelled(options.test, options.format);
  if (!test || options.out_of_scope.empty()) return test;
  Result<route::Dataset> more = load_labelled(options.out_of_scope, options.format);
  if (!more) return more;
  for (route::Example& example : more->examples) {
    example.label = "oos";
    test->examples.push_back(std::move(example));
  }
  return test;
}

std::filesystem::path user_cache_folder() {
  if (const char* folder = std::getenv("XDG_CACHE_HOME"); folder != nullptr && *folder != '\0') {
    return std::filesystem::path(folder) / "waybill";
  }
  if (const char* home = std::getenv("HOME"); home != nullptr && *home != '\0') {
    return std::filesystem::path(home) / ".cache/waybill";
  }
  return std::filesystem::temp_directory_path() / "waybill-cache";
}

// With --train the labels of that file are the routes; the rest comes from the configuration, where there is
// one.
Result<config::Config> evaluated_config(const EvalOptions& options) {
  if (options.train.empty()) return load_config(options.config);
  config::Config base;
  if (!options.config.empty() || find_config({})) {
    Result<config::Config> config = load_config(options.config);
    if (!config) return config;
    base = std::move(*config);
  } else {
    base.cache_folder = user_cache_folder();
  }
  const Result<route::Dataset> train = load_labelled(options.train, options.format);
  if (!train) return std::unexpected(train.error());
  return route::config_of_examples(*train, route::draw_shots(*train, options.shots, options.seed),
                                   std::move(base));
}

struct Loaded {
  embed::DecisionModels models;
  std::unique_ptr<route::Router> router;
};

Result<Loaded> load(const EvalOptions& options, const config::Config& config, const std::string& precision,
                    ProgressLine& progress) {
  Result<ModelChoice> choice = options.train.empty() || !options.config.empty() || find_config({})
                                   ? Result<ModelChoice>(choose_model(config, options.model, precision))
                                   : choose_model(options.model, options.config, precision);
  if (!choice) return std::unexpected(choice.error());
  Result<embed::DecisionModels> models = load_decision_models(*choice);
  if (!models) return std::unexpected(models.error());
  Loaded loaded = {.models = std::move(*models), .router = nullptr};
  Result<std::unique_ptr<route::Router>> router =
      route::Router::load(config, *loaded.models.first,
                          {.threads = options.threads,
                           .wait_for_static = true,
                           .use_fit = options.train.empty(),
                           .exact_model = loaded.models.exact.get(),
                           .progress = progress.reporter()});
  if (!router) return std::unexpected(router.error());
  for (const std::string& note : (*router)->load_stats().notes) {
    progress.clear();
    print_note(note);
  }
  loaded.router = std::move(*router);
  return loaded;
}

Outcome run_eval(const EvalOptions& options) {
  const Result<route::Dataset> test = load_test(options);
  if (!test) return std::unexpected(test.error());
  const Result<config::Config> config = evaluated_config(options);
  if (!config) return std::unexpected(config.error());
  ProgressLine progress;
  const Result<Loaded> loaded = load(options, *config, options.precision, progress);
  if (!loaded) return std::unexpected(loaded.error());

  route::EvaluationOptions how;
  how.threads = options.threads;
  how.latency_samples = options.latency_samples;
  how.progress = progress.reporter();
  Result<Loaded> reference = Loaded{};
  if (!options.compare.empty()) {
    reference = load(options, *config, options.compare, progress);
    if (!reference) return std::unexpected(reference.error());
    how.reference = reference->models.first.get();
    how.reference_router = reference->router.get();
  }
  const Result<route::Evaluation> evaluation =
      route::evaluate(*loaded->router, *loaded->models.first, *test, how);
  progress.clear();
  if (!evaluation) return std::unexpected(evaluation.error());

  if (!options.html.empty()) {
    if (const Status written = write_file_atomically(options.html, evaluation_page(*evaluation)); !written) {
      return std::unexpected(written.error());
    }
  }
  Output output;
  output.write(options.json ? evaluation_json(*evaluation)
                            : evaluation_text(*evaluation, terminal_width(Stream::kOut), options.all));
  return finish(output);
}

}  // namespace

void add_eval(CLI::App& app) {
  auto options = std::make_shared<EvalOptions>();
  CLI::App& command = add_command(
      app,
      {.name = "eval",
       .summary = "measure decisions on labelled texts",
       .details =
           "Decides each text of a labelled file and holds the decisions against the labels: accuracy, "
           "precision and recall of each route, confusions, out-of-scope texts found, calibration of the "
           "scores, agreement of the tiers, latency of each.\n\n"
           "The file is TSV (label, tab, text), CSV or JSON Lines, told by its extension. The labels are "
           "names of routes; oos, out_of_scope, none and default mean that a text belongs to no route. With "
           "--train the routes are made of another labelled file and no configuration is needed.",
       .examples = "waybill eval labelled.tsv\n"
                   "waybill eval labelled.tsv --html report.html\n"
                   "waybill eval validation.tsv --train train.tsv --shots 10 --oos-file oos.tsv --json\n"
                   "# how often int8 decides as f32 does\n"
                   "waybill eval labelled.tsv --precision int8 --compare f32"});
  add_file(command, "FILE", options->test, "The labelled texts")->required();
  add_config_option(command, options->config);
  add_file(command, "--train", options->train, "Make the routes of this labelled file instead");
  command.add_option("--shots", options->shots, "Of --train, at most so many texts of each label; 0 is all")
      ->type_name("N");
  command.add_option("--seed", options->seed, "Which of them")->type_name("N");
  add_file(command, "--oos-file", options->out_of_scope, "More texts, all of which belong to no route");
  add_format_option(command, options->format);
  add_json_flag(command, options->json, "One JSON object with \"accuracy\" and all the rest");
  add_file(command, "--html", options->html, "Also write a page with plots to this file");
  command.add_flag("--all", options->all, "Show every route, not only those that do worst");
  add_precision_option(command, options->precision);
  add_choice(command, "--compare", options->compare, {"f32", "bf16", "int16", "int8"},
             "Also decide with this precision and count what is decided the same");
  add_model_option(command, options->model);
  command
      .add_option("--latency-samples", options->latency_samples,
                  "Single decisions to time for each tier; 0 is none")
      ->type_name("N");
  add_threads_option(command, options->threads);
  set_action(command, [options] { return run_eval(*options); });
}

}  // namespace waybill::cli
