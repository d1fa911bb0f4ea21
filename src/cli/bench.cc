// `waybill bench`: how fast the encoder and the tiers are on this machine.
#include <algorithm>
#include <array>
#include <chrono>
#include <memory>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "base/cpu.h"
#include "base/json_writer.h"
#include "cli/bench_encoder.h"
#include "cli/command.h"
#include "cli/commands.h"
#include "cli/common_options.h"
#include "cli/input.h"
#include "cli/locate.h"
#include "cli/output.h"
#include "cli/terminal.h"
#include "route/router.h"

namespace waybill::cli {
namespace {

using SteadyClock = std::chrono::steady_clock;

struct BenchRouteOptions {
  std::string config, model, precision;
  double seconds = 1;
  bool json = false;
};

// Requests of 16 tokens, [CLS] and [SEP] counted, as the encoder's figures are given for.
constexpr std::array<std::string_view, 8> kPrompts = {
    "can you tell me how to change the address on my account please",
    "why does my program crash when i read from an empty file today",
    "please write a short letter to my landlord about the broken window",
    "what is the best way to learn a new language in one year",
    "my card was charged two times for the same order last night again",
    "how many people live in the largest city of south america right now",
    "set an alarm for six in the morning and play some quiet music",
    "is it legal to record a phone call without telling the other person"};

struct TierTime {
  std::string name;
  double median = 0, best = 0;  // seconds for one decision
  std::size_t decisions = 0;
};

// Times `decide(i)` one batch of calls at a time, so that the clock's own cost does not count.
template <class Decide>
TierTime time_tier(std::string name, double seconds, std::size_t batch, const Decide& decide) {
  for (std::size_t i = 0; i < kPrompts.size(); ++i) decide(i);
  std::vector<double> times;
  const auto end = SteadyClock::now() + std::chrono::duration<double>(seconds);
  std::size_t next = 0;
  do {
    const auto start = SteadyClock::now();
    for (std::size_t i = 0; i < batch; ++i) decide(next++ % kPrompts.size());
    times.push_back(std::chrono::duration<double>(SteadyClock::now() - start).count() /
                    static_cast<double>(batch));
  } while (SteadyClock::now() < end);
  const auto middle = times.begin() + static_cast<std::ptrdiff_t>(times.size() / 2);
  std::ranges::nth_element(times, middle);
  return {std::move(name), *middle, *std::ranges::min_element(times), times.size() * batch};
}

Result<std::unique_ptr<route::Router>> load_router(config::Config config, const embed::DecisionModels& models,
                                                   bool cache, ProgressLine& progress) {
  config.tiers.cache.enabled = cache;
  config.rules.clear();
  auto router = route::Router::load(
      config, *models.first,
      {.wait_for_static = true, .exact_model = models.exact.get(), .progress = progress.reporter()});
  progress.clear();
  return router;
}

Result<std::vector<TierTime>> time_tiers(const BenchRouteOptions& options, const config::Config& config,
                                         const embed::DecisionModels& models) {
  ProgressLine progress;
  const auto cached = load_router(config, models, true, progress);
  if (!cached) return std::unexpected(cached.error());
  const auto uncached = load_router(config, models, false, progress);
  if (!uncached) return std::unexpected(uncached.error());

  route::DecideScratch scratch;
  std::vector<TierTime> times;
  times.push_back(time_tier("cache", options.seconds, 1'000,
                            [&](std::size_t i) { (void)(*cached)->decide(kPrompts[i], scratch); }));
  if ((*uncached)->static_status().ready) {
    times.push_back(time_tier("static", options.seconds, 100, [&](std::size_t i) {
      (void)(*uncached)->explain(kPrompts[i], scratch, route::Tier::kStatic, 0, 0);
    }));
  }
  times.push_back(time_tier("encoder", options.seconds, 1, [&](std::size_t i) {
    (void)(*uncached)->explain(kPrompts[i], scratch, route::Tier::kEncoder, 0, 0);
  }));
  return times;
}

std::string times_text(const std::vector<TierTime>& times) {
  Table table({{"tier", Table::Align::kLeft},
               {"median", Table::Align::kRight},
               {"best", Table::Align::kRight},
               {"decisions", Table::Align::kRight},
               {"encoder ÷ tier", Table::Align::kRight}});
  for (const TierTime& time : times) {
    table.add_row({time.name, human_seconds(time.median), human_seconds(time.best),
                   human_count(static_cast<double>(time.decisions)),
                   fmt::format("{:.0f}", times.back().median / time.median)});
  }
  return table.text();
}

std::string times_json(const std::vector<TierTime>& times, const embed::Model& model) {
  std::string line;
  JsonWriter json(line);
  json.begin_object()
      .key("precision")
      .string(to_string(model.precision()))
      .key("isa")
      .string(to_string(model.isa()));
  json.key("cpu").string(cpu_name()).key("tiers").begin_object();
  for (const TierTime& time : times) {
    json.key(time.name)
        .begin_object()
        .key("median_seconds")
        .number(time.median)
        .key("best_seconds")
        .number(time.best);
    json.key("decisions").integer(static_cast<std::int64_t>(time.decisions)).end_object();
  }
  json.end_object().end_object();
  return line + '\n';
}

Outcome run_bench_route(const BenchRouteOptions& options) {
  const Result<config::Config> config = load_config(options.config);
  if (!config) return std::unexpected(config.error());
  const Result<embed::DecisionModels> models =
      load_decision_models(choose_model(*config, options.model, options.precision));
  if (!models) return std::unexpected(models.error());
  const auto times = time_tiers(options, *config, *models);
  if (!times) return std::unexpected(times.error());
  Output output;
  output.write(options.json
                   ? times_json(*times, *models->first)
                   : fmt::format("One decision about a prompt of about 16 tokens, one thread, {} on {}\n\n",
                                 to_string(models->first->precision()), to_string(models->first->isa())) +
                         times_text(*times));
  return finish(output);
}

void add_bench_route(CLI::App& parent) {
  auto options = std::make_shared<BenchRouteOptions>();
  CLI::App& command = add_command(
      parent,
      {.name = "route",
       .summary = "time one decision of each tier",
       .details = "Exact cache hit, static tier and encoder, on prompts of about 16 tokens and one thread.",
       .examples = "waybill bench route\nwaybill bench route --seconds 5 --json"});
  add_config_option(command, options->config);
  add_model_option(command, options->model);
  add_precision_option(command, options->precision);
  command.add_option("--seconds", options->seconds, "For each tier")
      ->type_name("S")
      ->check(CLI::Range(0.01, 3600.0));
  add_json_flag(command, options->json, "One JSON object");
  set_action(command, [options] { return run_bench_route(*options); });
}

}  // namespace

void add_bench(CLI::App& app) {
  CLI::App& command = add_command(app, {.name = "bench",
                                        .summary = "measure speed on this machine",
                                        .details = {},
                                        .examples = "waybill bench encoder\nwaybill bench route"});
  command.require_subcommand(1);
  add_bench_encoder(command);
  add_bench_route(command);
}

}  // namespace waybill::cli
