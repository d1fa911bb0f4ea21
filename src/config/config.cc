#include "config/config.h"

#include <algorithm>
#include <exception>
#include <tuple>
#include <utility>

#include <fmt/format.h>

#include "base/file.h"
#include "config/checks.h"
#include "config/reader.h"
#include "config/yaml_node.h"

namespace waybill::config {
namespace {

constexpr std::size_t kMaxErrorsTold = 100;

void sort_by_place(std::vector<Diagnostic>& diagnostics, std::string_view main_file) {
  std::ranges::sort(diagnostics, {}, [main_file](const Diagnostic& d) {
    return std::tuple(d.position.file != main_file, std::string_view(d.position.file), d.position.line,
                      std::string_view(d.message));
  });
}

std::expected<Config, ConfigErrors> parse_checked(std::string_view yaml, const ParseOptions& options) {
  ConfigErrors result;
  const auto failed = [&](int line, std::string message) {
    result.errors.push_back({{options.name, line}, {}, std::move(message)});
    return std::unexpected(std::move(result));
  };
  if (yaml.size() > kMaxFileBytes) {
    return failed(
        0,
        fmt::format("the file has {} bytes, more than the {} allowed; move utterances into utterances_file",
                    yaml.size(), kMaxFileBytes));
  }
  const auto document = YamlDocument::parse(yaml);
  if (!document) return failed(document.error().line, document.error().message);
  const YamlNode* root = document->root();
  if (root == nullptr || root->kind == YamlNode::Kind::kNull) {
    return failed(0, "the file is empty; a configuration begins with routes:");
  }
  if (root->kind != YamlNode::Kind::kMapping) {
    return failed(root->line,
                  "a configuration is a mapping that begins with routes:, default_route: or another setting");
  }

  Config config;
  ReadContext context(options, result.errors);
  for (const YamlProblem& duplicate : document->duplicate_keys())
    context.error(duplicate.line, {}, duplicate.message);
  SectionReader reader(context, *root, {});
  describe(reader, config);
  reader.finish();
  complete_and_check(config, context.lines, options.name, result.errors);
  sort_by_place(config.warnings, options.name);
  if (result.errors.empty()) return config;
  sort_by_place(result.errors, options.name);
  if (result.errors.size() > kMaxErrorsTold) {
    const std::size_t more = result.errors.size() - kMaxErrorsTold;
    result.errors.resize(kMaxErrorsTold);
    result.errors.push_back({{options.name, 0}, {}, fmt::format("and {} more errors", more)});
  }
  result.warnings = std::move(config.warnings);
  return std::unexpected(std::move(result));
}

}  // namespace

std::string Position::text() const { return line > 0 ? fmt::format("{}:{}", file, line) : file; }

std::string Diagnostic::text() const { return position.text() + ": " + message; }

std::string ConfigErrors::text() const {
  std::string out;
  for (const Diagnostic& error : errors) {
    if (!out.empty()) out.push_back('\n');
    out += error.text();
  }
  return out;
}

std::expected<Config, ConfigErrors> parse(std::string_view yaml, const ParseOptions& options) {
  try {
    ParseOptions complete = options;
    if (!complete.read_file)
      complete.read_file = [](const auto& path) { return read_file(path, kMaxFileBytes); };
    return parse_checked(yaml, complete);
  } catch (const std::exception& error) {  // out of memory, or a path that the library refuses
    return std::unexpected(ConfigErrors{{{{options.name, 0}, {}, error.what()}}, {}});
  }
}

std::expected<Config, ConfigErrors> load(const std::filesystem::path& file) {
  const Result<std::string> yaml = read_file(file, kMaxFileBytes);
  if (!yaml) return std::unexpected(ConfigErrors{{{{file.string(), 0}, {}, yaml.error().message}}, {}});
  auto config = parse(*yaml, {.name = file.string(), .folder = file.parent_path(), .read_file = {}});
  if (config) config->file = file;
  return config;
}

}  // namespace waybill::config
