// When two prompts are the same prompt: the key of the exact cache.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/hash.h"
#include "embed/tokenizer.h"

namespace waybill::route {

// Whether the case of ASCII letters changes the token ids of no text without '['. Looks through the
// vocabulary (about a millisecond).
[[nodiscard]] bool case_is_irrelevant(const embed::Tokenizer& tokenizer);

// Maps prompts that cannot differ in their token ids, and so not in their decision, to one spelling. Only
// what is provable for BERT WordPiece:
//
// - Runs of space, tab, CR and LF become one space, and those at the ends go: the tokenizer splits words
// there and
//   nowhere looks at how much there was. (No other white space: vertical tab and form feed are control
//   characters, which the tokenizer drops, joining the words beside them.)
// - A-Z become a-z when the tokenizer lower-cases and the prompt has no '[', so that no special token
// ("[SEP]" is
//   one, "[sep]" is not) can stand in it. Letters outside ASCII stay as they are.
//
// Immutable and thread-safe.
class PromptNormalizer {
 public:
  // Beyond this size a prompt is not worth remembering: reading it twice costs more than it can save.
  static constexpr std::size_t kMaxBytes = 64U << 10;

  // folds_case: case_is_irrelevant() to the tokenizer.
  explicit PromptNormalizer(bool folds_case) : folds_case_(folds_case) {}

  [[nodiscard]] bool folds_case() const noexcept { return folds_case_; }

  // Replaces `out` by the normalised prompt. Allocates only when `out` has to grow.
  void normalize(std::string_view prompt, std::string& out) const;

 private:
  bool folds_case_;
};

}  // namespace waybill::route
