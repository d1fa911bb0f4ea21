#include "route/dataset.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <unordered_map>
#include <unordered_set>

#include <boost/json.hpp>
#include <fmt/format.h>

#include "base/file.h"
#include "base/hash.h"
#include "base/trim.h"
#include "base/utf8.h"

namespace waybill::route {
namespace {

constexpr std::array<std::string_view, 9> kTextNames = {
    "text", "prompt", "utterance", "query", "question", "input", "sentence", "message", "content"};
constexpr std::array<std::string_view, 7> kLabelNames = {"label", "intent", "category", "route",
                                                         "class", "target", "name"};

std::string folded(std::string_view name) {
  std::string out(name);
  for (char& c : out) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return out;
}

// The position of `name` in order of preference; names.size() when it is none of them.
template <std::size_t N>
std::size_t preference(std::string_view name, const std::array<std::string_view, N>& names) {
  const std::string key = folded(trimmed(name));
  return static_cast<std::size_t>(std::find(names.begin(), names.end(), key) - names.begin());
}

std::unexpected<Error> fail_at(std::string_view name, int line, std::string_view what) {
  return fail(ErrorCode::kInvalidInput, fmt::format("{}:{}: {}", name, line, what));
}

// Lines of a text: "\n" or "\r\n" ends one, the last may end without.
class Lines {
 public:
  explicit Lines(std::string_view text) : rest_(text) {}

  [[nodiscard]] bool next() {
    if (rest_.empty()) return false;
    const std::size_t end = std::min(rest_.find('\n'), rest_.size());
    line_ = rest_.substr(0, end);
    if (line_.ends_with('\r')) line_.remove_suffix(1);
    rest_.remove_prefix(std::min(end + 1, rest_.size()));
    ++number_;
    return true;
  }
  [[nodiscard]] std::string_view line() const { return line_; }
  [[nodiscard]] int number() const { return number_; }

 private:
  std::string_view rest_, line_;
  int number_ = 0;
};

Status parse_tsv(std::string_view text, Dataset& out) {
  for (Lines lines(text); lines.next();) {
    if (trimmed(lines.line()).empty()) continue;
    const std::size_t tab = lines.line().find('\t');
    if (tab == std::string_view::npos) {
      return fail_at(out.name, lines.number(),
                     "there is no tab; a line is label<TAB>text (for other formats see --format)");
    }
    const std::string_view label = trimmed(lines.line().substr(0, tab));
    if (label.empty()) return fail_at(out.name, lines.number(), "the label before the tab is empty");
    out.examples.push_back({std::string(lines.line().substr(tab + 1)), std::string(label), lines.number()});
  }
  return {};
}

struct Record {
  std::vector<std::string> fields;
  int line = 0;
};

// RFC 4180, with bare line feeds accepted. Reads one record from the front of `rest` and counts its lines.
class CsvReader {
 public:
  CsvReader(std::string_view text, std::string_view name) : rest_(text), name_(name) {}

  // False at the end of the text.
  [[nodiscard]] Result<bool> next(Record& record) {
    while (!rest_.empty() && (rest_.front() == '\n' || rest_.starts_with("\r\n"))) skip_line_end();
    if (rest_.empty()) return false;
    record.fields.clear();
    record.line = line_;
    for (;;) {
      Result<std::string> field = rest_.starts_with('"') ? quoted_field() : plain_field();
      if (!field) return std::unexpected(std::move(field.error()));
      record.fields.push_back(std::move(*field));
      if (!rest_.starts_with(',')) break;
      rest_.remove_prefix(1);
    }
    if (!rest_.empty()) skip_line_end();
    return true;
  }

 private:
  void skip_line_end() {
    if (rest_.front() == '\r') rest_.remove_prefix(1);
    if (!rest_.empty() && rest_.front() == '\n') rest_.remove_prefix(1);
    ++line_;
  }

  Result<std::string> plain_field() {
    const std::string_view field = rest_.substr(0, rest_.find_first_of(",\n"));
    rest_.remove_prefix(field.size());
    if (field.ends_with('\r') && !rest_.starts_with(','))
      return std::string(field.substr(0, field.size() - 1));
    return std::string(field);
  }

  Result<std::string> quoted_field() {
    const int opened = line_;
    std::string field;
    rest_.remove_prefix(1);
    for (;;) {
      const std::size_t quote = rest_.find('"');
      if (quote == std::string_view::npos)
        return fail_at(name_, opened, "a field opens with \" and is never closed");
      const std::string_view part = rest_.substr(0, quote);
      line_ += static_cast<int>(std::count(part.begin(), part.end(), '\n'));
      field.append(part);
      rest_.remove_prefix(quote + 1);
      if (!rest_.starts_with('"')) break;
      field.push_back('"');
      rest_.remove_prefix(1);
    }
    if (!rest_.empty() && rest_.front() != ',' && rest_.front() != '\n' && !rest_.starts_with("\r\n")) {
      return fail_at(name_, line_,
                     "after the closing \" of a field comes a comma or the end of the line; "
                     "write a quote inside a field as \"\"");
    }
    return field;
  }

  std::string_view rest_, name_;
  int line_ = 1;
};

struct Columns {
  std::size_t text = 0, label = 0;
};

// The columns that the header names, if it is one: the first of the names in order of preference.
std::optional<Columns> columns_of(const Record& header) {
  Columns columns;
  std::size_t best_text = kTextNames.size();
  std::size_t best_label = kLabelNames.size();
  for (std::size_t i = 0; i < header.fields.size(); ++i) {
    if (const std::size_t p = preference(header.fields[i], kTextNames); p < best_text) {
      best_text = p;
      columns.text = i;
    }
    if (const std::size_t p = preference(header.fields[i], kLabelNames); p < best_label) {
      best_label = p;
      columns.label = i;
    }
  }
  if (best_text == kTextNames.size() || best_label == kLabelNames.size()) return std::nullopt;
  return columns;
}

// Without a header: of two columns, the label is the one with fewer different values.
std::optional<Columns> guessed_columns(std::span<const Record> records) {
  std::unordered_set<std::string_view> first, second;
  for (const Record& record : records) {
    if (record.fields.size() != 2) return std::nullopt;
    first.insert(record.fields[0]);
    second.insert(record.fields[1]);
  }
  if (first.size() == second.size()) return std::nullopt;
  return first.size() < second.size() ? Columns{.text = 1, .label = 0} : Columns{.text = 0, .label = 1};
}

Status parse_csv(std::string_view text, Dataset& out) {
  std::vector<Record> records;
  CsvReader reader(text, out.name);
  for (Record record;;) {
    const Result<bool> more = reader.next(record);
    if (!more) return std::unexpected(more.error());
    if (!*more) break;
    records.push_back(std::move(record));
  }
  if (records.empty()) return {};
  std::optional<Columns> columns = columns_of(records.front());
  const bool has_header = columns.has_value();
  if (!columns) columns = guessed_columns(records);
  if (!columns) {
    return fail_at(out.name, records.front().line,
                   "cannot tell which column is the text and which the label; begin the file with a header, "
                   "\"text,label\"");
  }
  for (std::size_t i = has_header ? 1 : 0; i < records.size(); ++i) {
    Record& record = records[i];
    if (record.fields.size() <= std::max(columns->text, columns->label)) {
      return fail_at(out.name, record.line,
                     fmt::format("the record has {} field(s) where the text and the label need {}; "
                                 "put a text with commas into quotes",
                                 record.fields.size(), std::max(columns->text, columns->label) + 1));
    }
    const std::string_view label = trimmed(record.fields[columns->label]);
    if (label.empty()) return fail_at(out.name, record.line, "the label is empty");
    out.examples.push_back({std::move(record.fields[columns->text]), std::string(label), record.line});
  }
  return {};
}

// A label may be a number or null ("none") as well as a string.
std::optional<std::string> label_text(const boost::json::value& value) {
  if (value.is_string()) return std::string(trimmed(value.get_string()));
  if (value.is_int64()) return std::to_string(value.get_int64());
  if (value.is_uint64()) return std::to_string(value.get_uint64());
  if (value.is_null()) return "none";
  return std::nullopt;
}

template <std::size_t N>
const boost::json::value* member(const boost::json::object& object,
                                 const std::array<std::string_view, N>& names) {
  const boost::json::value* found = nullptr;
  std::size_t best = N;
  for (const auto& [key, value] : object) {
    if (const std::size_t p = preference(key, names); p < best) {
      best = p;
      found = &value;
    }
  }
  return found;
}

Status parse_json_line(std::string_view line, int number, Dataset& out) {
  boost::system::error_code error;
  const boost::json::value value = boost::json::parse({line.data(), line.size()}, error);
  if (error)
    return fail_at(out.name, number, fmt::format("not a JSON object on one line ({})", error.message()));
  if (!value.is_object())
    return fail_at(out.name, number, R"(a line is one object, {"text": "...", "label": "..."})");
  const boost::json::value* const text = member(value.get_object(), kTextNames);
  if (text == nullptr || !text->is_string()) {
    return fail_at(out.name, number,
                   fmt::format("there is no text; name it with one of: {}", fmt::join(kTextNames, ", ")));
  }
  const boost::json::value* const label = member(value.get_object(), kLabelNames);
  const std::optional<std::string> name = label == nullptr ? std::nullopt : label_text(*label);
  if (!name) {
    return fail_at(out.name, number,
                   fmt::format("there is no label; name it with one of: {}", fmt::join(kLabelNames, ", ")));
  }
  if (name->empty()) return fail_at(out.name, number, "the label is empty");
  out.examples.push_back({std::string(text->get_string()), *name, number});
  return {};
}

Status parse_jsonl(std::string_view text, Dataset& out) {
  for (Lines lines(text); lines.next();) {
    if (trimmed(lines.line()).empty()) continue;
    if (Status status = parse_json_line(lines.line(), lines.number(), out); !status) return status;
  }
  return {};
}

}  // namespace

std::vector<std::string_view> Dataset::labels() const {
  std::vector<std::string_view> out;
  std::unordered_set<std::string_view> seen;
  for (const Example& example : examples) {
    if (seen.insert(example.label).second) out.push_back(example.label);
  }
  return out;
}

std::optional<DatasetFormat> parse_dataset_format(std::string_view name) noexcept {
  if (name == "tsv") return DatasetFormat::kTsv;
  if (name == "csv") return DatasetFormat::kCsv;
  if (name == "jsonl") return DatasetFormat::kJsonl;
  return std::nullopt;
}

Result<DatasetFormat> dataset_format_of(const std::filesystem::path& path) {
  const std::string extension = folded(path.extension().string());
  if (extension == ".tsv" || extension == ".txt") return DatasetFormat::kTsv;
  if (extension == ".csv") return DatasetFormat::kCsv;
  if (extension == ".jsonl" || extension == ".ndjson") return DatasetFormat::kJsonl;
  return fail(
      ErrorCode::kUnsupported,
      fmt::format("{}: the extension tells no format; say --format tsv, csv or jsonl", path.string()));
}

Result<Dataset> load_dataset(const std::filesystem::path& path, std::optional<DatasetFormat> format) {
  if (!format) {
    const Result<DatasetFormat> told = dataset_format_of(path);
    if (!told) return std::unexpected(told.error());
    format = *told;
  }
  const Result<std::string> contents = read_file(path);
  if (!contents) return std::unexpected(contents.error());
  return parse_dataset(*contents, *format, path.string());
}

Result<Dataset> parse_dataset(std::string_view contents, DatasetFormat format, std::string_view name) {
  if (contents.starts_with("\xFF\xFE") || contents.starts_with("\xFE\xFF")) {
    return fail_at(name, 1, "the file is UTF-16; save it as UTF-8");
  }
  if (contents.starts_with("\xEF\xBB\xBF")) contents.remove_prefix(3);
  const std::string text = to_valid_utf8(contents);
  Dataset out{.name = std::string(name), .examples = {}};
  Status status;
  switch (format) {
    case DatasetFormat::kTsv:
      status = parse_tsv(text, out);
      break;
    case DatasetFormat::kCsv:
      status = parse_csv(text, out);
      break;
    case DatasetFormat::kJsonl:
      status = parse_jsonl(text, out);
      break;
  }
  if (!status) return std::unexpected(std::move(status.error()));
  if (out.examples.empty())
    return fail(ErrorCode::kInvalidInput, fmt::format("{}: there is no labelled text in it", name));
  return out;
}

bool is_out_of_scope_label(std::string_view label) noexcept {
  constexpr std::array<std::string_view, 4> kNames = {"oos", "out_of_scope", "default", "none"};
  return std::any_of(kNames.begin(), kNames.end(), [label](std::string_view name) {
    return std::equal(label.begin(), label.end(), name.begin(), name.end(), [](char a, char b) {
      return a == ' ' || a == '-' ? b == '_' : std::tolower(static_cast<unsigned char>(a)) == b;
    });
  });
}

std::vector<std::size_t> draw_shots(const Dataset& dataset, std::size_t shots, std::uint64_t seed) {
  std::unordered_map<std::string_view, std::vector<std::size_t>> by_label;
  for (std::size_t i = 0; i < dataset.examples.size(); ++i) by_label[dataset.examples[i].label].push_back(i);

  std::vector<std::size_t> drawn;
  std::vector<std::pair<std::uint64_t, std::size_t>> order;  // a random order is the order of hashes
  for (const auto& [label, indices] : by_label) {
    const std::uint64_t label_seed = hash64(label, seed);
    order.clear();
    for (const std::size_t i : indices) order.emplace_back(hash64(dataset.examples[i].text, label_seed), i);
    std::sort(order.begin(), order.end());
    if (shots != 0 && shots < order.size()) order.resize(shots);
    for (const auto& [hash, i] : order) drawn.push_back(i);
  }
  std::sort(drawn.begin(), drawn.end());
  return drawn;
}

}  // namespace waybill::route
