// From texts to embeddings on the calling thread (and a few helpers): what the command line, fitting and the
// library use. The server goes through the batcher (batcher.h).
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/progress.h"
#include "base/result.h"
#include "embed/model.h"

namespace waybill::embed {

// What becomes of a text with more tokens than the model takes.
enum class LongText : std::uint8_t {
  kHead,     // the first max_tokens
  kTail,     // the last max_tokens
  kWindows,  // windows of max_tokens over the text (at most `max_windows`), their embeddings averaged by length and normalised
};

struct TextOptions {
  LongText long_text = LongText::kHead;
  std::size_t max_windows = 8;
};

// The sequences that stand for one text: one for head and tail, one or more for windows. Appends to `ids` and
// `offsets` (which starts as {0}); returns how many sequences were appended. This is the one place that knows
// how a text is cut; the batcher and the synchronous path both use it.
std::size_t tokenize(const Tokenizer& tokenizer, const ModelConfig& config, std::string_view text,
                     const TextOptions& options, std::vector<TokenId>& ids, std::vector<std::uint32_t>& offsets);

// Averages the windows of one text, weighted by their number of pieces, and normalises. windows: [lengths.size(), dim].
void average_windows(std::span<const float> windows, std::span<const std::uint32_t> lengths, std::span<float> out);

// Embeds many texts on `threads` threads (0: one per core), longest first so that batches are even.
// Returns [texts.size(), dim] row-major. An empty text is a text like any other.
[[nodiscard]] std::vector<float> embed_texts(const Model& model, std::span<const std::string> texts,
                                             const TextOptions& options = {}, unsigned threads = 0,
                                             const Progress& progress = {});

}  // namespace waybill::embed
