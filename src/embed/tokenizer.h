// BERT WordPiece, id for id as Hugging Face `tokenizers` does it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "embed/tokenizer_files.h"
#include "embed/vocabulary.h"

namespace waybill::embed {

// A vocabulary and the rules of the BERT normaliser and pre-tokenizer. Immutable and thread-safe after load;
// cheap to move.
//
// Text is UTF-8; invalid bytes read as U+FFFD (base/utf8.h), which clean_text drops. The order of work:
// special tokens written in the text ("[SEP]", capitals exactly) are cut out; then, per code point: clean
// (drop control characters, every kind of white space becomes a space), space around CJK ideographs, NFD and
// accents dropped, lower case (as the model's rules say); split at white space, each punctuation character a
// word; WordPiece with "##" continuation. A word of over 100 code points or with an unknown part is [UNK].
//
// One difference from the reference is left: NFD also puts marks other than nonspacing ones into canonical
// order when several stand on one letter, which no published vocabulary can tell.
class Tokenizer {
 public:
  // From a model folder: tokenizer.json if there, else vocab.txt (+ tokenizer_config.json). Fails with
  // kNotFound, kCorrupt, or kUnsupported (another kind of tokenizer) and a sentence.
  [[nodiscard]] static Result<Tokenizer> load(const std::filesystem::path& folder);

  // The definition must come from tokenizer_files.h, which has checked it.
  explicit Tokenizer(const TokenizerDefinition& definition);
  Tokenizer(Tokenizer&&) noexcept;
  Tokenizer& operator=(Tokenizer&&) noexcept;
  ~Tokenizer();

  // Appends the word pieces of `text` without [CLS] and [SEP]; stops after `max_pieces` (and reads no
  // further, so that ten megabytes cost what their beginning costs). Returns the number appended. Allocates
  // only when `ids` has to grow.
  std::size_t pieces(std::string_view text, std::size_t max_pieces, std::vector<TokenId>& ids) const;

  // [CLS] + at most max_ids - 2 pieces + [SEP], appended. max_ids >= 2. Returns the number appended.
  std::size_t encode(std::string_view text, std::size_t max_ids, std::vector<TokenId>& ids) const;

  [[nodiscard]] TokenId cls_id() const noexcept;
  [[nodiscard]] TokenId sep_id() const noexcept;
  [[nodiscard]] TokenId unk_id() const noexcept;
  // One more than the greatest id.
  [[nodiscard]] std::size_t vocabulary_size() const noexcept;
  // The text of a piece as in the vocabulary ("##ing"); empty for an id that is not there.
  [[nodiscard]] std::string_view piece_text(TokenId id) const noexcept;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace waybill::embed
