#include <algorithm>
#include <atomic>
#include <functional>
#include <mutex>
#include <numeric>

#include "embed/text.h"
#include "embed/threads.h"

namespace waybill::embed {
namespace {

constexpr std::size_t kBatchTokens = 256;      // nothing is gained beyond
constexpr std::size_t kTextsPerRound = 8'192;  // bounds the memory that ids and windows take

// The sequences of some texts: those of text i are first[i] .. first[i + 1].
struct Sequences {
  std::vector<TokenId> ids;
  std::vector<std::uint32_t> offsets{0};
  std::vector<std::uint32_t> first;

  [[nodiscard]] std::size_t count() const { return offsets.size() - 1; }
  [[nodiscard]] std::uint32_t length(std::size_t s) const { return offsets[s + 1] - offsets[s]; }
  void append(const Sequences& other) {
    const auto ids_before = static_cast<std::uint32_t>(ids.size());
    const auto sequences_before = static_cast<std::uint32_t>(count());
    ids.insert(ids.end(), other.ids.begin(), other.ids.end());
    for (const std::uint32_t f : other.first) first.push_back(sequences_before + f);
    for (std::size_t i = 1; i < other.offsets.size(); ++i) offsets.push_back(ids_before + other.offsets[i]);
  }
};

Sequences tokenize_all(const Model& model, std::span<const std::string> texts, const TextOptions& options,
                       unsigned threads) {
  const unsigned used = threads_for(threads, texts.size() / 256);
  std::vector<Sequences> parts(used);
  run_on_threads(used, [&](unsigned t) {
    Sequences& part = parts[t];
    for (std::size_t i = texts.size() * t / used; i < texts.size() * (t + 1) / used; ++i) {
      part.first.push_back(static_cast<std::uint32_t>(part.count()));
      tokenize(model.tokenizer(), model.config(), texts[i], options, part.ids, part.offsets);
    }
  });
  Sequences all = std::move(parts[0]);
  for (unsigned t = 1; t < used; ++t) all.append(parts[t]);
  all.first.push_back(static_cast<std::uint32_t>(all.count()));
  return all;
}

// Computes the embeddings of all sequences into out: [sequences.count(), dim].
class SequenceEmbedder {
 public:
  SequenceEmbedder(const Model& model, const Sequences& sequences, std::span<float> out)
      : model_(model), sequences_(sequences), out_(out), order_(sequences.count()) {
    std::iota(order_.begin(), order_.end(), 0U);
    std::ranges::sort(order_, std::greater<>(), [&](std::uint32_t s) { return sequences_.length(s); });
  }

  void run(unsigned threads, const std::function<void(std::size_t done)>& progress) {
    threads = threads_for(threads, sequences_.count());
    const std::size_t budget = std::min(kBatchTokens, (sequences_.ids.size() + threads - 1) / threads);
    for (std::size_t i = 0, tokens = 0; i < order_.size(); ++i) {
      const std::size_t length = sequences_.length(order_[i]);
      if (starts_.empty() || tokens + length > budget) starts_.push_back(i), tokens = 0;
      tokens += length;
    }
    starts_.push_back(order_.size());
    run_on_threads(threads_for(threads, starts_.size() - 1), [&](unsigned) { work(progress); });
  }

 private:
  void work(const std::function<void(std::size_t)>& progress) {
    Workspace workspace;
    std::vector<TokenId> ids;
    std::vector<std::uint32_t> offsets;
    std::vector<float> rows;
    const std::size_t dim = model_.dim();
    for (std::size_t b; (b = next_.fetch_add(1)) + 1 < starts_.size();) {
      const std::span<const std::uint32_t> batch(order_.begin() + static_cast<std::ptrdiff_t>(starts_[b]),
                                                 starts_[b + 1] - starts_[b]);
      ids.clear();
      offsets.assign(1, 0);
      for (const std::uint32_t s : batch) {
        const auto begin = sequences_.ids.begin();
        ids.insert(ids.end(), begin + sequences_.offsets[s], begin + sequences_.offsets[s + 1]);
        offsets.push_back(static_cast<std::uint32_t>(ids.size()));
      }
      rows.resize(batch.size() * dim);
      model_.forward({ids, offsets}, rows, workspace);
      for (std::size_t i = 0; i < batch.size(); ++i) std::copy_n(&rows[i * dim], dim, &out_[batch[i] * dim]);
      const std::lock_guard lock(progress_mutex_);
      done_ += batch.size();
      progress(done_);
    }
  }

  const Model& model_;
  const Sequences& sequences_;
  const std::span<float> out_;
  std::vector<std::uint32_t> order_;  // sequences, longest first
  std::vector<std::size_t> starts_;   // of the batches, in order_
  std::atomic<std::size_t> next_{0};
  std::mutex progress_mutex_;
  std::size_t done_ = 0;  // guarded by progress_mutex_
};

}  // namespace

std::vector<float> embed_texts(const Model& model, std::span<const std::string> texts,
                               const TextOptions& options, unsigned threads, const Progress& progress) {
  const std::size_t dim = model.dim();
  std::vector<float> out(texts.size() * dim);
  std::vector<float> windows;
  std::vector<std::uint32_t> lengths;
  for (std::size_t begin = 0; begin < texts.size(); begin += kTextsPerRound) {
    const auto round = texts.subspan(begin, std::min(kTextsPerRound, texts.size() - begin));
    const Sequences sequences = tokenize_all(model, round, options, threads);
    const bool one_each = sequences.count() == round.size();
    const std::span<float> rows = std::span(out).subspan(begin * dim, round.size() * dim);
    if (!one_each) windows.resize(sequences.count() * dim);
    SequenceEmbedder embedder(model, sequences, one_each ? rows : std::span(windows));
    embedder.run(threads, [&](std::size_t done) {
      report(progress, "embedding", begin + done * round.size() / sequences.count(), texts.size());
    });
    if (one_each) continue;
    for (std::size_t i = 0; i < round.size(); ++i) {
      const std::size_t first = sequences.first[i], count = sequences.first[i + 1] - first;
      lengths.clear();
      for (std::size_t s = first; s < first + count; ++s) lengths.push_back(sequences.length(s) - 2);
      average_windows(std::span<const float>(windows).subspan(first * dim, count * dim), lengths,
                      rows.subspan(i * dim, dim));
    }
  }
  return out;
}

}  // namespace waybill::embed
