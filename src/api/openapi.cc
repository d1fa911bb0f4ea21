#include "api/openapi.h"

#include <fmt/format.h>
#include <yaml-cpp/yaml.h>

#include "base/html.h"

namespace waybill::api {
namespace {

constexpr std::string_view kHead = R"html(<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>Waybill API</title>
<meta name="viewport" content="width=device-width, initial-scale=1"><style>
body{font:16px/1.5 system-ui,sans-serif;max-width:54rem;margin:2rem auto;padding:0 1rem;color:#222;background:#fff}
code,pre{font:14px/1.45 ui-monospace,monospace;background:#f3f4f6;border-radius:4px}code{padding:.1em .3em}
pre{padding:.8em;overflow-x:auto}h2{margin-top:2.5rem;border-bottom:1px solid #ddd}h3{margin-bottom:.2rem}
.method{display:inline-block;min-width:3.4em;font-weight:700;color:#0a6}table{border-collapse:collapse}
td{padding:.15rem .9rem .15rem 0;vertical-align:top}
@media (prefers-color-scheme:dark){body{color:#ddd;background:#16181c}code,pre{background:#23262d}h2{border-color:#333}}
</style></head><body>
)html";

std::string text_of(const YAML::Node& node, const char* key) {
  const YAML::Node value = node[key];
  return value && value.IsScalar() ? escape_html(value.as<std::string>()) : std::string();
}

// "#/components/schemas/Error" and the like.
YAML::Node resolve(const YAML::Node& root, const YAML::Node& node) {
  const YAML::Node reference = node["$ref"];
  if (!reference) return node;
  const std::string path = reference.as<std::string>();
  YAML::Node at = root;  // reset() below rebinds it and leaves the document alone
  for (std::size_t begin = 2; begin < path.size();) {
    const std::size_t end = std::min(path.find('/', begin), path.size());
    const YAML::Node next = at[path.substr(begin, end - begin)];
    at.reset(next);
    begin = end + 1;
  }
  return at;
}

std::string example_call(const YAML::Node& root, const std::string& method, const std::string& path,
                         const YAML::Node& operation) {
  std::string body;
  if (const YAML::Node request = operation["requestBody"]) {
    const YAML::Node content = resolve(root, request)["content"];
    if (const YAML::Node example = content["application/json"]["example"]) {
      YAML::Emitter json;
      json << YAML::DoubleQuoted << YAML::Flow << example;
      body = fmt::format(" -d '{}'", json.c_str());
    }
  }
  return fmt::format("curl {}http://127.0.0.1:8000{}{}", method == "POST" && body.empty() ? "-X POST " : "",
                     path, body);
}

std::string operation_html(const YAML::Node& root, const std::string& method, const std::string& path,
                           const YAML::Node& operation) {
  std::string html = fmt::format(
      "<h3><span class=\"method\">{}</span> <code>{}</code></h3>\n<p>{}. {}</p>\n<pre>{}</pre>\n<table>\n",
      method, escape_html(path), text_of(operation, "summary"), text_of(operation, "description"),
      escape_html(example_call(root, method, path, operation)));
  for (const YAML::Node& each : operation["parameters"]) {
    const YAML::Node parameter = resolve(root, each);
    html +=
        fmt::format("<tr><td><code>{}</code></td><td>{}</td><td>{}</td></tr>\n", text_of(parameter, "name"),
                    text_of(parameter, "in"), text_of(parameter, "description"));
  }
  for (const auto& response : operation["responses"]) {
    html += fmt::format("<tr><td><b>{}</b></td><td></td><td>{}</td></tr>\n", response.first.as<std::string>(),
                        text_of(resolve(root, response.second), "description"));
  }
  return html + "</table>\n";
}

std::string make_page() {
  const YAML::Node root = YAML::Load(std::string(openapi_yaml()));
  std::string html(kHead);
  html += fmt::format(
      "<h1>{}</h1>\n<p>{}</p>\n<p>The description that programs read: <a "
      "href=\"/openapi.yaml\">/openapi.yaml</a>.</p>\n",
      text_of(root["info"], "title"), text_of(root["info"], "description"));
  for (const YAML::Node& tag : root["tags"]) {
    const std::string name = tag["name"].as<std::string>();
    html += fmt::format("<h2>{}</h2>\n<p>{}</p>\n", escape_html(name), text_of(tag, "description"));
    for (const auto& path : root["paths"]) {
      for (const auto& operation : path.second) {
        if (operation.second["tags"][0].as<std::string>() != name) continue;
        std::string method = operation.first.as<std::string>();
        for (char& c : method) c = static_cast<char>(c - ('a' - 'A'));
        html += operation_html(root, method, path.first.as<std::string>(), operation.second);
      }
    }
  }
  return html + "</body></html>\n";
}

}  // namespace

const std::string& openapi_page() {
  static const std::string page = make_page();
  return page;
}

}  // namespace waybill::api
