// The files that define a tokenizer, read and checked: tokenizer.json, or vocab.txt with
// tokenizer_config.json.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "embed/vocabulary.h"

namespace waybill::embed {

// Everything that decides which ids a text has.
struct TokenizerDefinition {
  // BertNormalizer of Hugging Face `tokenizers`.
  bool clean_text = true;            // drop control characters, every kind of white space becomes a space
  bool handle_chinese_chars = true;  // each ideograph a word of its own
  bool strip_accents = true;         // NFD, then nonspacing marks are dropped
  bool lowercase = true;

  std::vector<Piece> vocabulary;
  std::string continuing_prefix = "##";
  std::size_t max_word_chars = 100;  // a longer word, in code points, is [UNK]

  // Tokens that are found in the text before anything else is done to it ("[SEP]"), never empty.
  std::vector<Piece> special_tokens;
  TokenId unk = 0, cls = 0, sep = 0;
};

// The longest word that a tokenizer may ask for (max_input_chars_per_word), in code points.
inline constexpr std::size_t kMaxWordChars = 1000;

// Fails with kCorrupt or kUnsupported (not WordPiece, another normaliser ...) and a sentence. Padding and
// truncation in the file are ignored, as sentence-transformers does.
[[nodiscard]] Result<TokenizerDefinition> read_tokenizer_json(std::string_view tokenizer_json);

// One piece a line; its id is the number of the line, from 0. `tokenizer_config_json` may be empty: an
// uncased BERT then.
[[nodiscard]] Result<TokenizerDefinition> read_vocabulary(std::string_view vocab_txt,
                                                          std::string_view tokenizer_config_json);

}  // namespace waybill::embed
