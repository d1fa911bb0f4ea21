#include "route/rules.h"

#include <algorithm>
#include <array>
#include <limits>
#include <optional>
#include <tuple>
#include <utility>
#include <variant>

#include <fmt/format.h>
#include <re2/re2.h>

#include "base/utf8.h"
#include "config/regex_options.h"
#include "route/language.h"

namespace waybill::route {
namespace {

using config::Condition;

// A whole word touches no letter, mark, digit or underscore.
constexpr std::string_view kWordStart = R"((?:^|[^\p{L}\p{M}\p{N}_]))";
constexpr std::string_view kWordEnd = R"((?:$|[^\p{L}\p{M}\p{N}_]))";

std::string_view first_character(std::string_view word) {
  std::size_t end = 0;
  std::ignore = next_code_point(word, end);
  return word.substr(0, end);
}

std::string_view last_character(std::string_view word) {
  std::size_t start = word.size() - 1;
  while (start > 0 && (static_cast<unsigned char>(word[start]) & 0xC0U) == 0x80U) --start;
  return word.substr(start);
}

// A boundary is asked for only beside a character that could go on as a word, in a script that puts spaces
// between words.
bool needs_boundary(std::string_view edge) {
  static const re2::RE2 word_character(R"([\p{L}\p{M}\p{N}_])");
  static const re2::RE2 unspaced(R"([\p{Han}\p{Hiragana}\p{Katakana}\p{Thai}\p{Lao}\p{Khmer}\p{Myanmar}])");
  const re2::StringPiece character(edge.data(), edge.size());
  return re2::RE2::FullMatch(character, word_character) && !re2::RE2::FullMatch(character, unspaced);
}

// The words in up to four groups by the boundaries they need, so that a boundary (a large class) stands once
// in each.
std::string keyword_pattern(const Condition::Keyword& keyword) {
  std::array<std::string, 4> groups;
  for (const std::string& word : keyword.words) {
    const bool before = keyword.whole_words && needs_boundary(first_character(word));
    const bool after = keyword.whole_words && needs_boundary(last_character(word));
    std::string& group = groups[(before ? 2U : 0U) + (after ? 1U : 0U)];
    if (!group.empty()) group.push_back('|');
    group += re2::RE2::QuoteMeta(word);
  }
  std::string pattern;
  for (std::size_t i = 0; i < groups.size(); ++i) {
    if (groups[i].empty()) continue;
    if (!pattern.empty()) pattern.push_back('|');
    pattern +=
        fmt::format("{}(?:{}){}", (i & 2U) != 0 ? kWordStart : "", groups[i], (i & 1U) != 0 ? kWordEnd : "");
  }
  return pattern;
}

// One prompt while rules are asked about it; what several conditions need is found out once.
class Prompt {
 public:
  explicit Prompt(std::string_view raw) : text_(raw) {
    if (is_valid_utf8(raw)) return;
    repaired_ = to_valid_utf8(raw);
    text_ = repaired_;
  }
  Prompt(const Prompt&) = delete;
  Prompt& operator=(const Prompt&) = delete;

  [[nodiscard]] std::string_view text() const { return text_; }

  std::size_t length() {
    if (!length_) {
      length_ = static_cast<std::size_t>(std::ranges::count_if(
          text_, [](char c) { return (static_cast<unsigned char>(c) & 0xC0U) != 0x80U; }));
    }
    return *length_;
  }

  LanguageCode language() {
    if (!language_) {
      std::size_t end = std::min(text_.size(), RuleSet::kLanguageBytes);
      while (end < text_.size() && (static_cast<unsigned char>(text_[end]) & 0xC0U) == 0x80U) --end;
      language_ = detect_language(text_.substr(0, end));
    }
    return *language_;
  }

 private:
  std::string_view text_;
  std::string repaired_;
  std::optional<std::size_t> length_;
  std::optional<LanguageCode> language_;
};

struct Test {
  struct Group {
    bool all;  // else any
    std::vector<Test> of;
  };
  struct Inverse {
    std::vector<Test> of;  // exactly one
  };
  struct Pattern {
    std::unique_ptr<const re2::RE2> regex;
  };
  struct Languages {
    std::vector<LanguageCode> codes;
  };
  struct Length {
    std::size_t min, max;
  };
  std::variant<Group, Inverse, Pattern, Languages, Length> is;

  [[nodiscard]] bool holds(Prompt& prompt) const {
    if (const auto* group = std::get_if<Group>(&is)) {
      const auto inner_holds = [&prompt](const Test& inner) { return inner.holds(prompt); };
      return group->all ? std::ranges::all_of(group->of, inner_holds)
                        : std::ranges::any_of(group->of, inner_holds);
    }
    if (const auto* inverse = std::get_if<Inverse>(&is)) return !inverse->of.front().holds(prompt);
    if (const auto* pattern = std::get_if<Pattern>(&is)) {
      return re2::RE2::PartialMatch(re2::StringPiece(prompt.text().data(), prompt.text().size()),
                                    *pattern->regex);
    }
    if (const auto* languages = std::get_if<Languages>(&is)) {
      const LanguageCode language = prompt.language();
      return language != 0 && std::ranges::find(languages->codes, language) != languages->codes.end();
    }
    const auto& length = std::get<Length>(is);
    return prompt.length() >= length.min && prompt.length() <= length.max;
  }
};

struct CompiledRule {
  std::string name;
  Test when;
  RuleOutcome::Verdict verdict = RuleOutcome::Verdict::kOpen;  // kOpen: a veto
  std::uint32_t route = 0;
  std::vector<std::uint32_t> veto;
};

// Compiles conditions, collecting what is wrong with them.
class Compiler {
 public:
  Compiler(std::span<const std::string_view> routes, std::string_view default_route)
      : routes_(routes), default_route_(default_route) {}

  CompiledRule compile(const config::Rule& rule) {
    CompiledRule compiled;
    compiled.name = rule.name;
    compiled.when = compile(rule.when);
    for (const std::string& name : rule.veto) {
      if (const auto index = find(name)) {
        compiled.veto.push_back(*index);
      } else {
        fault(rule.position,
              fmt::format("the rule \"{}\" names the route \"{}\", which is not there", rule.name, name));
      }
    }
    if (rule.route.empty()) return compiled;
    if (const auto index = find(rule.route)) {
      compiled.verdict = RuleOutcome::Verdict::kRoute;
      compiled.route = *index;
    } else if (rule.route == default_route_) {
      compiled.verdict = RuleOutcome::Verdict::kDefault;
    } else {
      fault(rule.position,
            fmt::format("the rule \"{}\" names the route \"{}\", which is not there", rule.name, rule.route));
    }
    return compiled;
  }

  [[nodiscard]] const std::string& faults() const { return faults_; }

 private:
  void fault(const config::Position& at, std::string_view message) {
    if (!faults_.empty()) faults_.push_back('\n');
    faults_ += fmt::format("{}: {}", at.text(), message);
  }

  [[nodiscard]] std::optional<std::uint32_t> find(std::string_view name) const {
    const auto found = std::ranges::find(routes_, name);
    if (found == routes_.end()) return std::nullopt;
    return static_cast<std::uint32_t>(found - routes_.begin());
  }

  std::vector<Test> compile(const std::vector<Condition>& conditions) {
    std::vector<Test> tests;
    tests.reserve(conditions.size());
    for (const Condition& condition : conditions) tests.push_back(compile(condition));
    return tests;
  }

  Test compile(const Condition& condition) {
    if (const auto* all = std::get_if<Condition::All>(&condition.is))
      return {Test::Group{true, compile(all->of)}};
    if (const auto* any = std::get_if<Condition::Any>(&condition.is))
      return {Test::Group{false, compile(any->of)}};
    if (const auto* inverse = std::get_if<Condition::Not>(&condition.is)) {
      if (inverse->of.size() == 1) return {Test::Inverse{compile(inverse->of)}};
      fault(condition.position, "not: takes exactly one condition");
      return {Test::Group{true, {}}};
    }
    if (const auto* regex = std::get_if<Condition::Regex>(&condition.is)) {
      auto compiled = std::make_unique<const re2::RE2>(regex->pattern, config::regex_options());
      if (!compiled->ok()) {
        fault(condition.position,
              fmt::format("the pattern {} is not one that RE2 takes: {}", regex->pattern, compiled->error()));
      }
      return {Test::Pattern{std::move(compiled)}};
    }
    if (const auto* keyword = std::get_if<Condition::Keyword>(&condition.is)) {
      if (std::ranges::any_of(keyword->words, &std::string::empty) || keyword->words.empty()) {
        fault(condition.position, "keyword: needs words that are not empty");
        return {Test::Group{false, {}}};
      }
      auto regex = std::make_unique<const re2::RE2>(keyword_pattern(*keyword),
                                                    config::regex_options(keyword->case_sensitive));
      if (!regex->ok()) {
        fault(condition.position,
              fmt::format("{} keywords are more than one condition can take ({}); spread them over several "
                          "under any:",
                          keyword->words.size(), regex->error()));
      }
      return {Test::Pattern{std::move(regex)}};
    }
    if (const auto* language = std::get_if<Condition::Language>(&condition.is)) {
      Test::Languages languages;
      for (const std::string& code : language->codes) {
        languages.codes.push_back(language_code(code));
        if (languages.codes.back() == 0)
          fault(condition.position, fmt::format("\"{}\" is not a code of ISO 639-1", code));
      }
      return {std::move(languages)};
    }
    const auto& length = std::get<Condition::Length>(condition.is);
    return {
        Test::Length{length.min.value_or(0), length.max.value_or(std::numeric_limits<std::size_t>::max())}};
  }

  std::span<const std::string_view> routes_;
  std::string_view default_route_;
  std::string faults_;
};

}  // namespace

struct RuleSet::Impl {
  std::vector<CompiledRule> vetoes, deciders;
  std::size_t veto_words = 0;
};

RuleSet::RuleSet() = default;
RuleSet::RuleSet(RuleSet&&) noexcept = default;
RuleSet& RuleSet::operator=(RuleSet&&) noexcept = default;
RuleSet::~RuleSet() = default;

Result<RuleSet> RuleSet::compile(std::span<const config::Rule> rules,
                                 std::span<const std::string_view> routes, std::string_view default_route) {
  Compiler compiler(routes, default_route);
  auto impl = std::make_unique<Impl>();
  impl->veto_words = (routes.size() + 63) / 64;
  for (const config::Rule& rule : rules) {
    CompiledRule compiled = compiler.compile(rule);
    (rule.route.empty() ? impl->vetoes : impl->deciders).push_back(std::move(compiled));
  }
  if (!compiler.faults().empty()) return fail(ErrorCode::kInvalidInput, compiler.faults(), "rules");
  RuleSet set;
  if (!rules.empty()) set.impl_ = std::move(impl);
  return set;
}

Result<RuleSet> RuleSet::compile(const config::Config& config) {
  std::vector<std::string_view> names;
  for (const config::Route& route : config.routes) names.emplace_back(route.name);
  return compile(config.rules, names, config.default_route);
}

bool RuleSet::empty() const noexcept { return impl_ == nullptr; }

void RuleSet::decide(std::string_view prompt, RuleOutcome& outcome) const {
  outcome.verdict = RuleOutcome::Verdict::kOpen;
  outcome.rule = {};
  outcome.veto_rule = {};
  outcome.veto_bits.clear();
  if (impl_ == nullptr) return;

  Prompt subject(prompt);
  for (const CompiledRule& rule : impl_->vetoes) {
    if (!rule.when.holds(subject)) continue;
    if (outcome.veto_rule.empty()) outcome.veto_rule = rule.name;
    outcome.veto_bits.resize(impl_->veto_words, 0);
    for (const std::uint32_t route : rule.veto)
      outcome.veto_bits[route / 64] |= std::uint64_t{1} << (route % 64);
  }
  for (const CompiledRule& rule : impl_->deciders) {
    const bool forbidden = rule.verdict == RuleOutcome::Verdict::kRoute && outcome.vetoed(rule.route);
    if (forbidden || !rule.when.holds(subject)) continue;
    outcome.verdict = rule.verdict;
    outcome.route = rule.route;
    outcome.rule = rule.name;
    return;
  }
}

}  // namespace waybill::route
