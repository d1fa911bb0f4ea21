// Any bytes as a text, under any rules (the first byte): what must hold whatever the text is.
#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/check.h"
#include "base/utf8.h"
#include "embed/tokenizer.h"

namespace {

using waybill::embed::TokenId;
using waybill::embed::Tokenizer;

constexpr std::string_view kVocabulary =
    "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\na\nb\nab\n##a\n##b\n##ab\nabc\n##c\ne\n\xC3\xA9\n##e\ni\n\xCC\x87\n#"
    "#\xCC\x87\n"
    "\xE4\xB8\xAD\n##\xE4\xB8\xAD\n\xE1\x84\x80\n##\xE1\x85\xA1\n.\n,\n[\n]\n\xD1\x8F\n##"
    "\xD1\x8F\n\xF0\x9F\x98\x80\nA\n##A\n";

const Tokenizer& tokenizer(std::uint8_t rules) {
  static std::array<std::optional<Tokenizer>, 16> all;
  std::optional<Tokenizer>& one = all[rules % 16];
  if (!one) {
    auto definition = waybill::embed::read_vocabulary(kVocabulary, "").value();
    definition.clean_text = (rules & 1) == 0;
    definition.handle_chinese_chars = (rules & 2) == 0;
    definition.strip_accents = (rules & 4) == 0;
    definition.lowercase = (rules & 8) == 0;
    definition.max_word_chars = 20;
    one.emplace(definition);
  }
  return *one;
}

std::vector<TokenId> pieces(const Tokenizer& t, std::string_view text, std::size_t max = SIZE_MAX) {
  std::vector<TokenId> ids;
  WAYBILL_CHECK(t.pieces(text, max, ids) == ids.size());
  return ids;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size < 3) return 0;
  const Tokenizer& t = tokenizer(data[0]);
  const std::string_view text(reinterpret_cast<const char*>(data + 3), size - 3);
  const std::vector<TokenId> all = pieces(t, text);
  for (const TokenId id : all) WAYBILL_CHECK(id >= 0 && !t.piece_text(id).empty());

  const std::size_t max = data[1] % (all.size() + 2);
  std::vector<TokenId> some = pieces(t, text, max);
  WAYBILL_CHECK(
      some == std::vector(all.begin(), all.begin() + static_cast<std::ptrdiff_t>(std::min(max, all.size()))));

  WAYBILL_CHECK(pieces(t, waybill::to_valid_utf8(text)) == all);

  // A space between two texts keeps them apart.
  const std::size_t cut = data[2] % (text.size() + 1);
  std::vector<TokenId> apart = pieces(t, text.substr(0, cut));
  for (const TokenId id : pieces(t, text.substr(cut))) apart.push_back(id);
  WAYBILL_CHECK(pieces(t, std::string(text.substr(0, cut)) + " " + std::string(text.substr(cut))) == apart);
  return 0;
}
