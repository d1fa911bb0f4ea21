// Token ids of many texts, for tokenizer_differential.py.
// usage: tokenize FOLDER MAX_IDS <texts >ids; a text is its length in bytes, a line feed, its bytes, a line
// feed.
#include <cstdlib>
#include <iostream>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "embed/tokenizer.h"

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  const auto tokenizer = waybill::embed::Tokenizer::load(argv[1]);
  if (!tokenizer) {
    fmt::print(stderr, "tokenize: {}\n", tokenizer.error().message);
    return 1;
  }
  const std::size_t max_ids = std::strtoull(argv[2], nullptr, 10);
  std::vector<waybill::embed::TokenId> ids;
  std::string text;
  for (std::size_t size = 0; std::cin >> size;) {
    std::cin.get();
    text.resize(size);
    std::cin.read(text.data(), static_cast<std::streamsize>(size));
    ids.clear();
    tokenizer->encode(text, max_ids, ids);
    fmt::print("{}\n", fmt::join(ids, " "));
  }
  return 0;
}
