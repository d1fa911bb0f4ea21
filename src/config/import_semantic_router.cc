#include "config/import_semantic_router.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <optional>
#include <utility>

#include <boost/json.hpp>
#include <fmt/format.h>

#include "base/json_text.h"
#include "base/utf8.h"
#include "config/config.h"
#include "config/tree.h"
#include "config/yaml_node.h"

namespace waybill::config {
namespace {

namespace json = boost::json;

constexpr std::size_t kMaxJsonDepth = 64;
constexpr std::string_view kOurModel = "all-MiniLM-L6-v2";

// ---- The file as a tree, whichever of the two languages it is in. Nulls are left out.

std::optional<Tree> tree_of(const json::value& value) {
  if (const auto* text = value.if_string()) return Tree(std::string_view(*text));
  if (const auto* flag = value.if_bool()) return Tree(*flag);
  if (value.is_number()) return Tree(value.to_number<double>());
  if (const auto* list = value.if_array()) {
    Tree::List items;
    for (const json::value& item : *list) {
      if (auto tree = tree_of(item)) items.push_back(*std::move(tree));
    }
    return Tree(std::move(items));
  }
  if (const auto* object = value.if_object()) {
    Tree::Map map;
    for (const auto& [key, item] : *object) {
      if (auto tree = tree_of(item)) map.emplace_back(std::string(key), *std::move(tree));
    }
    return Tree(std::move(map));
  }
  return std::nullopt;
}

std::optional<Tree> tree_of(const YamlNode& node) {
  switch (node.kind) {
    case YamlNode::Kind::kNull:
      return std::nullopt;
    case YamlNode::Kind::kScalar:
      return Tree(node.text);
    case YamlNode::Kind::kSequence: {
      Tree::List items;
      for (const YamlNode* item : node.items) {
        if (auto tree = tree_of(*item)) items.push_back(*std::move(tree));
      }
      return Tree(std::move(items));
    }
    case YamlNode::Kind::kMapping: {
      Tree::Map map;
      for (const auto& [key, item] : node.entries) {
        if (auto tree = tree_of(*item)) map.emplace_back(key->text, *std::move(tree));
      }
      return Tree(std::move(map));
    }
  }
  return std::nullopt;
}

Result<Tree> read_tree(std::string_view text, std::string_view name) {
  const std::size_t first = text.find_first_not_of(" \t\r\n");
  const bool may_be_json = first != std::string_view::npos && (text[first] == '{' || text[first] == '[');
  if (may_be_json) {
    json::parse_options options;
    options.max_depth = kMaxJsonDepth;
    boost::system::error_code error;
    const json::value value = json::parse(decodable_json(text), error, {}, options);
    if (!error) return tree_of(value).value_or(Tree(Tree::Map{}));
  }
  const auto document = YamlDocument::parse(text);
  if (!document) {
    return fail(ErrorCode::kInvalidInput,
                fmt::format("{}:{}: {}", name, document.error().line, document.error().message));
  }
  std::optional<Tree> tree = document->root() != nullptr ? tree_of(*document->root()) : std::nullopt;
  return std::move(tree).value_or(Tree(Tree::Map{}));
}

const Tree* find(const Tree& tree, std::string_view key) {
  const auto* map = std::get_if<Tree::Map>(&tree.is);
  if (map == nullptr) return nullptr;
  const auto found = std::ranges::find(*map, key, &Tree::Map::value_type::first);
  return found != map->end() ? &found->second : nullptr;
}

const Tree::List* find_list(const Tree& tree, std::string_view key) {
  const Tree* value = find(tree, key);
  return value != nullptr ? std::get_if<Tree::List>(&value->is) : nullptr;
}

// One line of valid text without blanks around it; empty for what is no scalar.
std::string text_of(const Tree& tree) {
  std::string text;
  if (const auto* string = std::get_if<std::string>(&tree.is)) text = to_valid_utf8(*string);
  if (const auto* flag = std::get_if<bool>(&tree.is)) text = *flag ? "true" : "false";
  if (const auto* number = std::get_if<double>(&tree.is)) text = fmt::format("{}", *number);
  std::ranges::replace_if(
      text, [](char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7F; }, ' ');
  const std::size_t start = std::min(text.find_first_not_of(' '), text.size());
  text.erase(0, start);
  text.erase(text.find_last_not_of(' ') + 1);
  return text;
}

std::string text_at(const Tree& tree, std::string_view key) {
  const Tree* value = find(tree, key);
  return value != nullptr ? text_of(*value) : std::string();
}

std::optional<double> number_at(const Tree& tree, std::string_view key) {
  const std::string text = text_at(tree, key);
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (text.empty() || error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

// ---- What was saved

struct SavedRoute {
  std::string name, description;
  std::vector<std::string> utterances;
  Tree::Map metadata;
  std::optional<double> threshold;
};

struct Saved {
  std::string version = "0.x";
  std::string encoder_type, encoder_name;
  std::optional<std::string> aggregation;
  std::optional<double> top_k;
  std::vector<SavedRoute> routes;
  std::vector<std::string> notes;
};

class SavedReader {
 public:
  void read(const Tree& tree) {
    if (const auto* list = std::get_if<Tree::List>(&tree.is)) {
      read_routes(*list, std::nullopt);
      return;
    }
    const std::string type = text_at(tree, "router_type");
    if (!type.empty()) saved_.version = "1.x";
    if (type == "chain" || type == "merge") {
      note(fmt::format("a {} of routers: their routes were put together, as one head tells all routes apart",
                       type));
    }
    if (type == "decision")
      note("a decision router's model and instructions; its routes are told apart by their utterances");
    read_encoder(tree);
    for (const auto& [key, what] : kLeftOut) {
      if (find(tree, key) != nullptr) note(std::string(what));
    }
    if (const std::string aggregation = text_at(tree, "aggregation"); !aggregation.empty())
      saved_.aggregation = aggregation;
    if (const auto top_k = number_at(tree, "top_k")) saved_.top_k = top_k;
    const std::optional<double> threshold = number_at(tree, "confidence_threshold");
    if (const auto* routes = find_list(tree, "routes")) read_routes(*routes, threshold);
    if (const auto* routers = find_list(tree, "routers"); routers != nullptr && depth_ < 8) {
      ++depth_;
      for (const Tree& router : *routers) read(router);
      --depth_;
    }
  }

  [[nodiscard]] Saved take() { return std::move(saved_); }

 private:
  static constexpr std::array<std::pair<std::string_view, std::string_view>, 3> kLeftOut = {{
      {"sparse_encoder",
       "the sparse encoder of a hybrid router: only the meaning counts here, and rules (keyword, regex)"},
      {"calibrator", "the calibrator: probabilities are calibrated from the utterances"},
      {"weights", "the weights of a merge"},
  }};

  void note(std::string text) {
    if (std::ranges::find(saved_.notes, text) == saved_.notes.end()) saved_.notes.push_back(std::move(text));
  }

  void read_encoder(const Tree& tree) {
    const Tree* encoder = find(tree, "encoder");
    std::string type = encoder != nullptr ? text_at(*encoder, "type") : text_at(tree, "encoder_type");
    std::string name = encoder != nullptr ? text_at(*encoder, "name") : text_at(tree, "encoder_name");
    if (!type.empty() && saved_.encoder_type.empty()) {
      saved_.encoder_type = std::move(type);
      saved_.encoder_name = std::move(name);
    }
  }

  void read_routes(const Tree::List& routes, std::optional<double> threshold) {
    for (const Tree& route : routes) read_route(route, threshold);
  }

  void read_route(const Tree& tree, std::optional<double> router_threshold) {
    const std::string name = text_at(tree, "name");
    if (name.empty()) {
      note("a route without a name");
      return;
    }
    const auto known = std::ranges::find(saved_.routes, name, &SavedRoute::name);
    if (known != saved_.routes.end())
      note(fmt::format("\"{}\" was there more than once; its utterances were put together", name));
    SavedRoute& route = known != saved_.routes.end() ? *known : saved_.routes.emplace_back();
    route.name = name;
    if (route.description.empty()) route.description = text_at(tree, "description");
    for (const std::string_view key : {"score_threshold", "confidence_threshold"}) {
      if (const auto threshold = number_at(tree, key)) route.threshold = threshold;
    }
    if (!route.threshold) route.threshold = router_threshold;
    read_utterances(tree, route);
    read_metadata(tree, route);
    note_functions(tree, name);
  }

  void read_utterances(const Tree& tree, SavedRoute& route) {
    const auto* utterances = find_list(tree, "utterances");
    if (utterances == nullptr) return;
    std::size_t foreign = 0;
    for (const Tree& utterance : *utterances) {
      std::string text = text_of(utterance);
      if (text.empty()) {
        ++foreign;
      } else if (std::ranges::find(route.utterances, text) == route.utterances.end()) {
        route.utterances.push_back(std::move(text));
      }
    }
    if (foreign > 0)
      note(fmt::format("{} utterances of \"{}\" that are empty or no text", foreign, route.name));
  }

  static void read_metadata(const Tree& tree, SavedRoute& route) {
    const Tree* metadata = find(tree, "metadata");
    const auto* map = metadata != nullptr ? std::get_if<Tree::Map>(&metadata->is) : nullptr;
    if (map == nullptr) return;
    for (const auto& [key, value] : *map) {
      const bool nested =
          std::holds_alternative<Tree::List>(value.is) || std::holds_alternative<Tree::Map>(value.is);
      std::string name = to_valid_utf8(key);
      if (std::ranges::find(route.metadata, name, &Tree::Map::value_type::first) != route.metadata.end())
        continue;
      route.metadata.emplace_back(std::move(name), nested ? to_json(value) : text_of(value));
    }
  }

  void note_functions(const Tree& tree, std::string_view route) {
    std::vector<const Tree*> schemas;
    if (const auto* list = find_list(tree, "function_schemas")) {
      for (const Tree& schema : *list) schemas.push_back(&schema);
    }
    if (const Tree* schema = find(tree, "function_schema")) schemas.push_back(schema);
    std::string names;
    for (const Tree* schema : schemas) {
      const Tree* function = find(*schema, "function");
      names += (names.empty() ? "" : ", ") + text_at(function != nullptr ? *function : *schema, "name");
    }
    if (!schemas.empty()) {
      note(
          fmt::format("the function schemas of \"{}\" ({}): the model that serves the route gets its tools "
                      "from the request",
                      route, names));
    }
    if (const Tree* llm = find(tree, "llm")) {
      const std::string model = text_at(*llm, "model");
      note(
          fmt::format("the llm of \"{}\"{}, which filled in the arguments of its functions; set model: to "
                      "say who serves the route",
                      route, model.empty() ? "" : " (" + model + ")"));
    }
  }

  Saved saved_;
  int depth_ = 0;
};

// ---- The waybill.yaml

bool is_our_encoder(std::string_view name) { return name.ends_with(kOurModel); }

std::string encoder_note(const Saved& saved) {
  if (saved.encoder_type.empty() || is_our_encoder(saved.encoder_name)) return {};
  const bool folder = saved.encoder_type == "huggingface" || saved.encoder_type == "local" ||
                      saved.encoder_type == "fastembed";
  const std::string name =
      saved.encoder_name.empty() ? saved.encoder_type : saved.encoder_type + ", " + saved.encoder_name;
  return fmt::format("the encoder ({}): embeddings are computed here, with {}{}", name, kOurModel,
                     folder ? "; if yours is of the BERT family, set encoder.model to its folder" : "");
}

// Comments of at most 110 columns, "# " in front of each line and `first` in front of the first.
void append_comment(std::string& out, std::string_view first, std::string_view text) {
  constexpr std::size_t kWidth = 110;
  std::string line = "# " + std::string(first);
  std::size_t used = line.size();
  for (std::string_view rest = text; !rest.empty();) {
    const std::size_t end = std::min(rest.find(' '), rest.size());
    const std::string_view word = rest.substr(0, end);
    if (line.size() > used && line.size() + 1 + word.size() > kWidth) {
      out += line + "\n";
      line = "# " + std::string(first.size(), ' ');
      used = line.size();
    }
    if (line.size() > used) line += ' ';
    line += word;
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
  out += line + "\n";
}

std::string head_of_file(const Saved& saved, std::string_view name) {
  std::string out;
  append_comment(out, "",
                 fmt::format("Imported from {}, written by semantic-router {}.", name, saved.version));
  if (!saved.notes.empty()) {
    out += "#\n# Not carried over:\n";
    for (const std::string& note : saved.notes) append_comment(out, "- ", note);
  }
  const bool thresholds =
      std::ranges::any_of(saved.routes, [](const SavedRoute& route) { return route.threshold.has_value(); });
  out += "#\n";
  append_comment(out, "",
                 fmt::format("{}Here a threshold is the least probability that a route is right, and auto "
                             "sets it from the utterances.",
                             thresholds ? "semantic-router's thresholds are aggregates of cosine "
                                          "similarities, not probabilities, so they stand "
                                          "in comments below. "
                                        : ""));
  append_comment(out, "",
                 fmt::format("To score as semantic-router does instead, take the # away from these lines{}:",
                             thresholds ? " and from the thresholds" : ""));
  const std::string aggregation = saved.aggregation.value_or("mean");
  const bool known = aggregation == "mean" || aggregation == "sum" || aggregation == "max";
  const double top_k = std::clamp(saved.top_k.value_or(5), 1.0, 1000.0);
  out += fmt::format("#head:\n#  scoring: aurelio\n#  aggregation: {}\n#  top_k: {:.0f}\n",
                     known ? aggregation : "mean", top_k);
  out +=
      "\n# What a prompt gets that no route claims, and the model that serves it.\ndefault_route: "
      "default\n#default_model: ...\n";
  return out;
}

std::string route_block(const SavedRoute& route) {
  std::string out =
      fmt::format("  - name: {}\n    #model: ...  # the model that serves it; default: the route's name\n",
                  yaml_text(route.name));
  if (!route.description.empty()) out += fmt::format("    description: {}\n", yaml_text(route.description));
  if (route.threshold) out += fmt::format("    #threshold: {}  # with scoring: aurelio\n", *route.threshold);
  if (!route.metadata.empty()) out += "    metadata:\n" + to_yaml(Tree(route.metadata), 6);
  out += "    utterances:\n" + to_yaml(Tree(Tree::List(route.utterances.begin(), route.utterances.end())), 6);
  return out;
}

}  // namespace

Result<ImportedConfig> import_semantic_router(std::string_view text, std::string_view name) try {
  if (text.size() > kMaxFileBytes)
    return fail(ErrorCode::kInvalidInput, fmt::format("{} is larger than {} bytes", name, kMaxFileBytes));
  const Result<Tree> tree = read_tree(text, name);
  if (!tree) return std::unexpected(tree.error());
  SavedReader reader;
  reader.read(*tree);
  Saved saved = reader.take();
  if (std::string note = encoder_note(saved); !note.empty())
    saved.notes.insert(saved.notes.begin(), std::move(note));

  std::string routes;
  for (const SavedRoute& route : saved.routes) {
    if (route.utterances.empty()) {
      saved.notes.push_back(fmt::format("the route \"{}\", which has no utterances{}", route.name,
                                        route.description.empty() ? "" : " (\"" + route.description + "\")"));
    } else {
      routes += (routes.empty() ? "" : "\n") + route_block(route);
    }
  }
  if (routes.empty()) {
    return fail(ErrorCode::kInvalidInput,
                fmt::format("{} holds no route with utterances; give the JSON or YAML that to_json() or "
                            "to_yaml() of a semantic-router with "
                            "a local index wrote (with a remote index the routes are not in the file)",
                            name));
  }
  return ImportedConfig{head_of_file(saved, name) + "\nroutes:\n" + routes, saved.notes};
} catch (const std::exception& error) {
  return fail(ErrorCode::kInvalidInput, fmt::format("{} cannot be read: {}", name, error.what()));
}

}  // namespace waybill::config
