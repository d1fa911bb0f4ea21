// `waybill route`: which route each prompt takes, and why.
#include <chrono>
#include <memory>
#include <optional>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "base/json_writer.h"
#include "cli/command.h"
#include "cli/commands.h"
#include "cli/common_options.h"
#include "cli/input.h"
#include "cli/locate.h"
#include "cli/output.h"
#include "cli/terminal.h"
#include "route/decide_batch.h"
#include "route/router.h"

namespace waybill::cli {
namespace {

struct RouteOptions {
  std::vector<std::string> texts;
  std::string config, model, precision;
  bool explain = false;
  bool json = false;
  unsigned threads = 0;
};

void write_decision_fields(JsonWriter& json, const route::Decision& decision) {
  json.key("route").string(decision.route).key("model").string(decision.model);
  json.key("score").number(static_cast<double>(decision.score)).key("tier").string(to_string(decision.tier));
  json.key("degraded").boolean(decision.degraded).key("reason").string(to_string(decision.reason));
  if (!decision.rule.empty()) json.key("rule").string(decision.rule);
}

std::string decision_json(const route::Decision& decision) {
  std::string line;
  JsonWriter json(line);
  json.begin_object();
  write_decision_fields(json, decision);
  json.end_object();
  return line + '\n';
}

std::string explanation_json(const route::Router& router, const route::Explanation& explanation) {
  std::string line;
  JsonWriter json(line);
  json.begin_object();
  write_decision_fields(json, explanation.decision);
  json.key("threshold").number(static_cast<double>(explanation.threshold)).key("runners_up").begin_array();
  for (const route::ScoredRoute& scored : explanation.runners_up) {
    json.begin_object().key("route").string(router.routes()[scored.route].name);
    json.key("score").number(static_cast<double>(scored.score)).end_object();
  }
  json.end_array().key("nearest").begin_array();
  for (const route::NearestUtterance& near : explanation.nearest) {
    json.begin_object().key("route").string(router.routes()[near.route].name).key("text").string(near.text);
    json.key("similarity").number(static_cast<double>(near.similarity)).end_object();
  }
  json.end_array().end_object();
  return line + '\n';
}

// Route, model, score and tier in columns as wide as the longest name, so that lines from a stream line up.
class DecisionLines {
 public:
  explicit DecisionLines(const route::Router& router) {
    for (const route::RouteInfo& info : router.routes()) {
      route_width_ = std::max(route_width_, display_width(info.name));
      model_width_ = std::max(model_width_, display_width(info.model));
    }
  }

  [[nodiscard]] std::string line(const route::Decision& decision, std::string_view text) const {
    const std::string route_name(decision.route);
    const std::string model_name(decision.model);
    std::string out =
        padded(paint(Style::kBold, route_name), route_width_) + "  " + padded(model_name, model_width_);
    out += fmt::format("  {:.2f}  {:<7}", decision.score, to_string(decision.tier));
    if (decision.degraded) out += paint(Style::kYellow, " degraded");
    if (!text.empty()) out += "  " + paint(Style::kDim, fit_width(text, kTextWidth));
    out.erase(out.find_last_not_of(' ') + 1);
    return out + '\n';
  }

 private:
  static constexpr std::size_t kTextWidth = 60;

  static std::string padded(std::string text, std::size_t width) {
    const std::size_t size = display_width(text);
    return size < width ? text.append(width - size, ' ') : text;
  }

  std::size_t route_width_ = 7, model_width_ = 0;
};

std::string reason_text(const route::Decision& decision) {
  std::string text(to_string(decision.reason));
  if (!decision.rule.empty()) text += fmt::format(" \"{}\"", decision.rule);
  return text;
}

std::string explanation_text(const route::Router& router, const route::Explanation& explanation,
                             std::string_view prompt) {
  const route::Decision& decision = explanation.decision;
  std::string out = paint(Style::kDim, fit_width(prompt, terminal_width(Stream::kOut) - 1)) + "\n";
  out += fmt::format("  {} {} (model {}), {} tier: {}{}\n", paint(Style::kGreen, "→"),
                     paint(Style::kBold, decision.route), decision.model, to_string(decision.tier),
                     reason_text(decision), decision.degraded ? paint(Style::kYellow, ", degraded") : "");
  Table routes(
      {{"  score", Table::Align::kRight}, {"", Table::Align::kLeft}, {"route", Table::Align::kLeft}});
  for (const route::ScoredRoute& scored : explanation.runners_up) {
    const bool above = scored.score >= explanation.threshold;
    routes.add_row({fmt::format("{:.3f}", scored.score),
                    paint(above ? Style::kGreen : Style::kYellow, bar(static_cast<double>(scored.score), 20)),
                    router.routes()[scored.route].name});
  }
  if (!routes.empty()) {
    out += routes.text();
    out += fmt::format("  {:.3f}  threshold\n", explanation.threshold);
  }
  Table nearest({{"  cosine", Table::Align::kRight},
                 {"route", Table::Align::kLeft},
                 {"nearest utterances", Table::Align::kLeft}});
  for (const route::NearestUtterance& near : explanation.nearest) {
    nearest.add_row(
        {fmt::format("{:.3f}", near.similarity), router.routes()[near.route].name, fit_width(near.text, 60)});
  }
  if (!nearest.empty()) out += nearest.text();
  return out + "\n";
}

// What a run of the command works with.
class RouteRun {
 public:
  RouteRun(const RouteOptions& options, const embed::Model& model, const route::Router& router)
      : options_(options), model_(model), router_(router), lines_(router) {}

  [[nodiscard]] Status answer(std::span<const std::string> prompts, bool show_text) {
    if (options_.explain) {
      for (const std::string& prompt : prompts) {
        const route::Explanation explanation = router_.explain(prompt, scratch_);
        output_.write(options_.json ? explanation_json(router_, explanation)
                                    : explanation_text(router_, explanation, prompt));
      }
    } else {
      const auto decisions = route::decide_batch(router_, model_, prompts, options_.threads, scratch_);
      for (std::size_t i = 0; i < prompts.size(); ++i) {
        output_.write(options_.json
                          ? decision_json(decisions[i])
                          : lines_.line(decisions[i], show_text ? std::string_view(prompts[i]) : ""));
      }
    }
    return output_.flush();
  }

 private:
  const RouteOptions& options_;
  const embed::Model& model_;
  const route::Router& router_;
  DecisionLines lines_;
  route::DecideScratch scratch_;
  Output output_;
};

Outcome run_route(const RouteOptions& options) {
  const Result<config::Config> config = load_config(options.config);
  if (!config) return std::unexpected(config.error());
  const Result<embed::DecisionModels> models =
      load_decision_models(choose_model(*config, options.model, options.precision));
  if (!models) return std::unexpected(models.error());
  ProgressLine progress;
  const auto router = route::Router::load(
      *config, *models->first,
      {.threads = options.threads, .exact_model = models->exact.get(), .progress = progress.reporter()});
  progress.clear();
  if (!router) return std::unexpected(router.error());
  for (const std::string& note : (*router)->load_stats().notes) print_note(note);

  RouteRun run(options, *models->first, **router);
  if (!options.texts.empty()) {
    if (const Status written = run.answer(options.texts, options.texts.size() > 1); !written) {
      return std::unexpected(written.error());
    }
    return ExitCode::kDone;
  }
  TextReader reader(InputFormat::kLines);
  for (std::vector<std::string> prompts;;) {
    if (const Status read = reader.next(prompts); !read) return std::unexpected(read.error());
    if (prompts.empty()) return ExitCode::kDone;
    if (is_terminal(Stream::kOut)) progress.clear();
    if (const Status written = run.answer(prompts, true); !written) return std::unexpected(written.error());
    progress.update("routing", reader.bytes_taken(), reader.bytes_total());
  }
}

}  // namespace

void add_route(CLI::App& app) {
  auto options = std::make_shared<RouteOptions>();
  CLI::App& command = add_command(
      app,
      {.name = "route",
       .summary = "decide which route each prompt takes",
       .details =
           "Prints the route, its model, the score (a calibrated probability) and the tier that decided, one "
           "line for each prompt and in order. Without arguments the prompts are read from standard input, a "
           "line each, and answered as they come.",
       .examples = "waybill route \"what is the refund policy?\"\n"
                   "waybill route --explain \"what is the refund policy?\"\n"
                   "waybill route --json < prompts.txt\n"
                   "waybill route --config support.yaml --precision f32 < prompts.txt"});
  add_texts(command, options->texts, "The prompts; standard input if there are none");
  add_config_option(command, options->config);
  command.add_flag("--explain", options->explain,
                   "Also the threshold, the runners-up and the nearest utterances");
  add_json_flag(
      command, options->json,
      "One object a line: route, model, score, tier, degraded, reason; with --explain also threshold, "
      "runners_up, nearest");
  add_precision_option(command, options->precision);
  add_model_option(command, options->model);
  add_threads_option(command, options->threads);
  set_action(command, [options] { return run_route(*options); });
}

}  // namespace waybill::cli
