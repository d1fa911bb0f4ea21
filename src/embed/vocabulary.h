// A WordPiece vocabulary as a hash table of whole words and of pieces that continue a word.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace waybill::embed {

using TokenId = std::int32_t;

struct Piece {
  std::string text;  // "##ing"
  TokenId id = 0;    // 0 or above
};

// Immutable and thread-safe. Looked up by bytes and their hash, which the caller extends byte by byte while
// it reads a word: the hashes of all prefixes come from one pass.
class Vocabulary {
 public:
  static constexpr TokenId kNone = -1;
  // Readable bytes that must follow the text given to find(), so that it may compare eight at a time.
  static constexpr std::size_t kPadding = 8;

  // The hash of no bytes: of a piece that begins a word, and of one that continues it.
  static constexpr std::uint64_t kInitial = 0x9E3779B97F4A7C15;
  static constexpr std::uint64_t kContinuation = 0xC2B2AE3D27D4EB4F;
  [[nodiscard]] static constexpr std::uint64_t extend(std::uint64_t hash, unsigned char byte) noexcept {
    return (hash ^ byte) * 0xFF51AFD7ED558CCD;
  }

  // `prefix` is what a continuing piece begins with in the vocabulary ("##"). Of two pieces with one text the
  // later one is found.
  Vocabulary(std::span<const Piece> pieces, std::string_view prefix);

  // The id of the piece, or kNone. `hash` is that of `text` from kInitial or kContinuation.
  [[nodiscard]] TokenId find_initial(std::string_view text, std::uint64_t hash) const noexcept {
    return find(text, hash, 0);
  }
  [[nodiscard]] TokenId find_continuation(std::string_view text, std::uint64_t hash) const noexcept {
    return find(text, hash, prefix_.size());
  }
  // The same for a whole entry of the vocabulary, at leisure.
  [[nodiscard]] TokenId find_text(std::string_view text) const;

  // The longest piece of each kind in bytes, without the prefix.
  [[nodiscard]] std::size_t max_initial_bytes() const noexcept { return max_initial_bytes_; }
  [[nodiscard]] std::size_t max_continuation_bytes() const noexcept { return max_continuation_bytes_; }

  // One more than the greatest id.
  [[nodiscard]] std::size_t size() const noexcept { return texts_.size(); }
  [[nodiscard]] std::string_view text(TokenId id) const noexcept;

 private:
  struct Slot {
    std::uint32_t tag = 0;
    TokenId id = kNone;
  };
  struct Text {
    std::uint32_t offset = 0, size = 0;  // in bytes_
  };

  [[nodiscard]] TokenId find(std::string_view text, std::uint64_t hash,
                             std::size_t prefix_size) const noexcept;
  [[nodiscard]] bool matches(TokenId id, std::string_view text, std::size_t prefix_size) const noexcept;
  void insert(TokenId id, std::size_t prefix_size, std::uint64_t hash);

  std::string prefix_;
  std::string bytes_;        // the texts, one after the other
  std::vector<Text> texts_;  // by id
  std::vector<Slot> slots_;  // open addressing, at most 5/8 full
  unsigned shift_ = 0;       // the topmost bits of the hash are the slot
  std::size_t max_initial_bytes_ = 0, max_continuation_bytes_ = 0;
};

}  // namespace waybill::embed
