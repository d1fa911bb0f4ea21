#include "route/decide_batch.h"

#include <cstddef>
#include <optional>

#include "embed/text.h"

namespace waybill::route {

std::vector<Decision> decide_batch(const Router& router, const embed::Model& model,
                                   std::span<const std::string> prompts, unsigned threads,
                                   DecideScratch& scratch, const Progress& progress) {
  std::vector<Decision> decisions(prompts.size());
  std::vector<std::size_t> open;  // those that only the encoder can tell
  std::vector<std::string> texts;
  for (std::size_t i = 0; i < prompts.size(); ++i) {
    if (const std::optional<Decision> cheap = router.decide_cheaply(prompts[i], scratch)) {
      decisions[i] = *cheap;
    } else {
      open.push_back(i);
      texts.push_back(prompts[i]);
    }
  }
  if (open.empty()) return decisions;
  const std::vector<float> embeddings =
      embed::embed_texts(model, texts, router.text_options(), threads, progress);
  std::vector<std::size_t> close;  // those that the exact model has to decide
  texts.clear();
  for (std::size_t j = 0; j < open.size(); ++j) {
    const auto embedding = std::span(embeddings).subspan(j * model.dim(), model.dim());
    if (const std::optional<Decision> decision =
            router.decide_embedding(prompts[open[j]], embedding, scratch)) {
      decisions[open[j]] = *decision;
    } else {
      close.push_back(open[j]);
      texts.push_back(prompts[open[j]]);
    }
  }
  if (close.empty()) return decisions;
  const std::vector<float> exact =
      embed::embed_texts(*router.exact_model(), texts, router.text_options(), threads, progress);
  for (std::size_t j = 0; j < close.size(); ++j) {
    const auto embedding = std::span(exact).subspan(j * model.dim(), model.dim());
    decisions[close[j]] = router.decide_exact_embedding(prompts[close[j]], embedding, scratch);
  }
  return decisions;
}

}  // namespace waybill::route
