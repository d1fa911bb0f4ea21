#include "embed/codepoints.h"

#include <algorithm>
#include <cstddef>
#include <memory>
#include <vector>

namespace waybill::embed {
namespace {

struct CodePointRange {
  char32_t first, last;
  std::int32_t lower;
  std::uint16_t decomposition;
  std::uint8_t decomposition_length;
  std::uint8_t flags;
};

#include "embed/codepoint_table.inc"

constexpr std::size_t kBlock = 256;
constexpr std::size_t kBlocks = 0x110000 / kBlock;

// Two stages: block -> entries of the block -> record. Blocks of one kind throughout share their entries.
class Table {
 public:
  Table() {
    records_.emplace_back();
    entries_.assign(kBlock, 0);  // the block where everything is a letter
    for (const CodePointRange& range : kRanges) add(range);
  }

  [[nodiscard]] const CodePoint& find(char32_t c) const noexcept {
    if (c >= kBlock * kBlocks) return records_[0];
    return records_[entries_[blocks_[c / kBlock] * kBlock + c % kBlock]];
  }

 private:
  void add(const CodePointRange& range) {
    const std::uint16_t record = record_of({.flags = range.flags,
                                            .decomposition_length = range.decomposition_length,
                                            .decomposition = range.decomposition,
                                            .lower = range.lower});
    std::uint16_t uniform = 0;  // the shared block of this range, once there is one
    for (std::size_t block = range.first / kBlock; block <= range.last / kBlock; ++block) {
      const std::size_t first = std::max<std::size_t>(range.first, block * kBlock) % kBlock;
      const std::size_t last = std::min<std::size_t>(range.last, block * kBlock + kBlock - 1) % kBlock;
      const bool whole = first == 0 && last == kBlock - 1;
      if (whole && uniform != 0) {
        blocks_[block] = uniform;
        continue;
      }
      if (blocks_[block] == 0) {
        blocks_[block] = static_cast<std::uint16_t>(entries_.size() / kBlock);
        entries_.resize(entries_.size() + kBlock, 0);
      }
      if (whole) uniform = blocks_[block];
      const auto begin = entries_.begin() + static_cast<std::ptrdiff_t>(blocks_[block] * kBlock);
      std::fill(begin + static_cast<std::ptrdiff_t>(first), begin + static_cast<std::ptrdiff_t>(last) + 1,
                record);
    }
  }

  // Neighbours in the table often have the same properties; looking back a little finds most of them.
  std::uint16_t record_of(const CodePoint& properties) {
    const std::size_t back = std::min<std::size_t>(records_.size(), 64);
    const auto found =
        std::find(records_.end() - static_cast<std::ptrdiff_t>(back), records_.end(), properties);
    if (found != records_.end()) return static_cast<std::uint16_t>(found - records_.begin());
    records_.push_back(properties);
    return static_cast<std::uint16_t>(records_.size() - 1);
  }

  std::vector<CodePoint> records_;
  std::vector<std::uint16_t> entries_;
  std::uint16_t blocks_[kBlocks] = {};
};

const Table& table() {
  static const Table table;
  return table;
}

}  // namespace

const CodePoint& code_point(char32_t c) noexcept { return table().find(c); }

std::span<const char32_t> decomposition(const CodePoint& c) noexcept {
  return std::span(kDecompositions).subspan(c.decomposition, c.decomposition_length);
}

std::size_t decompose_hangul(char32_t c, char32_t (&jamo)[3]) noexcept {
  constexpr char32_t kVowels = 21;
  constexpr char32_t kTrails = 28;  // the first is "no trailing consonant"
  const char32_t index = c - 0xAC00;
  jamo[0] = 0x1100 + index / (kVowels * kTrails);
  jamo[1] = 0x1161 + index % (kVowels * kTrails) / kTrails;
  jamo[2] = 0x11A7 + index % kTrails;
  return index % kTrails == 0 ? 2 : 3;
}

}  // namespace waybill::embed
