#include "route/prompt_key.h"

namespace waybill::route {
namespace {

constexpr bool is_blank(char c) { return c == ' ' || c == '\t' || c == '\r' || c == '\n'; }
constexpr bool is_upper(char c) { return c >= 'A' && c <= 'Z'; }
constexpr char lower(char c) { return is_upper(c) ? static_cast<char>(c + ('a' - 'A')) : c; }

}  // namespace

void PromptNormalizer::normalize(std::string_view prompt, std::string& out) const {
  const bool folds = folds_case_ && prompt.find('[') == std::string_view::npos;
  out.resize(prompt.size());
  std::size_t size = 0;
  bool after_blank = true;  // also drops the blanks at the beginning
  for (const char c : prompt) {
    const bool blank = is_blank(c);
    out[size] = blank ? ' ' : folds ? lower(c) : c;
    size += blank && after_blank ? 0 : 1;
    after_blank = blank;
  }
  if (size > 0 && after_blank) --size;
  out.resize(size);
}

}  // namespace waybill::route
