#include "config/languages.h"

#include <algorithm>
#include <array>
#include <cctype>

#include <fmt/format.h>

namespace waybill::config {
namespace {

// ISO 639-1, www.loc.gov/standards/iso639-2 (184 codes).
constexpr std::string_view kCodes =
    "aa ab ae af ak am an ar as av ay az ba be bg bi bm bn bo br bs ca ce ch co cr cs cu cv cy da de dv dz "
    "ee el en eo es "
    "et eu fa ff fi fj fo fr fy ga gd gl gn gu gv ha he hi ho hr ht hu hy hz ia id ie ig ii ik io is it iu "
    "ja jv ka kg ki "
    "kj kk kl km kn ko kr ks ku kv kw ky la lb lg li ln lo lt lu lv mg mh mi mk ml mn mr ms mt my na nb nd "
    "ne ng nl nn no "
    "nr nv ny oc oj om or os pa pi pl ps pt qu rm rn ro ru rw sa sc sd se sg si sk sl sm sn so sq sr ss st "
    "su sv sw ta te "
    "tg th ti tk tl tn to tr ts tt tw ty ug uk ur uz ve vi vo wa wo xh yi yo za zh zu";

struct Named {
  std::string_view name, three_letters, code;
};
constexpr std::array<Named, 24> kNames = {{
    {"english", "eng", "en"},   {"german", "deu", "de"},  {"french", "fra", "fr"},
    {"spanish", "spa", "es"},   {"italian", "ita", "it"}, {"portuguese", "por", "pt"},
    {"dutch", "nld", "nl"},     {"polish", "pol", "pl"},  {"russian", "rus", "ru"},
    {"ukrainian", "ukr", "uk"}, {"chinese", "zho", "zh"}, {"japanese", "jpn", "ja"},
    {"korean", "kor", "ko"},    {"arabic", "ara", "ar"},  {"turkish", "tur", "tr"},
    {"hindi", "hin", "hi"},     {"hebrew", "heb", "he"},  {"greek", "ell", "el"},
    {"czech", "ces", "cs"},     {"swedish", "swe", "sv"}, {"danish", "dan", "da"},
    {"norwegian", "nor", "no"}, {"finnish", "fin", "fi"}, {"vietnamese", "vie", "vi"},
}};

}  // namespace

bool is_language_code(std::string_view code) {
  if (code.size() != 2 || code.find(' ') != std::string_view::npos) return false;
  for (std::size_t i = 0; i < kCodes.size(); i += 3) {
    if (kCodes.substr(i, 2) == code) return true;
  }
  return false;
}

std::string language_suggestion(std::string_view written) {
  std::string word(written);
  std::ranges::transform(word, word.begin(),
                         [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  for (const Named& language : kNames) {
    if (word == language.name || word == language.three_letters)
      return fmt::format("; did you mean \"{}\"?", language.code);
  }
  const std::string_view language = std::string_view(word).substr(0, word.find_first_of("-_"));
  return is_language_code(language) ? fmt::format("; did you mean \"{}\"?", language) : std::string();
}

}  // namespace waybill::config
