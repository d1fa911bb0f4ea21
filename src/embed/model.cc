#include "embed/model.h"

#include <algorithm>
#include <string>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/hash.h"
#include "embed/calibrate.h"
#include "embed/kernels/kernels.h"
#include "embed/model_folder.h"
#include "embed/packed_weights.h"

namespace waybill::embed {
namespace {

// What this CPU and this build can compute `precision` with, fastest first.
std::vector<Isa> usable(Precision precision) {
  std::vector<Isa> out = available(precision);
  std::erase_if(out, [precision](Isa isa) { return kernels::find_kernels(precision, isa) == nullptr; });
  return out;
}

std::vector<std::string_view> names(const std::vector<Isa>& isas) {
  std::vector<std::string_view> out;
  for (const Isa isa : isas) out.push_back(to_string(isa));
  return out;
}

Result<PackedWeights::Target> choose_target(const ModelOptions& options, const ModelFolder& folder) {
  const Precision precision = options.precision.value_or(default_precision());
  const std::vector<Isa> isas = usable(precision);
  if (isas.empty()) {
    std::vector<std::string_view> others;
    for (const Precision other : kAllPrecisions) {
      if (!usable(other).empty()) others.push_back(to_string(other));
    }
    return fail(ErrorCode::kUnsupported,
                fmt::format("precision {} needs instructions that this CPU does not have; it can do {}",
                            to_string(precision), fmt::join(others, ", ")),
                "precision");
  }
  const Isa isa = options.isa.value_or(isas.front());
  if (std::find(isas.begin(), isas.end(), isa) == isas.end()) {
    return fail(ErrorCode::kUnsupported,
                fmt::format("{} on {} is not possible on this CPU; for {} it has {}", to_string(precision),
                            to_string(isa), to_string(precision), fmt::join(names(isas), ", ")),
                "isa");
  }
  return PackedWeights::Target{precision, isa, folder.fingerprint()};
}

Result<PackedWeights> pack(const ModelFolder& folder, const Tokenizer& tokenizer,
                           const PackedWeights::Target& target) {
  OutlierChannels outliers;
  if (target.precision == Precision::kInt8) {
    constexpr Precision kPrecise = Precision::kInt16;
    Result<OutlierChannels> found =
        find_outliers(folder, kPrecise, usable(kPrecise).front(), tokenizer.cls_id(), tokenizer.sep_id());
    if (!found) return std::unexpected(found.error());
    outliers = std::move(*found);
  }
  Result<PackedWeights> packed = PackedWeights::pack(folder, target, outliers);
  folder.weights.drop_pages();
  return packed;
}

// From the cache file, or packed and then cached. Mapped where possible: the pages are shared by all
// processes and can be dropped.
Result<PackedWeights> load_weights(const ModelOptions& options, const ModelFolder& folder,
                                   const Tokenizer& tokenizer, const PackedWeights::Target& target,
                                   LoadReport& report) {
  if (!options.use_cache_file) return pack(folder, tokenizer, target);
  const std::filesystem::path path =
      folder.path / ".waybill" /
      fmt::format("{}-{}.pack", to_string(target.precision), to_string(target.isa));
  Result<PackedWeights> cached = PackedWeights::open(path, folder.config, target);
  if (cached) {
    report.from_cache_file = true;
    return cached;
  }
  if (cached.error().code != ErrorCode::kNotFound) report.cache_note = cached.error().message;
  Result<PackedWeights> packed = pack(folder, tokenizer, target);
  if (!packed) return packed;
  if (const Status saved = packed->save(path); !saved) {
    report.cache_note = saved.error().message;
    return packed;
  }
  Result<PackedWeights> mapped = PackedWeights::open(path, folder.config, target);
  return mapped ? std::move(mapped) : std::move(packed);
}

}  // namespace

struct Workspace::Impl {
  EncoderBuffers buffers;
};

Workspace::Workspace() : impl_(std::make_unique<Impl>()) {}
Workspace::Workspace(Workspace&&) noexcept = default;
Workspace& Workspace::operator=(Workspace&&) noexcept = default;
Workspace::~Workspace() = default;

struct Model::Impl {
  ModelFolder folder;
  Tokenizer tokenizer;
  PackedWeights::Target target;
  PackedWeights weights;
  std::optional<WordTable> words;
  EncoderParts parts;
};

Model::Model(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Model::Model(Model&&) noexcept = default;
Model& Model::operator=(Model&&) noexcept = default;
Model::~Model() = default;

Result<Model> Model::load(const ModelOptions& options, LoadReport* report) {
  Result<ModelFolder> folder = ModelFolder::open(options.folder);
  if (!folder) return std::unexpected(folder.error());
  const Result<PackedWeights::Target> target = choose_target(options, *folder);
  if (!target) return std::unexpected(target.error());
  Result<Tokenizer> tokenizer = Tokenizer::load(folder->transformer);
  if (!tokenizer) return std::unexpected(tokenizer.error());
  const ModelConfig& config = folder->config;
  if (tokenizer->vocabulary_size() > config.vocabulary) {
    return fail(
        ErrorCode::kCorrupt,
        fmt::format(
            "{}: the tokenizer has {} words, but config.json says vocab_size {}; the files are of different "
            "models",
            options.folder.string(), tokenizer->vocabulary_size(), config.vocabulary));
  }
  LoadReport ignored;
  LoadReport& notes = report != nullptr ? *report : ignored;
  notes = {};
  Result<PackedWeights> weights = load_weights(options, *folder, *tokenizer, *target, notes);
  if (!weights) return std::unexpected(weights.error());
  notes.weight_bytes = weights->bytes();

  Result<Tensor> words =
      folder->tensor("embeddings.word_embeddings.weight", std::vector{config.vocabulary, config.hidden});
  if (!words) return std::unexpected(words.error());
  auto impl = std::make_unique<Impl>(std::move(*folder), std::move(*tokenizer), *target, std::move(*weights),
                                     std::nullopt, EncoderParts{});
  impl->words.emplace(std::move(*words), impl->folder.weights.file());
  impl->parts = {&impl->folder.config, kernels::find_kernels(target->precision, target->isa),
                 &impl->weights.view(), &*impl->words};
  return Model(std::move(impl));
}

void Model::forward(const PackedBatch& batch, std::span<float> out, Workspace& workspace) const {
  encode(impl_->parts, batch, out, workspace.impl_->buffers);
}

const ModelConfig& Model::config() const noexcept { return impl_->folder.config; }
const Tokenizer& Model::tokenizer() const noexcept { return impl_->tokenizer; }
const EncoderParts& Model::parts() const noexcept { return impl_->parts; }
Precision Model::precision() const noexcept { return impl_->target.precision; }
Isa Model::isa() const noexcept { return impl_->target.isa; }
const std::filesystem::path& Model::folder() const noexcept { return impl_->folder.path; }

void Model::drop_pages() const noexcept { impl_->weights.drop_pages(); }

std::uint64_t Model::hash() const noexcept {
  const std::uint64_t parts[] = {impl_->target.fingerprint,
                                 static_cast<std::uint64_t>(impl_->target.precision),
                                 PackedWeights::kVersion};
  return hash64(std::as_bytes(std::span(parts)));
}

}  // namespace waybill::embed
