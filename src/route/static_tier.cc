#include "route/static_tier.h"

#include <algorithm>
#include <utility>

namespace waybill::route {
namespace {

// [texts.size(), table.dim()]
std::vector<float> embed_statically(const embed::StaticTable& table, const embed::Model& model,
                                    const embed::TextOptions& text, std::span<const std::string> texts) {
  std::vector<float> out(texts.size() * table.dim());
  std::vector<embed::TokenId> ids;
  std::vector<std::uint32_t> offsets;
  for (std::size_t i = 0; i < texts.size(); ++i) {
    ids.clear();
    offsets.assign(1, 0);
    embed::tokenize(model.tokenizer(), model.config(), texts[i], text, ids, offsets);
    table.embed(ids, std::span(out).subspan(i * table.dim(), table.dim()));
  }
  return out;
}

// The static decision agrees when the encoder takes the same route; one that the encoder rejects does not.
AgreementGate calibrated_gate(std::span<const HeadDecision> own, std::span<const HeadDecision> encoder,
                              double agreement) {
  std::vector<AgreementSample> samples(own.size());
  for (std::size_t i = 0; i < own.size(); ++i) {
    samples[i] = {.margin = own[i].margin, .agrees = encoder[i].accepted && own[i].best == encoder[i].best};
  }
  return AgreementGate::fit(samples, agreement);
}

// What the head of this tier may read for a decision: some two microseconds of the second cache.
constexpr std::size_t kMostBytes = 160 * 1024;

// On the kernel where its landmarks fit; a linear head elsewhere, of dim rows whatever the number of
// utterances.
HeadOptions affordable(HeadOptions options, std::size_t dim, std::size_t routes) {
  options.exact = kMostBytes / (dim + sizeof(std::uint16_t) * (routes + 1));
  options.landmarks = 0;
  return options;
}

}  // namespace

StaticTier::StaticTier(embed::StaticTable table, FittedHead fitted, AgreementGate gate)
    : table_(std::move(table)), head_(std::move(fitted.head)), gate_(gate), note_(std::move(fitted.note)) {}

Result<std::unique_ptr<StaticTier>> StaticTier::make(embed::StaticTable table, const Sources& sources,
                                                     FitMode mode) {
  const std::vector<float> vectors = embed_statically(table, sources.model, sources.text, sources.set.texts);
  const LabelledEmbeddings data = sources.set.head_data(vectors, table.dim());
  Result<FittedHead> fitted =
      fit_or_load(data, affordable(sources.head, table.dim(), data.routes), sources.cache_folder, mode);
  if (!fitted) return std::unexpected(std::move(fitted.error()));
  const AgreementGate gate = calibrated_gate(fitted->held_out, sources.encoder, sources.agreement);
  return std::unique_ptr<StaticTier>(new StaticTier(std::move(table), std::move(*fitted), gate));
}

HeadDecision StaticTier::score(std::span<const embed::TokenId> ids, std::vector<float>& embedding,
                               std::vector<float>& probabilities, Head::Scratch& scratch) const {
  embedding.resize(table_.dim());
  probabilities.resize(head_.routes());
  table_.embed(ids, embedding);
  return head_.score(embedding, probabilities, scratch);
}

}  // namespace waybill::route
