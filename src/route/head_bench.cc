// What the heads of both tiers cost and how well they decide, on the validation splits of data/.
// head_bench [MODEL_FOLDER] [FOLDER_FOR_EMBEDDINGS]
#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <ctime>
#include <filesystem>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "embed/model.h"
#include "embed/static_table.h"
#include "route/evaluation.h"
#include "route/metrics.h"
#include "route/training_set.h"

namespace {

using namespace waybill;
using namespace waybill::route;
using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}
double cpu_seconds() { return static_cast<double>(std::clock()) / CLOCKS_PER_SEC; }

template <class T>
T value_or_exit(Result<T> result) {
  if (result) return std::move(*result);
  fmt::print(stderr, "{}\n", result.error().message);
  std::exit(1);
}

struct Split {
  std::vector<std::string> texts;
  std::vector<std::uint32_t> labels;  // Judgement::label
  std::vector<float> full, fast;      // embeddings and static vectors
};

class Bench {
 public:
  Bench(const embed::Model& model, const embed::StaticTable& table, std::filesystem::path folder)
      : model_(model), table_(table), folder_(std::move(folder)) {}

  void run(const std::string& name, std::size_t shots, std::uint64_t seed) {
    const std::filesystem::path data = std::filesystem::path("data") / name;
    const Dataset train = value_or_exit(load_dataset(data / "train.tsv"));
    const config::Config config = config_of_examples(train, draw_shots(train, shots, seed));
    std::size_t ignored = 0;
    TrainingSet set = collect_training_set(config, {}, ignored);
    embed_training_set(set, model_, {}, 0, folder_ / "utterances.bin", {});
    Dataset test = value_or_exit(load_dataset(data / "validation.tsv"));
    if (std::filesystem::exists(data / "oos_validation.tsv")) {
      for (Example& e : value_or_exit(load_dataset(data / "oos_validation.tsv")).examples)
        test.examples.push_back(std::move(e));
    }
    Split split;
    std::vector<std::string> names;
    for (const config::Route& route : config.routes) names.push_back(route.name);
    for (const Example& e : test.examples) {
      split.texts.push_back(e.text);
      const auto at = std::ranges::find(names, e.label);
      split.labels.push_back(at == names.end() ? Decision::kNoRoute
                                               : static_cast<std::uint32_t>(at - names.begin()));
    }
    TrainingSet wanted;
    wanted.texts = split.texts;
    embed_training_set(wanted, model_, {}, 0, folder_ / "utterances.bin", {});
    const std::string what = fmt::format("{} {}", name, shots == 0 ? "all" : std::to_string(shots));
    measure(what + " encoder", set.head_data(), wanted.embeddings, split.labels, names, {});
    const std::vector<float> fast = statically(set.texts);
    const std::vector<float> wanted_fast = statically(split.texts);
    measure(what + " static", set.head_data(fast, table_.dim()), wanted_fast, split.labels, names, {});
    HeadOptions linear;
    linear.exact = linear.landmarks = 0;
    measure(what + " static, linear", set.head_data(fast, table_.dim()), wanted_fast, split.labels, names,
            linear);
  }

 private:
  std::vector<float> statically(const std::vector<std::string>& texts) {
    std::vector<float> out(texts.size() * table_.dim());
    std::vector<embed::TokenId> ids;
    for (std::size_t i = 0; i < texts.size(); ++i) {
      ids.clear();
      model_.tokenizer().encode(texts[i], model_.config().max_tokens, ids);
      table_.embed(ids, std::span(out).subspan(i * table_.dim(), table_.dim()));
    }
    return out;
  }

  void measure(const std::string& what, const LabelledEmbeddings& data, const std::vector<float>& vectors,
               const std::vector<std::uint32_t>& labels, const std::vector<std::string>& names,
               const HeadOptions& options) {
    const auto start = Clock::now();
    const double cpu = cpu_seconds();
    const Head head = value_or_exit(Head::fit(data, options));
    const double fit = seconds_since(start), fit_cpu = cpu_seconds() - cpu;

    Head::Scratch scratch;
    std::vector<float> probabilities(names.size());
    std::vector<Judgement> judgements;
    // Short pieces, for the best of them to be free of what else the machine does.
    constexpr std::size_t kPiece = 25;
    double best = 1e9;
    for (int round = 0; round < 5; ++round) {
      judgements.clear();
      for (std::size_t first = 0; first < labels.size(); first += kPiece) {
        const std::size_t end = std::min(first + kPiece, labels.size());
        const auto begin = Clock::now();
        for (std::size_t i = first; i < end; ++i) {
          const auto vector = std::span(vectors).subspan(i * head.dim(), head.dim());
          const HeadDecision d = head.score(vector, probabilities, scratch);
          judgements.push_back({.label = labels[i],
                                .best = d.best,
                                .decided = d.accepted ? d.best : Decision::kNoRoute,
                                .score = d.probability});
        }
        if (end - first == kPiece) best = std::min(best, seconds_since(begin) / kPiece);
      }
    }
    const Metrics m = compute_metrics(judgements, names);
    fmt::print(
        "{:<26} {:>6} {:>8.2f} {:>8.2f} {:>9.2f} {:>9.2f} {:>7.2f} {:>7.2f} {:>7.2f} {:>7.4f} {:>6.3f}\n",
        what, data.labels.size(), fit, fit_cpu, best * 1e6, 100 * m.accuracy,
        100 * head.statistics().accuracy, 100 * m.kept, 100 * m.out_of_scope_recall, m.out_of_scope_auroc,
        m.calibration_error);
    std::fflush(stdout);
  }

  const embed::Model& model_;
  const embed::StaticTable& table_;
  std::filesystem::path folder_;
};

}  // namespace

int main(int argc, char** argv) {
  const embed::Model model = value_or_exit(embed::Model::load(
      {.folder = argc > 1 ? argv[1] : "models/all-MiniLM-L6-v2", .precision = {}, .isa = {}}));
  const embed::StaticTable table = value_or_exit(embed::StaticTable::load_or_distill(model, 0));
  const std::filesystem::path folder = argc > 2
                                           ? std::filesystem::path(argv[2])
                                           : std::filesystem::temp_directory_path() / "waybill-head-bench";
  Bench bench(model, table, folder);
  fmt::print("{:<26} {:>6} {:>8} {:>8} {:>9} {:>9} {:>7} {:>7} {:>7} {:>7} {:>6}\n", "", "texts", "fit, s",
             "CPU, s", "us", "accuracy", "left", "kept", "found", "AUROC", "ECE");
  for (const std::string name : {"banking77", "clinc150"}) {
    for (const std::size_t shots : {std::size_t{10}, std::size_t{20}, std::size_t{0}}) {
      if (argc > 3 && std::string(argv[3]) != std::to_string(shots)) continue;
      bench.run(name, shots, 1);
    }
  }
  return 0;
}
