#include "config/checks.h"

#include <algorithm>
#include <set>
#include <string_view>
#include <unordered_map>

#include <fmt/format.h>

#include "base/suggest.h"
#include "base/utf8.h"
#include "config/check_context.h"
#include "config/jobs_checks.h"
#include "config/languages.h"
#include "config/regex_options.h"
#include "config/server_checks.h"
#include "config/upstream_checks.h"

namespace waybill::config {
namespace {

class Checker : CheckContext {
 public:
  explicit Checker(const CheckContext& context) : CheckContext(context) {
    for (const Route& route : config_.routes) route_names_.push_back(route.name);
    rule_routes_ = route_names_;
    rule_routes_.push_back(config_.default_route);
  }

  void check_all() {
    check_route_names();
    check_rules();
    check_route_contents();
    check_utterances();
    check_head();
    check_default();
    if (config_.routes.empty() && !serves_models(config_)) {
      warn({file_, 0}, "routes",
           fmt::format("there are no routes; every prompt takes the default route \"{}\"",
                       config_.default_route));
    }
  }

  void complete() {
    for (Route& route : config_.routes) {
      if (route.model.empty()) route.model = route.name;
    }
    for (Model& model : config_.models) {
      for (Target& target : model.targets) {
        if (target.model.empty()) target.model = model.name;
      }
    }
    complete_jobs(config_.jobs);
    if (!config_.default_model.empty() || is_without_routing(config_)) return;
    const auto found = std::ranges::find(config_.routes, config_.default_route, &Route::name);
    config_.default_model = found != config_.routes.end() ? found->model : config_.default_route;
  }

 private:
  static std::string route_key(std::size_t i) { return fmt::format("routes[{}]", i); }
  static std::string rule_key(std::size_t i) { return fmt::format("rules[{}]", i); }

  void check_route_names() {
    std::unordered_map<std::string_view, const Route*> first;
    for (std::size_t i = 0; i < config_.routes.size(); ++i) {
      const Route& route = config_.routes[i];
      if (route.name.empty()) continue;  // told when it was read
      const auto [before, added] = first.emplace(route.name, &route);
      if (added) continue;
      error(route.position, route_key(i) + ".name",
            fmt::format("the route \"{}\" is there twice (first at {}); rename one, or move its utterances "
                        "to the other",
                        route.name, before->second->position.text()));
    }
  }

  void check_rules() {
    std::unordered_map<std::string_view, const Rule*> first;
    for (std::size_t i = 0; i < config_.rules.size(); ++i) {
      Rule& rule = config_.rules[i];
      if (rule.name.empty()) rule.name = fmt::format("rule {}", i + 1);
      const auto [before, added] = first.emplace(rule.name, &rule);
      if (!added) {
        error(rule.position, rule_key(i) + ".name",
              fmt::format("the rule \"{}\" is there twice (first at {}); rename one", rule.name,
                          before->second->position.text()));
      }
      if (rule.route.empty() == rule.veto.empty()) {
        error(rule.position, rule_key(i),
              fmt::format("the rule \"{}\" must either decide (route: ...) or forbid (veto: [...]){}",
                          rule.name, rule.route.empty() ? "; add one of them" : "; make two rules of it"));
      }
      check_rule_routes(rule, rule_key(i));
      check_condition(rule.when, rule_key(i) + ".when");
    }
  }

  void check_rule_routes(const Rule& rule, const std::string& key) {
    if (!rule.route.empty() && std::ranges::find(rule_routes_, rule.route) == rule_routes_.end()) {
      error(rule.position, key + ".route", unknown_route(rule, rule.route));
    }
    for (const std::string& name : rule.veto) {
      if (std::ranges::find(route_names_, name) != route_names_.end()) continue;
      if (name == config_.default_route) {
        error(rule.position, key + ".veto",
              fmt::format("the rule \"{}\" forbids the default route \"{}\", which is what is left when all "
                          "else is forbidden; "
                          "take it out of veto",
                          rule.name, name));
      } else {
        error(rule.position, key + ".veto", unknown_route(rule, name));
      }
    }
  }

  [[nodiscard]] std::string unknown_route(const Rule& rule, std::string_view name) const {
    const std::string hint = did_you_mean(name, rule_routes_);
    return fmt::format("the rule \"{}\" names the route \"{}\", which is not there{}", rule.name, name,
                       hint.empty() ? "; add it to routes, or correct the name" : hint);
  }

  void check_condition(const Condition& condition, const std::string& key) {
    const auto each = [this, &key](std::string_view name, const std::vector<Condition>& of) {
      for (std::size_t i = 0; i < of.size(); ++i)
        check_condition(of[i], fmt::format("{}.{}[{}]", key, name, i));
    };
    if (const auto* all = std::get_if<Condition::All>(&condition.is)) each("all", all->of);
    if (const auto* any = std::get_if<Condition::Any>(&condition.is)) each("any", any->of);
    if (const auto* inverse = std::get_if<Condition::Not>(&condition.is)) {
      for (const Condition& inner : inverse->of) check_condition(inner, key + ".not");
    }
    if (const auto* regex = std::get_if<Condition::Regex>(&condition.is)) {
      const re2::RE2 compiled(regex->pattern, regex_options());
      if (!compiled.ok()) error(condition.position, key + ".regex", regex_problem(regex->pattern, compiled));
    }
    if (const auto* language = std::get_if<Condition::Language>(&condition.is)) {
      for (const std::string& code : language->codes) {
        if (is_language_code(code)) continue;
        error(condition.position, key + ".language",
              fmt::format("\"{}\" is not a language; write its two letters of ISO 639-1 in lower case (en, "
                          "de, fr, zh){}",
                          code, language_suggestion(code)));
      }
    }
    if (const auto* length = std::get_if<Condition::Length>(&condition.is))
      check_length(*length, condition.position, key);
  }

  static std::string regex_problem(const std::string& pattern, const re2::RE2& compiled) {
    std::string hint;
    switch (compiled.error_code()) {
      case re2::RE2::ErrorBadPerlOp:
      case re2::RE2::ErrorBadEscape:
        hint = "; RE2 has no look-around and no back-references, write it without, or use not:";
        break;
      case re2::RE2::ErrorMissingParen:
      case re2::RE2::ErrorMissingBracket:
        hint = "; close it, or put a backslash before it when it is meant as it stands";
        break;
      case re2::RE2::ErrorPatternTooLarge:
        hint = "; write it with fewer or smaller repetitions";
        break;
      default:
        break;
    }
    // Both the pattern cut short and what RE2 quotes of it may end within a character.
    return to_valid_utf8(fmt::format("the pattern {} is not one that RE2 takes: {}{}",
                                     pattern.size() <= 60 ? pattern : pattern.substr(0, 60) + "...",
                                     compiled.error(), hint));
  }

  void check_length(const Condition::Length& length, const Position& at, const std::string& key) {
    if (!length.min && !length.max) error(at, key + ".length", "length needs min, max or both");
    if (length.min && length.max && *length.min > *length.max) {
      error(at, key + ".length",
            fmt::format("min {} is more than max {}, so that no prompt fits; swap them", *length.min,
                        *length.max));
    }
  }

  void check_route_contents() {
    std::set<std::string_view> named_by_rules;
    for (const Rule& rule : config_.rules) named_by_rules.insert(rule.route);
    std::set<std::string, std::less<>> wrong;  // keys whose values were given, but could not be read
    for (const Diagnostic& error : errors_) wrong.insert(error.key);
    for (std::size_t i = 0; i < config_.routes.size(); ++i) {
      const Route& route = config_.routes[i];
      const std::string key = route_key(i) + ".utterances";
      const auto first = wrong.lower_bound(key);
      const bool said = first != wrong.end() && first->starts_with(key);
      if (route.utterances.empty() && !said && !named_by_rules.contains(route.name)) {
        error(route.position, route_key(i),
              fmt::format("the route \"{}\" has no utterances and no rule names it, so that nothing could "
                          "choose it; add "
                          "utterances",
                          route.name));
      }
      check_threshold(route, route_key(i));
    }
  }

  void check_threshold(const Route& route, const std::string& key) {
    const bool sum =
        config_.head.scoring == Scoring::kAurelio && config_.head.aggregation == Aggregation::kSum;
    const double most = sum ? static_cast<double>(config_.head.top_k) : 1;
    if (!route.threshold || *route.threshold <= most) return;
    error(line_of(key + ".threshold"), key + ".threshold",
          fmt::format("{}.threshold is {}, which must be a number from 0 to {} or auto", key,
                      *route.threshold, most));
  }

  void check_utterances() {
    struct First {
      const Utterance* utterance;
      const Route* route;  // null: out of scope
    };
    std::unordered_map<std::string_view, First> first;
    const auto look_at = [&](const Utterance& utterance, const Route* route, const std::string& key) {
      const auto [before, added] = first.emplace(utterance.text, First{&utterance, route});
      if (added) return;
      const auto place = [](const Route* r) {
        if (r == nullptr) return std::string("head.out_of_scope");
        return r->name.empty() ? std::string("a route without a name") : '"' + r->name + '"';
      };
      const std::string where = before->second.utterance->position.text();
      if (before->second.route == route) {
        warn(utterance.position, key,
             fmt::format("\"{}\" stands twice in {} (first at {}); remove one", utterance.text, place(route),
                         where));
      } else {
        warn(
            utterance.position, key,
            fmt::format("\"{}\" stands in {} and in {} ({}), so that neither can be told from it; remove one",
                        utterance.text, place(route), place(before->second.route), where));
      }
    };
    for (std::size_t i = 0; i < config_.routes.size(); ++i) {
      for (const Utterance& utterance : config_.routes[i].utterances) {
        look_at(utterance, &config_.routes[i], route_key(i) + ".utterances");
      }
    }
    for (const Utterance& utterance : config_.head.out_of_scope)
      look_at(utterance, nullptr, "head.out_of_scope");
  }

  void check_head() {
    const Head& head = config_.head;
    const Head usual;
    if (head.scoring == Scoring::kAurelio) {
      check_unused("head.reject_quantile", head.reject_quantile != usual.reject_quantile, "scoring: kernel");
    } else {
      check_unused("head.aggregation", head.aggregation != usual.aggregation, "scoring: aurelio");
      check_unused("head.top_k", head.top_k != usual.top_k, "scoring: aurelio");
    }
    if (config_.encoder.long_text != LongText::kWindows) {
      check_unused("encoder.max_windows", config_.encoder.max_windows != Encoder{}.max_windows,
                   "long_text: windows");
    }
  }

  void check_unused(const std::string& key, bool changed, std::string_view needs) {
    if (!changed || !lines_.contains(key)) return;
    warn(line_of(key), key, fmt::format("{} has no effect without {}", key, needs));
  }

  void check_default() {
    if (std::ranges::find(route_names_, config_.default_route) != route_names_.end()) return;
    if (!lines_.contains("default_route")) return;
    const std::string hint = did_you_mean(config_.default_route, route_names_);
    if (hint.empty()) return;
    warn(line_of("default_route"), "default_route",
         fmt::format("the default route \"{}\" is not one of the routes{} (If it is meant as a name of its "
                     "own, all is well.)",
                     config_.default_route, hint));
  }

  std::vector<std::string_view> route_names_, rule_routes_;
};

}  // namespace

void complete_and_check(Config& config, const std::map<std::string, int, std::less<>>& lines,
                        const std::string& file, std::vector<Diagnostic>& errors) {
  const CheckContext context(config, lines, file, errors);
  Checker checker(context);
  checker.check_all();
  check_server(context);
  check_providers(context);
  check_models(context);
  check_jobs(context);
  checker.complete();
}

}  // namespace waybill::config
