#include <algorithm>
#include <vector>

#include "route/prompt_key.h"

namespace waybill::route {
namespace {

constexpr bool is_upper(char c) { return c >= 'A' && c <= 'Z'; }
constexpr bool is_lower(char c) { return c >= 'a' && c <= 'z'; }
constexpr char lower(char c) { return is_upper(c) ? static_cast<char>(c + ('a' - 'A')) : c; }
constexpr char upper(char c) { return is_lower(c) ? static_cast<char>(c - ('a' - 'A')) : c; }

bool same_ids(const embed::Tokenizer& tokenizer, std::string_view a, std::string_view b) {
  constexpr std::size_t kMaxPieces = 64;
  std::vector<embed::TokenId> ids_a, ids_b;
  tokenizer.pieces(a, kMaxPieces, ids_a);
  tokenizer.pieces(b, kMaxPieces, ids_b);
  return ids_a == ids_b;
}

}  // namespace

// Letters are folded one by one by the tokenizer, so the alphabet shows whether it folds; what is left are
// special tokens, which are matched before folding. They stand in the vocabulary: any piece that is not plain
// letters and digits is tried.
bool case_is_irrelevant(const embed::Tokenizer& tokenizer) {
  for (char c = 'a'; c <= 'z'; ++c) {
    const char big = upper(c);
    if (!same_ids(tokenizer, {&c, 1}, {&big, 1})) return false;
  }
  std::string folded;
  for (std::size_t id = 0; id < tokenizer.vocabulary_size(); ++id) {
    std::string_view piece = tokenizer.piece_text(static_cast<embed::TokenId>(id));
    if (piece.find('[') != std::string_view::npos) continue;
    if (piece.starts_with("##")) piece.remove_prefix(2);
    const bool has_upper = std::any_of(piece.begin(), piece.end(), is_upper);
    const bool has_lower = std::any_of(piece.begin(), piece.end(), is_lower);
    const bool has_symbol = std::any_of(piece.begin(), piece.end(), [](char c) {
      return static_cast<unsigned char>(c) < 0x80 && !is_upper(c) && !is_lower(c) && !(c >= '0' && c <= '9');
    });
    if (!has_upper && !(has_lower && has_symbol)) continue;
    folded = piece;
    std::transform(folded.begin(), folded.end(), folded.begin(), has_upper ? lower : upper);
    if (!same_ids(tokenizer, piece, folded)) return false;
  }
  return true;
}

}  // namespace waybill::route
