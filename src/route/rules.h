// Rules: what is known without asking the encoder.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "config/config.h"

namespace waybill::route {

// What the rules say about one prompt. Reused from call to call, it stops allocating.
struct RuleOutcome {
  enum class Verdict : std::uint8_t {
    kOpen,     // no rule decides: ask the semantic signal, but for the vetoed routes
    kRoute,    // a rule decides for `route`
    kDefault,  // a rule decides for the default route, which is not one of the routes
  };

  Verdict verdict = Verdict::kOpen;
  std::uint32_t route = 0;               // index into the route names given to compile(); kRoute only
  std::string_view rule;                 // the name of the rule that decided; lives as long as the RuleSet
  std::string_view veto_rule;            // the name of the first rule that vetoed; empty when none did
  std::vector<std::uint64_t> veto_bits;  // one bit a route; empty when nothing is vetoed

  [[nodiscard]] bool vetoed(std::uint32_t index) const noexcept {
    return !veto_bits.empty() && ((veto_bits[index / 64] >> (index % 64)) & 1U) != 0;
  }
};

// The rules of a configuration, compiled.
//
//   keyword   any of the words stands in the prompt. Whole words: no letter, mark, digit or underscore
//   (Unicode)
//             touches it on a side where the word itself has one; words of scripts written without spaces
//             (Han, Kana, Thai, Lao, Khmer, Myanmar) are found anywhere. Case is folded as Unicode's simple
//             folding does, unless case_sensitive.
//   regex     RE2 syntax (github.com/google/re2/wiki/Syntax), searched anywhere; time linear in the prompt
//   language  as Compact Language Detector 2 sees it, from the first kLanguageBytes of the prompt. A text
//   that is too
//             short or too mixed to tell (mostly below 20 letters) has no language: the condition is false,
//             and `not: {language: ...}` is true.
//   length    in Unicode code points
//
// Invalid UTF-8 is read as U+FFFD. Vetoes are collected from all rules that hold; the first deciding rule
// that holds and whose route is not vetoed decides. Immutable after compile(); all functions are thread-safe.
class RuleSet {
 public:
  static constexpr std::size_t kLanguageBytes = 4096;

  // Fails with kInvalidInput, all faults in one message, one a line, each with file:line. `routes` are the
  // names that rules may use, in the order of their indices; `default_route` is one more.
  [[nodiscard]] static Result<RuleSet> compile(std::span<const config::Rule> rules,
                                               std::span<const std::string_view> routes,
                                               std::string_view default_route);
  [[nodiscard]] static Result<RuleSet> compile(const config::Config& config);

  RuleSet();  // no rules
  RuleSet(RuleSet&&) noexcept;
  RuleSet& operator=(RuleSet&&) noexcept;
  ~RuleSet();

  [[nodiscard]] bool empty() const noexcept;
  void decide(std::string_view prompt, RuleOutcome& outcome) const;

 private:
  struct Impl;
  std::unique_ptr<const Impl> impl_;
};

}  // namespace waybill::route
