// JSON objects, read and spliced: held against Boost.JSON.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>
#include <string_view>

#include <boost/json.hpp>

#include "base/check.h"
#include "base/json_text.h"
#include "upstream/json_members.h"

namespace {

namespace json = boost::json;
using namespace waybill::upstream;

enum class Verdict : std::uint8_t { kJson, kNotJson, kUnknown };

// Boost's opinion. It also refuses numbers with exponents that it cannot hold, which is not for us to say.
Verdict ask_boost(std::string_view text, json::value& value) {
  json::parse_options options;
  options.max_depth = JsonScanner::kMaxDepth + 1;
  options.allow_invalid_utf8 = true;
  json::error_code error;
  value = json::parse(json::string_view(text.data(), text.size()), error, {}, options);
  if (!error) return Verdict::kJson;
  return error == json::error::exponent_overflow ? Verdict::kUnknown : Verdict::kNotJson;
}

// Boost reads the last bit of a long fraction by where it stands in the text.
bool alike(const json::value& a, const json::value& b) {
  if (a.is_double() && b.is_double()) {
    const double x = a.get_double(), y = b.get_double();
    return x == y || std::abs(x - y) <= 1e-12 * std::abs(x);
  }
  if (a.is_array() && b.is_array()) return std::ranges::equal(a.get_array(), b.get_array(), alike);
  if (!a.is_object() || !b.is_object()) return a == b;
  if (a.get_object().size() != b.get_object().size()) return false;
  return std::ranges::all_of(a.get_object(), [&](const json::key_value_pair& member) {
    const json::value* other = b.get_object().if_contains(member.key());
    return other != nullptr && alike(member.value(), *other);
  });
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view input(reinterpret_cast<const char*>(data), size);
  JsonScanner scanner(input);
  scanner.skip();
  // Ours takes single surrogates, which Boost does not.
  const std::string text = scanner.at_end() ? waybill::decodable_json(input) : std::string(input);
  json::value tree;
  const Verdict verdict = ask_boost(text, tree);
  if (verdict == Verdict::kUnknown) return 0;
  if (!scanner.failed()) WAYBILL_CHECK(verdict == Verdict::kJson);

  JsonMembers members;
  const bool parsed = members.parse(text).has_value();
  if (verdict == Verdict::kJson && tree.is_object() && tree.get_object().size() < 1000 && !scanner.failed())
    WAYBILL_CHECK(parsed || std::ranges::count(text, ':') > 1000);
  WAYBILL_CHECK(!parsed || (verdict == Verdict::kJson && tree.is_object()));
  if (!parsed) return 0;

  std::string name;
  for (const JsonMember& member : members.all()) {
    const std::string_view key = member.key.text(name);
    json::value value;
    WAYBILL_CHECK(ask_boost(members.find(key)->value, value) == Verdict::kJson);
    WAYBILL_CHECK(alike(value, tree.get_object().at(json::string_view(key.data(), key.size()))));
  }

  const JsonEdit edits[] = {{"model", "\"x\""}, {"a", {}}, {"stream_options", "{\"include_usage\":true}"}};
  std::string changed;
  members.splice(edits, changed);
  json::value after;
  WAYBILL_CHECK(ask_boost(changed, after) == Verdict::kJson);
  json::object& expected = tree.get_object();
  expected["model"] = "x";
  expected.erase("a");
  expected["stream_options"] = {{"include_usage", true}};
  WAYBILL_CHECK(alike(after, tree));
  // No other member of an edited name is left for a parser that takes the first.
  JsonMembers again;
  WAYBILL_CHECK(again.parse(changed).has_value());
  for (const JsonMember& member : again.all()) {
    WAYBILL_CHECK(!member.key.is("a"));
    if (member.key.is("model")) WAYBILL_CHECK(member.value == "\"x\"");
  }
  return 0;
}
