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
#include "embed/model.h"
#include "embed/model_config.h"
#include "embed/tokenizer.h"

namespace waybill::embed {

// What becomes of a text with more tokens than the model takes. Ten megabytes cost what the part that is
// looked at costs, in time and in memory.
enum class LongText : std::uint8_t {
  kHead,  // the first max_tokens; no more of the text is read
  // The last max_tokens. The text is read from the end backwards to a white space; only where there is none
  // (one word of kilobytes) may the first of the pieces differ from those of the whole text.
  kTail,
  // The first and the last pieces, half of either, as one sequence; what is between them is left out.
  kEnds,
  // Windows of at most max_tokens, their embeddings averaged by length and normalised. A text that
  // `max_windows` windows can cover is divided evenly; of a longer one, that many windows are spread over it
  // by bytes (the first at its head, the last at its tail, each from a white space on).
  kWindows,
};

struct TextOptions {
  LongText long_text = LongText::kHead;
  std::size_t max_windows = 8;
};

// The sequences that stand for one text: one or more for windows, else one. Appends to `ids` and
// `offsets` (which starts as {0}); returns how many sequences were appended. This is the one place that knows
// how a text is cut; the batcher and the synchronous path both use it. Allocates only when the vectors grow.
std::size_t tokenize(const Tokenizer& tokenizer, const ModelConfig& config, std::string_view text,
                     const TextOptions& options, std::vector<TokenId>& ids,
                     std::vector<std::uint32_t>& offsets);

// Averages the windows of one text, weighted by their number of pieces, and normalises (one window is
// copied). windows: [lengths.size(), out.size()].
void average_windows(std::span<const float> windows, std::span<const std::uint32_t> lengths,
                     std::span<float> out);

// Embeds many texts on `threads` threads (0: one per core), longest first so that the threads end together.
// Returns [texts.size(), dim] row-major, bit-equal for any number of threads. An empty text is a text like
// any other.
[[nodiscard]] std::vector<float> embed_texts(const Model& model, std::span<const std::string> texts,
                                             const TextOptions& options = {}, unsigned threads = 0,
                                             const Progress& progress = {});

}  // namespace waybill::embed
