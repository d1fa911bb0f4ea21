#include "embed/json.h"

#include <algorithm>
#include <vector>

#include <boost/json/basic_parser_impl.hpp>
#include <boost/json/value_stack.hpp>
#include <fmt/format.h>

#include "base/hash.h"

namespace waybill::embed {
namespace {

namespace json = boost::json;

// Builds the document and remembers the hashes of the keys of each open object. (json::parse keeps the last
// of two equal keys silently; whoever reads the first would see another file.)
class StrictHandler {
 public:
  static constexpr std::size_t max_object_size = static_cast<std::size_t>(-1);
  static constexpr std::size_t max_array_size = static_cast<std::size_t>(-1);
  static constexpr std::size_t max_key_size = static_cast<std::size_t>(-1);
  static constexpr std::size_t max_string_size = static_cast<std::size_t>(-1);

  bool on_document_begin(json::error_code&) { return true; }
  bool on_document_end(json::error_code&) { return true; }
  bool on_array_begin(json::error_code&) { return true; }
  bool on_array_end(std::size_t n, json::error_code&) {
    stack_.push_array(n);
    return true;
  }
  bool on_object_begin(json::error_code&) {
    object_starts_.push_back(key_hashes_.size());
    return true;
  }
  bool on_object_end(std::size_t n, json::error_code& ec) {
    const auto begin = key_hashes_.begin() + static_cast<std::ptrdiff_t>(object_starts_.back());
    std::sort(begin, key_hashes_.end());
    if (std::adjacent_find(begin, key_hashes_.end()) != key_hashes_.end()) {
      repeated_key_ = true;
      ec = json::error::syntax;
      return false;
    }
    key_hashes_.erase(begin, key_hashes_.end());
    object_starts_.pop_back();
    stack_.push_object(n);
    return true;
  }
  bool on_string_part(json::string_view s, std::size_t, json::error_code&) {
    stack_.push_chars(s);
    return true;
  }
  bool on_string(json::string_view s, std::size_t, json::error_code&) {
    stack_.push_string(s);
    return true;
  }
  bool on_key_part(json::string_view s, std::size_t, json::error_code&) {
    key_.append(s.data(), s.size());
    stack_.push_chars(s);
    return true;
  }
  bool on_key(json::string_view s, std::size_t, json::error_code&) {
    key_.append(s.data(), s.size());
    key_hashes_.push_back(hash64(key_));
    key_.clear();
    stack_.push_key(s);
    return true;
  }
  bool on_number_part(json::string_view, json::error_code&) { return true; }
  bool on_int64(std::int64_t i, json::string_view, json::error_code&) {
    stack_.push_int64(i);
    return true;
  }
  bool on_uint64(std::uint64_t u, json::string_view, json::error_code&) {
    stack_.push_uint64(u);
    return true;
  }
  bool on_double(double d, json::string_view, json::error_code&) {
    stack_.push_double(d);
    return true;
  }
  bool on_bool(bool b, json::error_code&) {
    stack_.push_bool(b);
    return true;
  }
  bool on_null(json::error_code&) {
    stack_.push_null();
    return true;
  }
  bool on_comment_part(json::string_view, json::error_code&) { return true; }
  bool on_comment(json::string_view, json::error_code&) { return true; }

  [[nodiscard]] bool repeated_key() const { return repeated_key_; }
  json::value release() { return stack_.release(); }
  void begin(const json::storage_ptr& storage) { stack_.reset(storage); }

 private:
  json::value_stack stack_;
  std::string key_;
  std::vector<std::uint64_t> key_hashes_;   // of the open objects, outermost first
  std::vector<std::size_t> object_starts_;  // where each open object's keys begin in key_hashes_
  bool repeated_key_ = false;
};

}  // namespace

Result<json::value> parse_json(std::string_view text, std::string_view name) {
  json::basic_parser<StrictHandler> parser({});
  parser.handler().begin({});
  json::error_code ec;
  std::size_t end = parser.write_some(false, text.data(), text.size(), ec);
  if (parser.handler().repeated_key()) {
    return fail(ErrorCode::kCorrupt, fmt::format("{} has the same key twice in one object (before byte {}); "
                                                 "fetch the file again",
                                                 name, end));
  }
  if (!ec) {
    end = std::min(text.find_first_not_of(" \t\r\n", end), text.size());
    if (end != text.size()) ec = json::error::extra_data;
  }
  if (ec) {
    return fail(ErrorCode::kCorrupt,
                fmt::format("{} is not valid JSON (at byte {} of {}: {}); fetch the file again", name, end,
                            text.size(), ec.message()));
  }
  return parser.handler().release();
}

std::string quoted(std::string_view text) {
  constexpr std::size_t kMax = 60;
  std::string out = "\"";
  for (const char c : text.substr(0, kMax))
    out += static_cast<unsigned char>(c) < 0x20 || c == 0x7F ? '?' : c;
  out += text.size() > kMax ? "...\"" : "\"";
  return out;
}

Result<JsonFields> JsonFields::of(const json::value& value, std::string_view name) {
  if (const json::object* object = value.if_object()) return JsonFields(*object, name);
  return fail(ErrorCode::kCorrupt, fmt::format("{} must hold a JSON object", name));
}

const json::value* JsonFields::find(std::string_view key) const {
  const json::value* value = object_->if_contains(json::string_view(key.data(), key.size()));
  return value == nullptr || value->is_null() ? nullptr : value;
}

void JsonFields::refuse(std::string_view key, std::string_view must) {
  if (status_) {
    status_ = fail(ErrorCode::kCorrupt, fmt::format("{}: {} must be {}", name_, quoted(key), must),
                   std::string(key));
  }
}

std::string_view JsonFields::text(std::string_view key, std::string_view fallback) {
  const json::value* value = find(key);
  if (value == nullptr) return fallback;
  if (const json::string* text = value->if_string()) return {text->data(), text->size()};
  refuse(key, "a string");
  return fallback;
}

bool JsonFields::boolean(std::string_view key, bool fallback) {
  const json::value* value = find(key);
  if (value == nullptr) return fallback;
  if (const bool* flag = value->if_bool()) return *flag;
  refuse(key, "true or false");
  return fallback;
}

double JsonFields::number(std::string_view key, double fallback) {
  const json::value* value = find(key);
  if (value == nullptr) return fallback;
  if (value->is_number()) return value->to_number<double>();
  refuse(key, "a number");
  return fallback;
}

std::size_t JsonFields::size(std::string_view key, std::size_t min, std::size_t max, std::size_t fallback) {
  const json::value* value = find(key);
  if (value == nullptr) return fallback;
  json::error_code ec;
  const auto size = value->is_number() ? value->to_number<std::uint64_t>(ec) : 0;
  if (value->is_number() && !ec && size >= min && size <= max) return size;
  refuse(key, fmt::format("a whole number from {} to {}", min, max));
  return fallback;
}

std::size_t JsonFields::required_size(std::string_view key, std::size_t min, std::size_t max) {
  if (!has(key)) refuse(key, "there");
  return size(key, min, max, min);
}

}  // namespace waybill::embed
