#include "route/training_set.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <unordered_map>
#include <unordered_set>

#include <fmt/format.h>

#include "base/hash.h"
#include "route/utterance_cache.h"

namespace waybill::route {
namespace {

// The examples' texts by route name; out-of-scope ones under the empty name.
std::unordered_map<std::string_view, std::vector<std::string_view>> by_route(const config::Config& config,
                                                                             const Dataset& examples,
                                                                             std::size_t& ignored) {
  std::unordered_map<std::string_view, std::vector<std::string_view>> out;
  for (const config::Route& route : config.routes) out[route.name];
  for (const Example& example : examples.examples) {
    if (const auto found = out.find(example.label); found != out.end()) {
      found->second.push_back(example.text);
    } else if (example.label == config.default_route || is_out_of_scope_label(example.label)) {
      out[""].push_back(example.text);
    } else {
      ++ignored;
    }
  }
  return out;
}

class TextAdder {
 public:
  explicit TextAdder(TrainingSet& set) : set_(set) {}
  void begin_group() { seen_.clear(); }
  bool add(std::string_view text) {
    if (!seen_.insert(std::string(text)).second) return false;
    set_.texts.emplace_back(text);
    return true;
  }

 private:
  TrainingSet& set_;
  std::unordered_set<std::string> seen_;
};

}  // namespace

LabelledEmbeddings TrainingSet::head_data(std::span<const float> vectors,
                                          std::size_t vector_dim) const noexcept {
  return {.embeddings = vectors.first(utterances() * vector_dim),
          .labels = labels,
          .dim = vector_dim,
          .routes = routes,
          .out_of_scope = vectors.subspan(utterances() * vector_dim)};
}

TrainingSet collect_training_set(const config::Config& config, const Dataset& examples,
                                 std::size_t& ignored) {
  ignored = 0;
  auto extra = by_route(config, examples, ignored);
  TrainingSet set;
  set.routes = config.routes.size();
  TextAdder adder(set);
  for (std::uint32_t i = 0; i < config.routes.size(); ++i) {
    adder.begin_group();
    const auto add = [&](std::string_view text) {
      if (adder.add(text)) set.labels.push_back(i);
    };
    for (const config::Utterance& utterance : config.routes[i].utterances) add(utterance.text);
    for (const std::string_view text : extra[config.routes[i].name]) add(text);
  }
  adder.begin_group();
  for (const config::Utterance& utterance : config.head.out_of_scope) adder.add(utterance.text);
  for (const std::string_view text : extra[""]) adder.add(text);
  return set;
}

EmbedReport embed_training_set(TrainingSet& set, const embed::Model& model, const embed::TextOptions& options,
                               unsigned threads, const std::filesystem::path& cache_file,
                               const Progress& progress) {
  const auto start = std::chrono::steady_clock::now();
  EmbedReport report;
  set.dim = model.dim();
  set.embeddings.resize(set.texts.size() * set.dim);
  const std::uint64_t hash = embedding_hash(model, options);
  const auto row = [&set](std::size_t i) { return std::span(set.embeddings).subspan(i * set.dim, set.dim); };

  UtteranceCache cache(cache_file);
  if (!cache.note().empty()) report.notes.push_back(cache.note());
  std::vector<std::size_t> missing;
  std::vector<std::string> missing_texts;
  for (std::size_t i = 0; i < set.texts.size(); ++i) {
    const std::span<const float> found = cache.find(UtteranceCache::key(set.texts[i], hash), set.dim);
    std::copy(found.begin(), found.end(), row(i).begin());
    if (!found.empty()) continue;
    missing.push_back(i);
    missing_texts.push_back(set.texts[i]);
  }
  if (!missing.empty()) {
    const std::vector<float> embeddings =
        embed::embed_texts(model, missing_texts, options, threads, progress);
    for (std::size_t j = 0; j < missing.size(); ++j) {
      const auto embedding = std::span(embeddings).subspan(j * set.dim, set.dim);
      std::copy(embedding.begin(), embedding.end(), row(missing[j]).begin());
      cache.insert(UtteranceCache::key(missing_texts[j], hash), embedding);
    }
    if (const Status saved = cache.save(); !saved) {
      report.notes.push_back(fmt::format("utterance cache not written: {}", saved.error().message));
    }
  }
  report.embedded = missing.size();
  report.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  return report;
}

namespace {

embed::TextOptions text_options(const config::Encoder& encoder, embed::LongText automatic) noexcept {
  embed::TextOptions options;
  switch (encoder.long_text) {
    case config::LongText::kAuto:
      options.long_text = automatic;
      break;
    case config::LongText::kHead:
      options.long_text = embed::LongText::kHead;
      break;
    case config::LongText::kTail:
      options.long_text = embed::LongText::kTail;
      break;
    case config::LongText::kEnds:
      options.long_text = embed::LongText::kEnds;
      break;
    case config::LongText::kWindows:
      options.long_text = embed::LongText::kWindows;
      break;
  }
  options.max_windows = encoder.max_windows;
  return options;
}

}  // namespace

embed::TextOptions text_options(const config::Config& config) noexcept {
  return text_options(config.encoder, embed::LongText::kEnds);
}

embed::TextOptions embedding_text_options(const config::Config& config) noexcept {
  return text_options(config.encoder, embed::LongText::kHead);
}

std::uint64_t embedding_hash(const embed::Model& model, const embed::TextOptions& options) noexcept {
  const std::array<std::uint64_t, 3> parts = {
      model.hash(), static_cast<std::uint64_t>(options.long_text),
      options.long_text == embed::LongText::kWindows ? options.max_windows : std::uint64_t{0}};
  return hash64(std::as_bytes(std::span(parts)));
}

}  // namespace waybill::route
