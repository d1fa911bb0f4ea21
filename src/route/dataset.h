// Labelled texts from files: what routes are made of, fitted on and evaluated with. docs/routing.md has the
// formats.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace waybill::route {

enum class DatasetFormat : std::uint8_t {
  kTsv,    // label<TAB>text; the first tab splits
  kCsv,    // RFC 4180; a header names the columns, or there are exactly two of which one is plainly the label
  kJsonl,  // one object a line: {"text": ..., "label": ...}
};

struct Example {
  std::string text;   // valid UTF-8 (U+FFFD for what was not); may be empty: a prompt like any other
  std::string label;  // never empty
  int line = 0;       // where it starts in its file, from 1

  friend bool operator==(const Example&, const Example&) = default;
};

struct Dataset {
  std::string name;  // of the file, for messages
  std::vector<Example> examples;

  // The labels in order of their first appearance.
  [[nodiscard]] std::vector<std::string_view> labels() const;
};

// "tsv", "csv", "jsonl"; empty for anything else.
[[nodiscard]] std::optional<DatasetFormat> parse_dataset_format(std::string_view name) noexcept;

// By the extension: .tsv, .txt; .csv; .jsonl, .ndjson. kUnsupported for others, naming the option that tells
// it.
[[nodiscard]] Result<DatasetFormat> dataset_format_of(const std::filesystem::path& path);

// Reads a file; the format is told by its extension unless given. A byte order mark, CRLF and blank lines are
// accepted. Errors are "file:line: what is wrong and what to change".
[[nodiscard]] Result<Dataset> load_dataset(const std::filesystem::path& path,
                                           std::optional<DatasetFormat> format = std::nullopt);
// `name` stands for the file in messages.
[[nodiscard]] Result<Dataset> parse_dataset(std::string_view contents, DatasetFormat format,
                                            std::string_view name);

// Labels that mean "belongs to no route": oos, out_of_scope, default, none; case and the choice of '_', '-'
// and ' ' do not matter.
[[nodiscard]] bool is_out_of_scope_label(std::string_view label) noexcept;

// Indices of at most `shots` examples of each label (0: all), in file order. Which ones depends on the seed,
// the label and the texts of its examples only: adding another label does not change the draw.
[[nodiscard]] std::vector<std::size_t> draw_shots(const Dataset& dataset, std::size_t shots,
                                                  std::uint64_t seed);

}  // namespace waybill::route
