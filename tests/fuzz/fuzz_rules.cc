// Rules: the first line is a pattern, the second a keyword, the rest the prompt.
#include <algorithm>
#include <array>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/check.h"
#include "route/rules.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace waybill;
  using config::Condition;
  std::string_view rest(reinterpret_cast<const char*>(data), size);
  const auto next_line = [&rest] {
    const std::size_t end = std::min(rest.find('\n'), rest.size());
    std::string line(rest.substr(0, end));
    rest.remove_prefix(std::min(end + 1, rest.size()));
    return line;
  };
  std::array<config::Rule, 4> rules;
  rules[0].when.is = Condition::Regex{next_line()};
  const std::string word = next_line();
  rules[1].when.is = Condition::Keyword{{word, "word"}};
  rules[2].when.is = Condition::Language{{"en", "de"}};
  rules[3].when.is = Condition::Length{1, {}};
  for (config::Rule& rule : rules) rule.veto = {"a"};
  rules[3].veto.clear();
  rules[3].route = "b";
  const std::array<std::string_view, 2> routes = {"a", "b"};
  const auto set = route::RuleSet::compile(rules, routes, "default");
  if (!set) {
    WAYBILL_CHECK(!set.error().message.empty());
    return 0;
  }
  route::RuleOutcome outcome;
  set->decide(rest, outcome);
  WAYBILL_CHECK((outcome.verdict == route::RuleOutcome::Verdict::kRoute) == !rest.empty());
  WAYBILL_CHECK(!outcome.vetoed(1));
  return 0;
}
