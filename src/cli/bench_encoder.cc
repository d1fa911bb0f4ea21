// `waybill bench encoder`: sentences a second, latency, and the share of what the kernels could do.
#include "cli/bench_encoder.h"

#include <algorithm>
#include <chrono>
#include <memory>
#include <thread>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "base/cpu.h"
#include "base/file.h"
#include "base/json_writer.h"
#include "cli/command.h"
#include "cli/common_options.h"
#include "cli/locate.h"
#include "cli/output.h"
#include "cli/terminal.h"
#include "embed/bench.h"
#include "embed/text.h"

namespace waybill::cli {
namespace {

using SteadyClock = std::chrono::steady_clock;

struct BenchEncoderOptions {
  std::string config, model, precision, texts;
  unsigned threads = 0;
  double seconds = 1.5;
  bool json = false;
};

// The texts of a file, as often as fits into the time.
struct TextsBench {
  std::size_t texts = 0, tokens = 0;
  double sentences_per_second = 0;  // on all threads; the best pass
  double latency_p50 = 0;           // seconds for one text alone, tokens counted in, one thread
  double share_of_peak = 0;
};

std::vector<std::string> lines_of(std::string_view text) {
  std::vector<std::string> lines;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    if (end > 0) lines.emplace_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return lines;
}

double seconds_since(SteadyClock::time_point start) {
  return std::chrono::duration<double>(SteadyClock::now() - start).count();
}

double median_latency(const embed::Model& model, const std::vector<std::string>& texts, double seconds) {
  embed::Workspace workspace;
  std::vector<embed::TokenId> ids;
  std::vector<float> out(model.dim());
  std::vector<double> times;
  const auto begin = SteadyClock::now();
  for (std::size_t i = 0; times.size() < 16 || seconds_since(begin) < seconds; ++i) {
    const auto start = SteadyClock::now();
    ids.clear();
    model.tokenizer().encode(texts[i % texts.size()], model.config().max_tokens, ids);
    const std::uint32_t offsets[] = {0, static_cast<std::uint32_t>(ids.size())};
    model.forward({ids, offsets}, out, workspace);
    times.push_back(seconds_since(start));
  }
  const auto middle = times.begin() + static_cast<std::ptrdiff_t>(times.size() / 2);
  std::ranges::nth_element(times, middle);
  return *middle;
}

TextsBench bench_texts(const embed::Model& model, const std::vector<std::string>& texts, unsigned threads,
                       double seconds, const embed::EncoderBench& peak) {
  TextsBench result = {.texts = texts.size()};
  std::vector<embed::TokenId> ids;
  for (const std::string& text : texts)
    result.tokens += model.tokenizer().encode(text, model.config().max_tokens, ids);
  double best = 1e9;
  const auto begin = SteadyClock::now();
  do {
    const auto start = SteadyClock::now();
    (void)embed::embed_texts(model, texts, {}, threads);
    best = std::min(best, seconds_since(start));
  } while (seconds_since(begin) < seconds);
  result.sentences_per_second = static_cast<double>(texts.size()) / best;
  result.latency_p50 = median_latency(model, texts, seconds / 2);
  result.share_of_peak = static_cast<double>(ids.size()) / best * peak.operations_per_token /
                         (peak.peak_gops * 1e9 * static_cast<double>(threads));
  return result;
}

void write_head(JsonWriter& json, const embed::Model& model, unsigned threads,
                const embed::EncoderBench& peak) {
  json.key("precision").string(to_string(model.precision())).key("isa").string(to_string(model.isa()));
  json.key("cpu").string(cpu_name()).key("threads").integer(threads);
  json.key("gemm_peak_gops")
      .number(peak.peak_gops)
      .key("operations_per_token")
      .number(peak.operations_per_token, 9);
}

Outcome run_texts(const BenchEncoderOptions& options, const embed::Model& model, unsigned threads) {
  const Result<std::string> contents = read_file(options.texts);
  if (!contents) return std::unexpected(contents.error());
  const std::vector<std::string> texts = lines_of(*contents);
  if (texts.empty())
    return fail(ErrorCode::kInvalidInput,
                fmt::format("{} has no texts; put one on each line", options.texts));
  embed::BenchOptions peak_only;
  peak_only.threads = {};
  peak_only.rounds = 2;
  peak_only.round = std::chrono::milliseconds(50);
  const embed::EncoderBench peak = embed::bench_encoder(model, peak_only);
  const TextsBench bench = bench_texts(model, texts, threads, options.seconds, peak);

  std::string text;
  if (options.json) {
    JsonWriter json(text);
    json.begin_object();
    write_head(json, model, threads, peak);
    json.key("texts").integer(static_cast<std::int64_t>(bench.texts));
    json.key("sentences_per_second").number(bench.sentences_per_second);
    json.key("latency_ms_p50").number(bench.latency_p50 * 1e3);
    json.key("share_of_gemm_peak").number(bench.share_of_peak).end_object();
    text += '\n';
  } else {
    text =
        fmt::format("{} on {}, {} threads: {:.0f} sentences/s ({:.0f} % of the GEMM peak), one alone {}\n",
                    to_string(model.precision()), to_string(model.isa()), threads, bench.sentences_per_second,
                    bench.share_of_peak * 100, human_seconds(bench.latency_p50));
  }
  Output output;
  output.write(text);
  return finish(output);
}

std::string bench_text(const embed::Model& model, const embed::EncoderBench& bench) {
  using Align = Table::Align;
  std::string out =
      fmt::format("{} on {}; GEMM peak {:.0f} GOP/s a thread; {}\n\n", to_string(model.precision()),
                  to_string(model.isa()), bench.peak_gops, cpu_name());
  Table throughput({{"traffic", Align::kLeft},
                    {"threads", Align::kRight},
                    {"sentences/s", Align::kRight},
                    {"tokens/s", Align::kRight},
                    {"of the peak", Align::kRight}});
  for (const embed::BenchThroughput& t : bench.throughput) {
    throughput.add_row({std::string(t.workload), fmt::format("{}", t.threads),
                        fmt::format("{:.0f}", t.sentences_per_second), human_count(t.tokens_per_second),
                        fmt::format("{:.0f} %", t.share_of_peak * 100)});
  }
  Table latency({{"one prompt of", Align::kLeft},
                 {"median", Align::kRight},
                 {"p90", Align::kRight},
                 {"least", Align::kRight}});
  for (const embed::BenchLatency& l : bench.latency) {
    latency.add_row({fmt::format("{} tokens", l.tokens), human_seconds(l.p50_ms * 1e-3),
                     human_seconds(l.p90_ms * 1e-3), human_seconds(l.least_ms * 1e-3)});
  }
  return out + throughput.text() + "\n" + latency.text();
}

std::string bench_json(const embed::Model& model, unsigned threads, const embed::EncoderBench& bench) {
  std::string line;
  JsonWriter json(line);
  json.begin_object();
  write_head(json, model, threads, bench);
  json.key("throughput").begin_array();
  for (const embed::BenchThroughput& t : bench.throughput) {
    json.begin_object().key("workload").string(t.workload).key("threads").integer(t.threads);
    json.key("sentences_per_second")
        .number(t.sentences_per_second)
        .key("tokens_per_second")
        .number(t.tokens_per_second);
    json.key("share_of_gemm_peak").number(t.share_of_peak).end_object();
  }
  json.end_array().key("latency").begin_array();
  for (const embed::BenchLatency& l : bench.latency) {
    json.begin_object()
        .key("tokens")
        .integer(static_cast<std::int64_t>(l.tokens))
        .key("p50_ms")
        .number(l.p50_ms);
    json.key("p90_ms").number(l.p90_ms).key("least_ms").number(l.least_ms).end_object();
  }
  json.end_array().end_object();
  return line + '\n';
}

Outcome run_bench_encoder(const BenchEncoderOptions& options) {
  const Result<ModelChoice> choice = choose_model(options.model, options.config, options.precision);
  if (!choice) return std::unexpected(choice.error());
  const Result<embed::Model> model = load_model(*choice);
  if (!model) return std::unexpected(model.error());
  const unsigned cores = std::max(1U, std::thread::hardware_concurrency());
  const unsigned threads = options.threads == 0 ? cores : options.threads;
  if (!options.texts.empty()) return run_texts(options, *model, threads);

  embed::BenchOptions how;
  how.threads = threads == 1 ? std::vector<unsigned>{1} : std::vector<unsigned>{1, threads};
  how.round = std::chrono::milliseconds(std::max(10, static_cast<int>(options.seconds * 1e3 / how.rounds)));
  ProgressLine progress;
  const embed::EncoderBench bench = embed::bench_encoder(*model, how, progress.reporter());
  progress.clear();
  Output output;
  output.write(options.json ? bench_json(*model, threads, bench) : bench_text(*model, bench));
  return finish(output);
}

}  // namespace

void add_bench_encoder(CLI::App& parent) {
  auto options = std::make_shared<BenchEncoderOptions>();
  CLI::App& command = add_command(
      parent,
      {.name = "encoder",
       .summary = "measure sentences a second and latency",
       .details =
           "Short, long and mixed traffic on one thread and on all, the latency of single prompts, and both "
           "as "
           "a share of what the matrix kernels reach in the same run. With --texts, the texts of a file "
           "instead. Best of several rounds: neighbours on the machine only make a run slower.",
       .examples = "waybill bench encoder\n"
                   "waybill bench encoder --precision int8 --threads 2 --seconds 3\n"
                   "waybill bench encoder --texts prompts.txt --json"});
  add_config_option(command, options->config);
  add_model_option(command, options->model);
  add_precision_option(command, options->precision);
  add_threads_option(command, options->threads);
  command.add_option("--seconds", options->seconds, "For each figure")
      ->type_name("S")
      ->check(CLI::Range(0.01, 3600.0));
  add_file(command, "--texts", options->texts, "Texts to measure with, one a line");
  add_json_flag(command, options->json, "One JSON object");
  set_action(command, [options] { return run_bench_encoder(*options); });
}

}  // namespace waybill::cli
