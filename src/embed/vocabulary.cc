#include "embed/vocabulary.h"

#include <algorithm>
#include <bit>
#include <cstring>

namespace waybill::embed {
namespace {

std::uint64_t hash_of(std::string_view text, std::uint64_t hash) {
  for (const char c : text) hash = Vocabulary::extend(hash, static_cast<unsigned char>(c));
  return hash;
}

std::uint64_t load8(const char* p) noexcept {
  std::uint64_t value = 0;
  std::memcpy(&value, p, sizeof value);
  return value;
}

// Equal bytes; both may be read up to Vocabulary::kPadding bytes beyond `size`.
bool equal_padded(const char* a, const char* b, std::size_t size) noexcept {
  for (; size > 8; size -= 8, a += 8, b += 8) {
    if (load8(a) != load8(b)) return false;
  }
  return size == 0 || (load8(a) ^ load8(b)) << (64 - 8 * size) == 0;
}

}  // namespace

Vocabulary::Vocabulary(std::span<const Piece> pieces, std::string_view prefix) : prefix_(prefix) {
  std::size_t bytes = 0;
  TokenId max_id = -1;
  std::size_t entries = 0;
  for (const Piece& piece : pieces) {
    bytes += piece.text.size();
    max_id = std::max(max_id, piece.id);
    entries += piece.text.starts_with(prefix) ? 2U : 1U;
  }
  bytes_.reserve(bytes + kPadding);
  texts_.resize(static_cast<std::size_t>(max_id) + 1);
  slots_.resize(std::bit_ceil(std::max<std::size_t>(entries * 8 / 5, 16)));
  shift_ = static_cast<unsigned>(64 - std::countr_zero(slots_.size()));
  for (const Piece& piece : pieces) {
    texts_[static_cast<std::size_t>(piece.id)] = {static_cast<std::uint32_t>(bytes_.size()),
                                                  static_cast<std::uint32_t>(piece.text.size())};
    bytes_ += piece.text;
  }
  bytes_.append(kPadding, '\0');
  for (const Piece& piece : pieces) {
    insert(piece.id, 0, kInitial);
    max_initial_bytes_ = std::max(max_initial_bytes_, piece.text.size());
    if (!piece.text.starts_with(prefix)) continue;
    insert(piece.id, prefix.size(), kContinuation);
    max_continuation_bytes_ = std::max(max_continuation_bytes_, piece.text.size() - prefix.size());
  }
}

void Vocabulary::insert(TokenId id, std::size_t prefix_size, std::uint64_t hash) {
  hash = hash_of(text(id).substr(prefix_size), hash);
  const auto tag = static_cast<std::uint32_t>(hash);
  std::size_t slot = hash >> shift_;
  while (slots_[slot].id != kNone && !(slots_[slot].tag == tag && text(slots_[slot].id) == text(id))) {
    slot = (slot + 1) & (slots_.size() - 1);
  }
  slots_[slot] = {tag, id};
}

TokenId Vocabulary::find(std::string_view text, std::uint64_t hash, std::size_t prefix_size) const noexcept {
  const auto tag = static_cast<std::uint32_t>(hash);
  for (std::size_t slot = hash >> shift_;; slot = (slot + 1) & (slots_.size() - 1)) {
    const Slot& candidate = slots_[slot];
    if (candidate.id == kNone) return kNone;
    if (candidate.tag == tag && matches(candidate.id, text, prefix_size)) return candidate.id;
  }
}

bool Vocabulary::matches(TokenId id, std::string_view text, std::size_t prefix_size) const noexcept {
  const Text& entry = texts_[static_cast<std::size_t>(id)];
  if (entry.size != text.size() + prefix_size) return false;
  const char* bytes = bytes_.data() + entry.offset;
  return std::memcmp(bytes, prefix_.data(), prefix_size) == 0 &&
         equal_padded(bytes + prefix_size, text.data(), text.size());
}

TokenId Vocabulary::find_text(std::string_view text) const {
  std::string padded(text);
  padded.append(kPadding, '\0');
  return find_initial({padded.data(), text.size()}, hash_of(text, kInitial));
}

std::string_view Vocabulary::text(TokenId id) const noexcept {
  if (id < 0 || static_cast<std::size_t>(id) >= texts_.size()) return {};
  const Text& entry = texts_[static_cast<std::size_t>(id)];
  return {bytes_.data() + entry.offset, entry.size};
}

}  // namespace waybill::embed
