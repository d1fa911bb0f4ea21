#include "upstream/ollama/ollama_request.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "base/json_writer.h"
#include "upstream/ollama/ollama_messages.h"

namespace waybill::upstream {
namespace {

bool is_empty(std::string_view raw) {
  JsonScanner json(raw);
  JsonString key;
  if (json.enter_object()) return !json.next_member(key);
  return json.enter_array() && !json.next_element();
}

std::optional<std::string> text_of(const JsonMember* member) {
  JsonString text;
  if (member == nullptr || !JsonScanner(member->value).read(text)) return std::nullopt;
  std::string out;
  text.append_to(out);
  return out;
}

bool names(std::string_view array, std::string_view wanted) {
  JsonScanner json(array);
  if (!json.enter_array()) return false;
  while (json.next_element()) {
    JsonString text;
    if (!json.read(text)) {
      json.skip();
    } else if (text.is(wanted)) {
      return true;
    }
  }
  return false;
}

// Fields without which the answer would not be the one that was asked for.
Status check_supported(Operation operation, const ChatRequest& request) {
  const JsonMembers& members = request.members();
  if (request.answers() > 1) return ollama_lacks("n", "ask for one answer at a time");
  const JsonMember* member = given(members, "logprobs");
  if (member != nullptr && member->value != "false")
    return ollama_lacks("logprobs", "leave it out, or ask another provider");
  member = given(members, "logit_bias");
  if (member != nullptr && !is_empty(member->value)) return ollama_lacks("logit_bias", "leave it out");
  if (operation == Operation::kCompletions) {
    member = given(members, "best_of");
    if (member != nullptr && member->value != "1") return ollama_lacks("best_of", "leave it out");
    member = given(members, "echo");
    if (member != nullptr && member->value != "false") return ollama_lacks("echo", "leave it out");
    return {};
  }
  if (given(members, "audio") != nullptr) return ollama_lacks("audio", "ask for text");
  member = given(members, "modalities");
  if (member != nullptr && names(member->value, "audio")) return ollama_lacks("modalities", "ask for text");
  for (const std::string_view name : {"functions", "function_call"}) {
    member = given(members, name);
    if (member != nullptr && !is_empty(member->value))
      return ollama_lacks(std::string(name), "use tools and tool_choice");
  }
  if (given(members, "web_search_options") != nullptr)
    return ollama_lacks("web_search_options", "offer a search as one of the tools");
  return {};
}

Status write_tools(const JsonMembers& members, JsonWriter& json) {
  const JsonMember* choice = given(members, "tool_choice");
  if (choice != nullptr) {
    const std::optional<std::string> said = text_of(choice);
    if (said == "none") return {};
    if (said != "auto")
      return ollama_lacks("tool_choice", "only \"auto\" and \"none\" can be had; offer the one tool alone");
  }
  const JsonMember* tools = given(members, "tools");
  if (tools == nullptr || is_empty(tools->value)) return {};
  JsonScanner scanner(tools->value);
  if (!scanner.enter_array()) return fail(ErrorCode::kInvalidInput, "\"tools\" must be an array.", "tools");
  for (std::size_t i = 0; scanner.next_element(); ++i) {
    JsonMembers tool;
    if (!tool.parse(scanner.skip()) || given(tool, "function") == nullptr)
      return ollama_lacks(fmt::format("tools[{}]", i), "only tools of type \"function\" can be had");
  }
  json.key("tools").raw(tools->value);
  return {};
}

Status write_format(const JsonMembers& members, JsonWriter& json) {
  const JsonMember* wanted = given(members, "response_format");
  if (wanted == nullptr) return {};
  JsonMembers format, described;
  if (!format.parse(wanted->value))
    return fail(ErrorCode::kInvalidInput, "\"response_format\" must be an object.", "response_format");
  const std::optional<std::string> type = text_of(format.find("type"));
  if (type == "text") return {};
  if (type == "json_object") {
    json.key("format").string("json");
    return {};
  }
  if (type != "json_schema")
    return ollama_lacks("response_format.type", "use text, json_object or json_schema");
  const JsonMember* inner = given(format, "json_schema");
  const JsonMember* schema =
      inner != nullptr && described.parse(inner->value) ? given(described, "schema") : nullptr;
  if (schema == nullptr) {
    return fail(ErrorCode::kInvalidInput, "\"response_format.json_schema.schema\" is missing.",
                "response_format.json_schema.schema");
  }
  json.key("format").raw(schema->value);
  return {};
}

// Ollama's own `think`, or OpenAI's word for it.
Status write_think(const JsonMembers& members, JsonWriter& json) {
  if (const JsonMember* think = given(members, "think")) {
    json.key("think").raw(think->value);
    return {};
  }
  const JsonMember* effort = given(members, "reasoning_effort");
  if (effort == nullptr) return {};
  static constexpr std::array<std::pair<std::string_view, std::string_view>, 6> kKnown{{
      {"none", "false"},
      {"minimal", "\"low\""},
      {"low", "\"low\""},
      {"medium", "\"medium\""},
      {"high", "\"high\""},
      {"xhigh", "\"high\""},
  }};
  const std::string said = text_of(effort).value_or("");
  const auto* const known =
      std::ranges::find(kKnown, said, &std::pair<std::string_view, std::string_view>::first);
  if (known == kKnown.end()) return ollama_lacks("reasoning_effort", "use none, low, medium or high");
  json.key("think").raw(known->second);
  return {};
}

// The options of the body itself, in Ollama's words, go before what the fields of OpenAI's API say.
class OptionsWriter {
 public:
  explicit OptionsWriter(JsonWriter& json) : json_(json) {}

  Status own(const JsonMembers& members) {
    const JsonMember* options = given(members, "options");
    if (options == nullptr) return {};
    if (!own_.parse(options->value))
      return fail(ErrorCode::kInvalidInput, "\"options\" must be an object.", "options");
    for (const JsonMember& each : own_.all()) {
      std::string name;
      each.key.append_to(name);
      open().key(name).raw(each.value);
    }
    return {};
  }
  void add(std::string_view name, std::string_view raw) {
    if (own_.find(name) == nullptr) open().key(name).raw(raw);
  }
  void end() {
    if (open_) json_.end_object();
  }

 private:
  JsonWriter& open() {
    if (!std::exchange(open_, true)) json_.key("options").begin_object();
    return json_;
  }

  JsonWriter& json_;
  JsonMembers own_;
  bool open_ = false;
};

Status write_options(const ChatRequest& request, const OllamaSettings& settings, JsonWriter& json) {
  static constexpr std::array<std::string_view, 8> kSameName{
      "temperature",       "top_p", "seed",  "presence_penalty",
      "frequency_penalty", "top_k", "min_p", "repeat_penalty"};
  const JsonMembers& members = request.members();
  OptionsWriter options(json);
  if (Status own = options.own(members); !own) return own;
  for (const std::string_view name : kSameName) {
    if (const JsonMember* member = given(members, name)) options.add(name, member->value);
  }
  if (request.max_tokens() > 0) options.add("num_predict", fmt::format("{}", request.max_tokens()));
  if (const JsonMember* stop = given(members, "stop")) {
    const bool list = JsonScanner(stop->value).peek() == JsonKind::kArray;
    options.add("stop", list ? std::string(stop->value) : fmt::format("[{}]", stop->value));
  }
  if (settings.num_ctx > 0) options.add("num_ctx", fmt::format("{}", settings.num_ctx));
  options.end();
  return {};
}

// A duration is text to Ollama; a bare number of seconds is a number.
void write_keep_alive(const JsonMembers& members, const OllamaSettings& settings, JsonWriter& json) {
  if (const JsonMember* own = given(members, "keep_alive")) {
    json.key("keep_alive").raw(own->value);
  } else if (!settings.keep_alive.empty()) {
    const bool number = settings.keep_alive.find_first_not_of("-0123456789") == std::string::npos;
    json.key("keep_alive");
    if (number) {
      json.raw(settings.keep_alive);
    } else {
      json.string(settings.keep_alive);
    }
  }
}

// One prompt. A list of one text is one, too.
Status write_prompt(const JsonMembers& members, JsonWriter& json) {
  const JsonMember* prompt = given(members, "prompt");
  std::string_view raw = prompt == nullptr ? std::string_view("\"\"") : prompt->value;
  JsonScanner list(raw);
  if (list.enter_array() && list.next_element()) {
    raw = list.skip();
    if (list.next_element()) return ollama_lacks("prompt", "send one prompt at a time");
  }
  if (JsonScanner(raw).peek() != JsonKind::kString)
    return ollama_lacks("prompt", "send a text; token ids mean something else to each model");
  json.key("prompt").raw(raw);
  if (const JsonMember* suffix = given(members, "suffix")) {
    json.key("suffix").raw(suffix->value);  // the model's template says where it goes
  } else {
    json.key("raw").boolean(true);  // the prompt is all there is: no template around it
  }
  return {};
}

Status write_inputs(const JsonMembers& members, JsonWriter& json) {
  const JsonMember* input = given(members, "input");
  if (input == nullptr) return ollama_lacks("messages", "send \"input\"");
  JsonScanner list(input->value);
  if (list.enter_array()) {
    while (list.next_element()) {
      if (list.peek() != JsonKind::kString)
        return ollama_lacks("input", "send texts; token ids mean something else to each model");
      list.skip();
    }
  }
  json.key("input").raw(input->value);
  for (const std::string_view name : {"dimensions", "truncate"}) {
    if (const JsonMember* member = given(members, name)) json.key(name).raw(member->value);
  }
  return {};
}

Status write_question(Operation operation, const ChatRequest& request, JsonWriter& json) {
  const JsonMembers& members = request.members();
  if (operation == Operation::kEmbeddings) return write_inputs(members, json);
  if (Status supported = check_supported(operation, request); !supported) return supported;
  json.key("stream").boolean(request.stream());  // Ollama streams unless told not to
  Status written;
  if (operation == Operation::kCompletions) {
    written = write_prompt(members, json);
  } else {
    json.key("messages");
    written = OllamaMessages().write(members.find("messages")->value, json);
    if (written) written = write_tools(members, json);
  }
  if (written) written = write_format(members, json);
  if (written) written = write_think(members, json);
  return written;
}

}  // namespace

Status write_ollama_request(Operation operation, const ChatRequest& request, std::string_view model,
                            const OllamaSettings& settings, std::string& body) {
  JsonWriter json(body);
  json.begin_object().key("model").string(model);
  if (Status written = write_question(operation, request, json); !written) return written;
  if (Status written = write_options(request, settings, json); !written) return written;
  write_keep_alive(request.members(), settings, json);
  json.end_object();
  return {};
}

}  // namespace waybill::upstream
