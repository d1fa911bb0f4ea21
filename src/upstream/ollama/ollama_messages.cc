#include "upstream/ollama/ollama_messages.h"

#include <algorithm>
#include <optional>
#include <ranges>

#include <fmt/format.h>

#include "base/trim.h"

namespace waybill::upstream {
namespace {

std::unexpected<Error> wrong(std::string field, std::string_view wanted) {
  std::string message = fmt::format("\"{}\" must be {}.", field, wanted);
  return fail(ErrorCode::kInvalidInput, std::move(message), std::move(field));
}

// The text of a member that is a string.
std::optional<JsonString> text_of(const JsonMember* member) {
  JsonString text;
  if (member == nullptr || !JsonScanner(member->value).read(text)) return std::nullopt;
  return text;
}

std::string decoded(const std::optional<JsonString>& text) {
  std::string out;
  if (text) text->append_to(out);
  return out;
}

std::string_view role_of(std::string_view role) noexcept {
  if (role == "developer") return "system";
  if (role == "function") return "tool";
  return role;
}

}  // namespace

std::unexpected<Error> ollama_lacks(std::string field, std::string_view instead) {
  std::string message = fmt::format("Ollama has nothing like \"{}\": {}.", field, instead);
  return fail(ErrorCode::kUnsupported, std::move(message), std::move(field));
}

const JsonMember* given(const JsonMembers& members, std::string_view name) {
  const JsonMember* member = members.find(name);
  return member == nullptr || member->value == "null" ? nullptr : member;
}

Status OllamaMessages::write(std::string_view messages, JsonWriter& json) {
  JsonScanner scanner(messages);
  json.begin_array();
  if (scanner.enter_array()) {
    for (std::size_t i = 0; scanner.next_element(); ++i) {
      if (Status read = message_.parse(scanner.skip()); !read) return read;
      if (Status written = write_message(fmt::format("messages[{}]", i), json); !written) return written;
    }
  }
  json.end_array();
  return {};
}

Status OllamaMessages::write_message(const std::string& field, JsonWriter& json) {
  const std::string role = decoded(text_of(given(message_, "role")));
  if (role.empty()) return wrong(field + ".role", "the role of a message");
  if (Status read = read_content(field); !read) return read;
  json.begin_object().key("role").string(role_of(role));
  json.key("content").raw(fmt::format("\"{}\"", text_));
  if (!images_.empty()) {
    json.key("images").begin_array();
    for (const std::string& image : images_) json.string(image);
    json.end_array();
  }
  for (const std::string_view name : {"reasoning_content", "reasoning"}) {
    const std::optional<JsonString> thought = text_of(given(message_, name));
    if (!thought || thought->empty()) continue;
    json.key("thinking").raw(fmt::format("\"{}\"", thought->raw));
    break;
  }
  if (const JsonMember* calls = given(message_, "tool_calls")) {
    if (Status written = write_tool_calls(field + ".tool_calls", calls->value, json); !written)
      return written;
  } else if (given(message_, "function_call") != nullptr) {
    return ollama_lacks(field + ".function_call", "send tool_calls instead");
  }
  if (role_of(role) == "tool") write_tool_result(json);
  json.end_object();
  return {};
}

Status OllamaMessages::read_content(const std::string& field) {
  text_.clear();
  images_.clear();
  const JsonMember* content = given(message_, "content");
  if (content == nullptr) return {};
  if (const auto text = text_of(content)) {
    text_ = text->raw;
    return {};
  }
  JsonScanner json(content->value);
  if (!json.enter_array()) return wrong(field + ".content", "a text, or an array of parts");
  for (std::size_t i = 0; json.next_element(); ++i) {
    if (Status read = read_part(fmt::format("{}.content[{}]", field, i), json.skip()); !read) return read;
  }
  return {};
}

// Written as it came: its escapes are JSON's.
void OllamaMessages::add_text(const JsonString& text) {
  if (!text_.empty()) text_ += "\\n";
  text_ += text.raw;
}

Status OllamaMessages::read_part(const std::string& field, std::string_view raw) {
  JsonString plain;
  if (JsonScanner(raw).read(plain)) {
    add_text(plain);
    return {};
  }
  JsonMembers part;
  if (!part.parse(raw)) return wrong(field, "a text, or an object with a type");
  for (const std::string_view name : {"text", "refusal"}) {
    const std::optional<JsonString> text = text_of(part.find(name));
    if (!text) continue;
    add_text(*text);
    return {};
  }
  if (const JsonMember* image = given(part, "image_url")) return read_image(field + ".image_url", *image);
  if (given(part, "input_audio") != nullptr)
    return ollama_lacks(field + ".input_audio", "send what was said as text");
  return ollama_lacks(field, "send text, or images as image_url parts");
}

Status OllamaMessages::read_image(const std::string& field, const JsonMember& image) {
  std::optional<JsonString> address = text_of(&image);
  JsonMembers members;
  if (!address && members.parse(image.value)) address = text_of(members.find("url"));
  if (!address) return wrong(field, "an object with a url");
  std::string scratch;
  const std::string_view url = address->text(scratch);
  constexpr std::string_view kMark = ";base64,";
  const std::size_t mark = url.substr(0, 256).find(kMark);
  if (url.starts_with("data:") && mark != std::string_view::npos) {
    images_.emplace_back(url.substr(mark + kMark.size()));
    return {};
  }
  return fail(ErrorCode::kUnsupported,
              fmt::format("Ollama does not fetch images: send the image itself in \"{}\", as "
                          "data:image/png;base64,... instead of its address.",
                          field),
              field);
}

Status OllamaMessages::write_tool_calls(const std::string& field, std::string_view calls, JsonWriter& json) {
  JsonScanner scanner(calls);
  if (!scanner.enter_array()) return wrong(field, "an array of tool calls");
  json.key("tool_calls").begin_array();
  for (std::size_t i = 0; scanner.next_element(); ++i) {
    const std::string at = fmt::format("{}[{}]", field, i);
    JsonMembers call, function;
    if (!call.parse(scanner.skip())) return wrong(at, "an object");
    const JsonMember* inner = given(call, "function");
    if (inner == nullptr || !function.parse(inner->value))
      return wrong(at + ".function", "the function that was called");
    const std::string name = decoded(text_of(given(function, "name")));
    std::string arguments = "{}";
    if (const JsonMember* said = given(function, "arguments")) {
      const std::optional<JsonString> text = text_of(said);
      arguments = text ? std::string(trimmed(decoded(text))) : std::string(said->value);
      if (arguments.empty()) arguments = "{}";
      JsonMembers object;
      if (!object.parse(arguments)) return wrong(at + ".function.arguments", "a JSON object, as text");
    }
    json.begin_object();
    if (const auto id = text_of(given(call, "id"))) {
      json.key("id").raw(fmt::format("\"{}\"", id->raw));
      calls_.emplace_back(decoded(id), name);
    }
    json.key("function").begin_object().key("index").integer(static_cast<std::int64_t>(i));
    json.key("name").string(name).key("arguments").raw(arguments).end_object().end_object();
  }
  json.end_array();
  return {};
}

// Ollama's templates go by the name of the tool.
void OllamaMessages::write_tool_result(JsonWriter& json) {
  const std::string id = decoded(text_of(given(message_, "tool_call_id")));
  std::string name = decoded(text_of(given(message_, "name")));
  if (name.empty()) {
    // The last with that id: some providers number them from 0 in every turn.
    const auto reversed = std::views::reverse(calls_);
    const auto call = std::ranges::find(reversed, id, &std::pair<std::string, std::string>::first);
    if (call != reversed.end()) name = call->second;
  }
  if (!name.empty()) json.key("tool_name").string(name);
  if (!id.empty()) json.key("tool_call_id").string(id);
}

}  // namespace waybill::upstream
