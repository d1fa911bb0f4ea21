// Configurations as trees: the visitor of describe.h that writes.
#include <array>
#include <span>
#include <string>
#include <utility>

#include "config/describe.h"
#include "config/tree.h"

namespace waybill::config {
namespace {

std::string size_text(std::size_t bytes) {
  static constexpr std::array<std::pair<std::string_view, unsigned>, 3> kUnits = {
      {{"GiB", 30}, {"MiB", 20}, {"KiB", 10}}};
  for (const auto& [unit, shift] : kUnits) {
    if (bytes != 0 && bytes % (std::size_t{1} << shift) == 0)
      return std::to_string(bytes >> shift) + std::string(unit);
  }
  return std::to_string(bytes) + "B";
}

Tree to_tree(const Condition& condition);

Tree::List to_list(const std::vector<std::string>& texts) { return {texts.begin(), texts.end()}; }

Tree::List to_list(const std::vector<Condition>& conditions) {
  Tree::List list;
  for (const Condition& condition : conditions) list.push_back(to_tree(condition));
  return list;
}

constexpr std::string_view kHidden = "hidden";  // in the place of a secret

class SectionWriter {
 public:
  explicit SectionWriter(Secrets secrets = Secrets::kShown) : secrets_(secrets) {}

  [[nodiscard]] Tree::Map take() { return std::move(map_); }

  void text(const Key& key, const std::string& value) {
    if (!value.empty()) put(key, value);
  }
  void texts(const Key& key, const std::vector<std::string>& values) {
    if (!values.empty()) put(key, to_list(values));
  }
  void path(const Key& key, const std::filesystem::path& value) { put(key, value.string()); }
  void name(const Key& key, std::span<const std::string_view> /*names*/, const std::string& value) {
    put(key, value);
  }
  void flag(const Key& key, bool value) { put(key, value); }
  void number(const Key& key, Bounds /*bounds*/, double value) { put(key, value); }
  void optional_number(const Key& key, Bounds /*bounds*/, const std::optional<double>& value) {
    if (value) put(key, *value);
  }
  void integer(const Key& key, Bounds /*bounds*/, std::size_t value) { put(key, value); }
  void automatic(const Key& key, Bounds /*bounds*/, unsigned value) {
    put(key, value == 0 ? Tree("auto") : Tree(value));
  }
  void count(const Key& key, const std::optional<std::size_t>& value) {
    if (value) put(key, *value);
  }
  void size(const Key& key, std::size_t value) { put(key, size_text(value)); }
  void file(const Key& key, const std::filesystem::path& value) {
    if (!value.empty()) put(key, value.string());
  }
  void duration(const Key& key, DurationBounds /*bounds*/, Duration value) { put(key, duration_text(value)); }
  void durations(const Key& key, DurationBounds /*bounds*/, const std::vector<Duration>& values) {
    Tree::List list;
    for (const Duration value : values) list.emplace_back(duration_text(value));
    if (!list.empty()) put(key, std::move(list));
  }
  void digest(const Key& key, const std::string& value) {
    if (!value.empty()) put(key, secrets_ == Secrets::kShown ? Tree(value) : Tree(kHidden));
  }
  void addresses(const Key& key, const std::vector<ListenAddress>& values) {
    Tree::List list;
    for (const ListenAddress& address : values) list.emplace_back(address.text());
    if (!list.empty()) put(key, std::move(list));
  }
  void headers(const Key& key, const std::vector<HttpHeader>& values) {
    Tree::Map map;
    for (const HttpHeader& header : values) map.emplace_back(header.name, header.value);
    if (!map.empty()) put(key, std::move(map));
  }
  void threshold(const Key& key, const std::optional<double>& value) {
    put(key, value ? Tree(*value) : Tree("auto"));
  }
  void utterances(const Key& key, const std::vector<Utterance>& values) {
    Tree::List list;
    for (const Utterance& utterance : values) list.emplace_back(utterance.text);
    if (!list.empty()) put(key, std::move(list));
  }
  void utterances_file(const Key& /*key*/, const std::vector<Utterance>& /*values*/) {
  }  // written with the inline ones
  void metadata(const Key& key, const std::map<std::string, std::string>& values) {
    if (!values.empty()) put(key, Tree::Map(values.begin(), values.end()));
  }
  void condition(const Key& key, const Condition& value) { put(key, to_tree(value)); }
  template <class Enum, std::size_t N>
  void choice(const Key& key, const std::array<Choice<Enum>, N>& choices, Enum value) {
    for (const auto& choice : choices) {
      if (choice.value == value) put(key, choice.name);
    }
  }
  template <class Section>
  void section(const Key& key, Section& value) {
    put(key, write(value, secrets_));
  }
  template <class Section>
  void sections(const Key& key, std::vector<Section>& values) {
    Tree::List list;
    for (Section& value : values) list.push_back(write(value, secrets_));
    put(key, std::move(list));
  }

  template <class Section>
  static Tree write(Section& section, Secrets secrets = Secrets::kShown) {
    SectionWriter writer(secrets);
    describe(writer, section);
    return writer.take();
  }

 private:
  void put(const Key& key, Tree value) { map_.emplace_back(std::string(key.name), std::move(value)); }

  Secrets secrets_;
  Tree::Map map_;
};

Tree to_tree(const Condition& condition) {
  struct Alternatives {
    Tree::Map operator()(const Condition::All& all) const { return {{"all", to_list(all.of)}}; }
    Tree::Map operator()(const Condition::Any& any) const { return {{"any", to_list(any.of)}}; }
    Tree::Map operator()(const Condition::Not& inverse) const {
      return {{"not", to_tree(inverse.of.front())}};
    }
    Tree::Map operator()(Condition::Keyword keyword) const {
      return {{"keyword", SectionWriter::write(keyword)}};
    }
    Tree::Map operator()(const Condition::Regex& regex) const { return {{"regex", regex.pattern}}; }
    Tree::Map operator()(const Condition::Language& language) const {
      return {{"language", to_list(language.codes)}};
    }
    Tree::Map operator()(Condition::Length length) const {
      return {{"length", SectionWriter::write(length)}};
    }
  };
  return std::visit(Alternatives{}, condition.is);
}

}  // namespace

std::string to_yaml(const Config& config, Secrets secrets) {
  Config copy = config;  // describe() visits what it could also fill
  return to_yaml(SectionWriter::write(copy, secrets));
}

std::string to_json(const Config& config, Secrets secrets) {
  Config copy = config;
  return to_json(SectionWriter::write(copy, secrets));
}

}  // namespace waybill::config
