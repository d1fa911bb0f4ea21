// Distinct, realistic prompts of about 7-125 tokens, each with the route it is meant for. The same seed gives
// the same sequence on every machine.
#pragma once

#include <cstddef>
#include <cstdint>
#include <random>
#include <string>
#include <string_view>
#include <unordered_set>
#include <vector>

namespace burst {

struct Prompt {
  std::string text;
  std::string_view topic;  // the route that it is meant for
};

class PromptSource {
 public:
  // pool_size: 0 for prompts that are all distinct; else that many distinct ones are made, and each next()
  // draws one of them.
  PromptSource(std::uint64_t seed, std::size_t pool_size);

  [[nodiscard]] Prompt next();
  [[nodiscard]] const std::vector<Prompt>& pool() const { return pool_; }

 private:
  std::uint64_t below(std::uint64_t n) { return engine_() % n; }
  double unit() { return static_cast<double>(engine_() >> 11) * 0x1.0p-53; }
  std::string fill(std::string_view pattern);
  Prompt make();
  Prompt make_new();

  // Only the engine's output is specified by the standard, not that of the distributions; drawing by hand
  // keeps the sequence the same with every library.
  std::mt19937_64 engine_;
  std::unordered_set<std::uint64_t> seen_;  // hashes of the texts
  std::vector<Prompt> pool_;
};

}  // namespace burst
