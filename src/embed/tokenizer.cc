#include "embed/tokenizer.h"

#include <algorithm>
#include <array>
#include <functional>

#include <fmt/format.h>

#include "base/check.h"
#include "base/file.h"
#include "base/utf8.h"
#include "embed/codepoints.h"

namespace waybill::embed {
namespace {

constexpr std::size_t kMaxFileBytes = 64 << 20;
constexpr std::size_t kMaxWordBytes = 4 * kMaxWordChars;
constexpr char32_t kCapitalIWithDot = 0x130;  // the one code point whose lower case is two: i, U+0307

// What the fast path does with a byte. Below 0x80: a letter, appended to the word as this (lower-case) byte.
enum ByteAction : std::uint8_t {
  kBreak = 0x80,  // white space: the word ends
  kDrop,          // as if it were not there
  kSymbol,        // punctuation: the word ends, and this is a word of its own
  kCareful,       // not ASCII, or may begin a special token
};

}  // namespace

struct Tokenizer::Impl {
  class Reader;

  explicit Impl(const TokenizerDefinition& definition);

  // The special token that `text` begins with, the longest of several; nullptr if none.
  [[nodiscard]] const Piece* special_at(std::string_view text) const noexcept;
  [[nodiscard]] ByteAction action_of(unsigned char byte) const noexcept;

  bool clean_text, handle_chinese_chars, strip_accents, lowercase;
  std::size_t max_word_chars;
  TokenId unk, cls, sep;
  std::vector<Piece> special_tokens;  // longest first
  Vocabulary vocabulary;
  std::size_t ids;  // one more than the greatest id
  std::array<ByteAction, 256> actions = {};
  std::array<TokenId, 128> symbols = {};  // the id of each ASCII character as a word
};

// Reads one text: collects a normalised word, and appends its pieces when it ends.
class Tokenizer::Impl::Reader {
 public:
  Reader(const Impl& tokenizer, std::string_view text, std::size_t max_pieces, std::vector<TokenId>& ids)
      : t_(tokenizer),
        text_(text),
        ids_(ids),
        end_size_(ids.size() + std::min(max_pieces, ids.max_size() - ids.size())) {}

  // Until the text ends or there are enough pieces.
  void run() {
    while (!full()) {
      read_letters();
      if (position_ == text_.size()) break;
      const auto byte = static_cast<unsigned char>(text_[position_]);
      switch (t_.actions[byte]) {
        case kBreak:
          end_word();
          skip_white_space();
          break;
        case kDrop:
          ++position_;
          break;
        case kSymbol:
          ++position_;
          end_word();
          if (!full()) ids_.push_back(t_.symbols[byte]);
          break;
        default:
          if (!read_special_token()) read_code_point();
      }
    }
    end_word();
  }

 private:
  [[nodiscard]] bool full() const noexcept { return ids_.size() >= end_size_; }

  // The fast path: ASCII letters, up to the first byte that is something else.
  void read_letters() noexcept {
    const char* p = text_.data() + position_;
    const char* const end = text_.data() + text_.size();
    std::size_t chars = chars_;
    std::size_t bytes = bytes_;
    std::uint64_t hash = hash_;
    for (; p != end; ++p) {
      const ByteAction action = t_.actions[static_cast<unsigned char>(*p)];
      if (action >= kBreak) break;
      if (chars >= t_.max_word_chars) {
        too_long_ = true;
        continue;
      }
      word_[bytes++] = static_cast<char>(action);
      hash = Vocabulary::extend(hash, action);
      ++chars;
    }
    position_ = static_cast<std::size_t>(p - text_.data());
    chars_ = chars;
    bytes_ = bytes;
    hash_ = hash;
  }

  void skip_white_space() noexcept {
    while (position_ < text_.size() && t_.actions[static_cast<unsigned char>(text_[position_])] == kBreak)
      ++position_;
  }

  bool read_special_token() {
    const Piece* token = t_.special_at(text_.substr(position_));
    if (token == nullptr) return false;
    position_ += token->text.size();
    end_word();
    if (!full()) ids_.push_back(token->id);
    return true;
  }

  // The whole chain of rules for one code point.
  void read_code_point() {
    const char32_t c = next_code_point(text_, position_);
    const CodePoint& properties = code_point(c);
    if (t_.clean_text && (properties.flags & kControl) != 0) return;
    if (t_.clean_text && (properties.flags & kSpace) != 0) return end_word();
    const bool ideograph = t_.handle_chinese_chars && (properties.flags & kIdeograph) != 0;
    if (ideograph) end_word();
    if (t_.strip_accents) {
      add_decomposed(c, properties);
    } else {
      add_lower(c);
    }
    if (ideograph) end_word();
  }

  void add_decomposed(char32_t c, const CodePoint& properties) {
    if ((properties.flags & kMark) != 0) return;
    if (is_hangul_syllable(c)) {
      char32_t jamo[3];
      for (std::size_t i = 0, n = decompose_hangul(c, jamo); i < n; ++i) add_lower(jamo[i]);
    } else if (properties.decomposition_length > 0) {
      for (const char32_t part : decomposition(properties)) add_lower(part);
    } else {
      add_lower(c);
    }
  }

  void add_lower(char32_t c) {
    if (!t_.lowercase) return add_normalised(c);
    if (c == kCapitalIWithDot) {
      add_normalised('i');
      return add_normalised(0x307);
    }
    add_normalised(static_cast<char32_t>(static_cast<std::int32_t>(c) + code_point(c).lower));
  }

  void add_normalised(char32_t c) {
    const std::uint8_t flags = code_point(c).flags;
    if ((flags & kWhite) != 0) return end_word();
    if ((flags & kPunctuation) == 0) return add_to_word(c);
    end_word();
    add_to_word(c);
    end_word();
  }

  void add_to_word(char32_t c) noexcept {
    if (chars_ >= t_.max_word_chars) {
      too_long_ = true;
      return;
    }
    ++chars_;
    if (c < 0x80) {
      add_byte(c);
    } else if (c < 0x800) {
      add_byte(0xC0 | (c >> 6));
      add_byte(0x80 | (c & 0x3F));
    } else if (c < 0x10000) {
      add_byte(0xE0 | (c >> 12));
      add_byte(0x80 | ((c >> 6) & 0x3F));
      add_byte(0x80 | (c & 0x3F));
    } else {
      add_byte(0xF0 | (c >> 18));
      add_byte(0x80 | ((c >> 12) & 0x3F));
      add_byte(0x80 | ((c >> 6) & 0x3F));
      add_byte(0x80 | (c & 0x3F));
    }
  }

  void add_byte(char32_t byte) noexcept {
    word_[bytes_++] = static_cast<char>(byte);
    hash_ = Vocabulary::extend(hash_, static_cast<unsigned char>(byte));
  }

  void end_word() {
    if (bytes_ == 0) return;
    if (!full()) {
      const TokenId whole = too_long_ ? t_.unk : t_.vocabulary.find_initial({word_.data(), bytes_}, hash_);
      if (whole != Vocabulary::kNone) {
        ids_.push_back(whole);
      } else {
        split_word();
      }
    }
    bytes_ = 0;
    chars_ = 0;
    hash_ = Vocabulary::kInitial;
    too_long_ = false;
  }

  // WordPiece: the longest piece at the beginning, then the longest that continues, ...; [UNK] if that fails
  // anywhere.
  void split_word() {
    const std::size_t first = ids_.size();
    for (std::size_t begin = 0; begin < bytes_;) {
      const std::size_t length = longest_piece(begin);
      if (length == 0) {
        ids_.resize(first);
        ids_.push_back(t_.unk);
        return;
      }
      begin += length;
    }
    if (ids_.size() > end_size_) ids_.resize(end_size_);
  }

  // Appends the longest piece that the rest of the word begins with and returns its length, or 0.
  std::size_t longest_piece(std::size_t begin) {
    const Vocabulary& v = t_.vocabulary;
    const std::size_t longest =
        std::min(bytes_ - begin, begin == 0 ? v.max_initial_bytes() : v.max_continuation_bytes());
    std::uint64_t hash = begin == 0 ? Vocabulary::kInitial : Vocabulary::kContinuation;
    for (std::size_t i = 0; i < longest; ++i) {
      hash = Vocabulary::extend(hash, static_cast<unsigned char>(word_[begin + i]));
      prefix_hashes_[i] = hash;
    }
    for (std::size_t length = longest; length > 0; --length) {
      const std::string_view piece(word_.data() + begin, length);
      const TokenId id = begin == 0 ? v.find_initial(piece, prefix_hashes_[length - 1])
                                    : v.find_continuation(piece, prefix_hashes_[length - 1]);
      if (id == Vocabulary::kNone) continue;
      ids_.push_back(id);
      return length;
    }
    return 0;
  }

  const Impl& t_;
  const std::string_view text_;
  std::size_t position_ = 0;
  std::vector<TokenId>& ids_;
  const std::size_t end_size_;  // ids_ is full at this size

  std::size_t bytes_ = 0, chars_ = 0;  // of the word so far
  std::uint64_t hash_ = Vocabulary::kInitial;
  bool too_long_ = false;
  // Left uninitialised: clearing them would cost more than a short text.
  std::array<char, kMaxWordBytes + Vocabulary::kPadding> word_;
  std::array<std::uint64_t, kMaxWordBytes> prefix_hashes_;
};

Tokenizer::Impl::Impl(const TokenizerDefinition& definition)
    : clean_text(definition.clean_text),
      handle_chinese_chars(definition.handle_chinese_chars),
      strip_accents(definition.strip_accents),
      lowercase(definition.lowercase),
      max_word_chars(definition.max_word_chars),
      unk(definition.unk),
      cls(definition.cls),
      sep(definition.sep),
      special_tokens(definition.special_tokens),
      vocabulary(definition.vocabulary, definition.continuing_prefix),
      ids(vocabulary.size()) {
  WAYBILL_CHECK(max_word_chars <= kMaxWordChars);
  std::ranges::sort(special_tokens, std::greater{}, [](const Piece& token) { return token.text.size(); });
  for (const Piece& token : special_tokens) ids = std::max(ids, static_cast<std::size_t>(token.id) + 1);
  for (std::size_t byte = 0; byte < actions.size(); ++byte)
    actions[byte] = action_of(static_cast<unsigned char>(byte));
  for (std::size_t byte = 0; byte < symbols.size(); ++byte) {
    const auto character = static_cast<char>(byte);
    const TokenId id = vocabulary.find_text({&character, 1});
    symbols[byte] = id == Vocabulary::kNone ? unk : id;
  }
}

const Piece* Tokenizer::Impl::special_at(std::string_view text) const noexcept {
  const auto found = std::ranges::find_if(
      special_tokens, [text](const Piece& token) { return text.starts_with(token.text); });
  return found == special_tokens.end() ? nullptr : &*found;
}

ByteAction Tokenizer::Impl::action_of(unsigned char byte) const noexcept {
  const auto begins_with_it = [byte](const Piece& token) {
    return static_cast<unsigned char>(token.text.front()) == byte;
  };
  if (byte >= 0x80 || std::ranges::any_of(special_tokens, begins_with_it)) return kCareful;
  const CodePoint& properties = code_point(byte);
  if (clean_text && (properties.flags & kControl) != 0) return kDrop;
  if ((properties.flags & kWhite) != 0) return kBreak;
  if ((properties.flags & kPunctuation) != 0) return kSymbol;
  return static_cast<ByteAction>(lowercase ? byte + properties.lower : byte);
}

Result<Tokenizer> Tokenizer::load(const std::filesystem::path& folder) {
  const auto with_folder = [&folder](Result<TokenizerDefinition> definition) -> Result<Tokenizer> {
    if (definition) return Tokenizer(*definition);
    definition.error().message = fmt::format("{}: {}", folder.string(), definition.error().message);
    return std::unexpected(definition.error());
  };
  const Result<MappedFile> tokenizer_json = MappedFile::open(folder / "tokenizer.json");
  if (tokenizer_json && tokenizer_json->bytes().size() > kMaxFileBytes) {
    return fail(ErrorCode::kUnsupported,
                fmt::format("{}: tokenizer.json has more than {} bytes", folder.string(), kMaxFileBytes));
  }
  if (tokenizer_json) return with_folder(read_tokenizer_json(tokenizer_json->text()));
  if (tokenizer_json.error().code != ErrorCode::kNotFound) return std::unexpected(tokenizer_json.error());

  const Result<std::string> vocabulary = read_file(folder / "vocab.txt", kMaxFileBytes);
  if (!vocabulary && vocabulary.error().code == ErrorCode::kNotFound) {
    return fail(ErrorCode::kNotFound,
                fmt::format("{} has neither tokenizer.json nor vocab.txt; copy the whole model folder "
                            "as it is published",
                            folder.string()));
  }
  if (!vocabulary) return std::unexpected(vocabulary.error());
  const Result<std::string> config = read_file(folder / "tokenizer_config.json", kMaxFileBytes);
  if (!config && config.error().code != ErrorCode::kNotFound) return std::unexpected(config.error());
  return with_folder(read_vocabulary(*vocabulary, config.value_or("")));
}

Tokenizer::Tokenizer(const TokenizerDefinition& definition) : impl_(std::make_unique<Impl>(definition)) {}
Tokenizer::Tokenizer(Tokenizer&&) noexcept = default;
Tokenizer& Tokenizer::operator=(Tokenizer&&) noexcept = default;
Tokenizer::~Tokenizer() = default;

std::size_t Tokenizer::pieces(std::string_view text, std::size_t max_pieces,
                              std::vector<TokenId>& ids) const {
  const std::size_t before = ids.size();
  Impl::Reader(*impl_, text, max_pieces, ids).run();
  return ids.size() - before;
}

std::size_t Tokenizer::encode(std::string_view text, std::size_t max_ids, std::vector<TokenId>& ids) const {
  WAYBILL_CHECK(max_ids >= 2);
  ids.push_back(impl_->cls);
  const std::size_t n = pieces(text, max_ids - 2, ids);
  ids.push_back(impl_->sep);
  return n + 2;
}

TokenId Tokenizer::cls_id() const noexcept { return impl_->cls; }
TokenId Tokenizer::sep_id() const noexcept { return impl_->sep; }
TokenId Tokenizer::unk_id() const noexcept { return impl_->unk; }
std::size_t Tokenizer::vocabulary_size() const noexcept { return impl_->ids; }

std::string_view Tokenizer::piece_text(TokenId id) const noexcept {
  if (const std::string_view text = impl_->vocabulary.text(id); !text.empty()) return text;
  const auto token = std::ranges::find(impl_->special_tokens, id, &Piece::id);
  return token == impl_->special_tokens.end() ? std::string_view() : std::string_view(token->text);
}

}  // namespace waybill::embed
