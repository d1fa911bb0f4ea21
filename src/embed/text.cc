#include "embed/text.h"

#include <algorithm>
#include <cmath>

#include "base/check.h"

namespace waybill::embed {
namespace {

constexpr std::size_t kBytesPerPiece =
    8;  // first guess at how much text a number of pieces takes, on the safe side

constexpr std::size_t kMaxWindows = 1024;

bool is_space(char c) { return c == ' ' || c == '\n' || c == '\t' || c == '\r'; }
bool continues_code_point(char c) { return (static_cast<unsigned char>(c) & 0xC0) == 0x80; }

// The first place at or after `position` where the text may be cut without changing what its rest becomes:
// after a white space; failing that within `reach` bytes, the next code point.
std::size_t cut_at_or_after(std::string_view text, std::size_t position, std::size_t reach) {
  if (position == 0) return 0;
  const std::size_t end = std::min(text.size(), position + reach);
  for (std::size_t i = position - 1; i < end; ++i) {
    if (is_space(text[i])) return i + 1;
  }
  while (position < text.size() && continues_code_point(text[position])) ++position;
  return position;
}

// Cuts one text; `room` is how many pieces a sequence has room for.
class Cutter {
 public:
  Cutter(const Tokenizer& tokenizer, std::size_t room, std::string_view text, std::vector<TokenId>& ids,
         std::vector<std::uint32_t>& offsets)
      : tokenizer_(tokenizer), room_(room), text_(text), ids_(ids), offsets_(offsets) {}

  void head() {
    open();
    tokenizer_.pieces(text_, room_, ids_);
    close();
  }

  void tail() {
    open();
    last_pieces(room_);
    close();
  }

  void ends() {
    open();
    const std::size_t begin = ids_.size();
    if (tokenizer_.pieces(text_, room_ + 1, ids_) > room_) {
      ids_.resize(begin + room_ - room_ / 2);
      last_pieces(room_ / 2);
    }
    close();
  }

  void windows(std::size_t max_windows) {
    const std::size_t begin = ids_.size();
    const std::size_t n = tokenizer_.pieces(text_, max_windows * room_ + 1, ids_);
    if (n <= max_windows * room_) {
      divide(begin, n);
    } else {
      ids_.resize(begin);
      spread(max_windows);
    }
  }

 private:
  void open() { ids_.push_back(tokenizer_.cls_id()); }
  void close() {
    ids_.push_back(tokenizer_.sep_id());
    offsets_.push_back(static_cast<std::uint32_t>(ids_.size()));
  }

  // Of the text's; all of them where there are no more.
  void last_pieces(std::size_t count) {
    const std::size_t begin = ids_.size();
    for (std::size_t bytes = count * kBytesPerPiece;; bytes *= 2) {
      const std::size_t start =
          bytes >= text_.size() ? 0 : cut_at_or_after(text_, text_.size() - bytes, bytes / 2);
      ids_.resize(begin);
      const std::size_t n = tokenizer_.pieces(text_.substr(start), text_.size(), ids_);
      if (n >= count || start == 0) break;
    }
    const std::size_t n = ids_.size() - begin;
    if (n > count) {
      const auto first = ids_.begin() + static_cast<std::ptrdiff_t>(begin);
      ids_.erase(first, first + static_cast<std::ptrdiff_t>(n - count));
    }
  }

  // Makes even windows of the n pieces from `begin` on, where they are.
  void divide(std::size_t begin, std::size_t n) {
    const std::size_t count = std::max<std::size_t>(1, (n + room_ - 1) / room_);
    ids_.resize(begin + n + 2 * count);
    const auto piece = [&](std::size_t i) { return ids_.begin() + static_cast<std::ptrdiff_t>(begin + i); };
    for (std::size_t w = count;
         w-- > 0;) {  // from the last, so that nothing is overwritten before it has moved
      const std::size_t from = w * n / count, to = (w + 1) * n / count;
      std::move_backward(piece(from), piece(to), piece(to + 2 * w + 1));
      *piece(from + 2 * w) = tokenizer_.cls_id();
      *piece(to + 2 * w + 1) = tokenizer_.sep_id();
    }
    for (std::size_t w = 1; w <= count; ++w) {
      offsets_.push_back(static_cast<std::uint32_t>(begin + w * n / count + 2 * w));
    }
  }

  void spread(std::size_t count) {
    for (std::size_t w = 0; w + 1 < count; ++w) {
      const std::size_t start = cut_at_or_after(text_, text_.size() / (count - 1) * w, room_);
      open();
      if (tokenizer_.pieces(text_.substr(start), room_, ids_) == 0) {
        ids_.pop_back();  // nothing but spaces from here on
      } else {
        close();
      }
    }
    count > 1 ? tail() : head();
  }

  const Tokenizer& tokenizer_;
  const std::size_t room_;
  const std::string_view text_;
  std::vector<TokenId>& ids_;
  std::vector<std::uint32_t>& offsets_;
};

}  // namespace

std::size_t tokenize(const Tokenizer& tokenizer, const ModelConfig& config, std::string_view text,
                     const TextOptions& options, std::vector<TokenId>& ids,
                     std::vector<std::uint32_t>& offsets) {
  WAYBILL_CHECK(config.max_tokens > 2);
  const std::size_t before = offsets.size();
  Cutter cutter(tokenizer, config.max_tokens - 2, text, ids, offsets);
  switch (options.long_text) {
    case LongText::kHead:
      cutter.head();
      break;
    case LongText::kTail:
      cutter.tail();
      break;
    case LongText::kEnds:
      cutter.ends();
      break;
    case LongText::kWindows:
      cutter.windows(std::clamp<std::size_t>(options.max_windows, 1, kMaxWindows));
      break;
  }
  return offsets.size() - before;
}

void average_windows(std::span<const float> windows, std::span<const std::uint32_t> lengths,
                     std::span<float> out) {
  WAYBILL_CHECK(!lengths.empty() && windows.size() == lengths.size() * out.size());
  if (lengths.size() == 1) {
    std::ranges::copy(windows, out.begin());
    return;
  }
  std::ranges::fill(out, 0.0F);
  for (std::size_t w = 0; w < lengths.size(); ++w) {
    const auto weight = static_cast<float>(lengths[w]);
    for (std::size_t i = 0; i < out.size(); ++i) out[i] += weight * windows[w * out.size() + i];
  }
  double square = 0;
  for (const float x : out) square += static_cast<double>(x) * x;
  if (square == 0) return;
  const auto scale = static_cast<float>(1 / std::sqrt(square));
  for (float& x : out) x *= scale;
}

}  // namespace waybill::embed
