#include "cli/job_options.h"

#include <algorithm>
#include <array>
#include <charconv>

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <unistd.h>

#include "cli/command.h"
#include "cli/input.h"
#include "cli/output.h"

namespace waybill::cli {
namespace {

constexpr std::size_t kLargestPage = 1000;

struct Unit {
  std::string_view name;
  double seconds;
};
constexpr std::array kUnits = {Unit{"ms", 1e-3}, Unit{"s", 1}, Unit{"m", 60}, Unit{"h", 3600},
                               Unit{"d", 86'400}};

std::string query_of(const ListOptions& options, std::size_t limit, const std::string& after) {
  std::string query = fmt::format("?limit={}", limit);
  const auto add = [&query](std::string_view name, std::string_view value) {
    if (!value.empty()) query += fmt::format("&{}={}", name, percent_encoded(value));
  };
  add("status", options.status);
  add("queue", options.queue);
  add("after", after);
  for (const std::string& pair : options.metadata) {
    const auto [name, value] = split_pair(pair);
    query += fmt::format("&metadata.{}={}", percent_encoded(name), percent_encoded(value));
  }
  return query;
}

// As many jobs as were wanted, page after page; a page may be shorter than was asked for.
Status list_pages(ApiClient& client, const std::string& path, const ListOptions& options,
                  const std::function<Status(const ApiList&)>& take) {
  std::string after = options.after;
  std::size_t left = options.limit;
  for (;;) {
    const std::size_t most = options.all ? kLargestPage : std::min(left, kLargestPage);
    const ApiRequest request = {
        .method = "GET", .path = path + query_of(options, most, after), .body = {}, .headers = {}};
    const Result<std::string> body = client.ask(request);
    if (!body) return std::unexpected(body.error());
    const Result<ApiList> list = parse_list(*body);
    if (!list) return std::unexpected(list.error());
    if (const Status taken = take(*list); !taken) return taken;
    if (list->next.empty()) return {};
    after = list->next;
    left -= std::min(left, list->items.size());
    if (options.all || left > 0) continue;
    print_note(fmt::format("there are more: --all, or --after {}", after));
    return {};
  }
}

}  // namespace

void add_ids(CLI::App& command, std::vector<std::string>& ids, const std::string& description) {
  command.add_option("ID", ids, description + "; standard input has them, one a line, if there are none")
      ->type_name("ID")
      ->expected(0, -1);
}

Result<std::vector<std::string>> given_ids(const std::vector<std::string>& ids) {
  if (!ids.empty()) return ids;
  if (::isatty(STDIN_FILENO) == 1) return fail(ErrorCode::kInvalidInput, "no job is named: give its id");
  std::vector<std::string> all, lines;
  TextReader reader(InputFormat::kLines);
  for (;;) {
    if (const Status read = reader.next(lines); !read) return std::unexpected(read.error());
    if (lines.empty()) return all;
    for (std::string& line : lines) {
      if (!line.empty()) all.push_back(std::move(line));
    }
  }
}

void add_metadata(CLI::App& command, std::vector<std::string>& pairs, const std::string& description) {
  const auto check = [](const std::string& pair) {
    return pair.find('=') == std::string::npos || pair.starts_with('=')
               ? fmt::format("\"{}\" is not KEY=VALUE", pair)
               : std::string();
  };
  command.add_option("--metadata", pairs, description)
      ->type_name("KEY=VALUE")
      ->allow_extra_args(false)
      ->check(CLI::Validator(check, "", "pair"));
}

std::pair<std::string_view, std::string_view> split_pair(std::string_view pair) {
  const std::size_t equals = std::min(pair.find('='), pair.size());
  return {pair.substr(0, equals), pair.substr(std::min(equals + 1, pair.size()))};
}

std::optional<double> parse_duration(std::string_view text) noexcept {
  double number = 0;
  const char* end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, number, std::chars_format::fixed);
  if (error != std::errc() || !(number >= 0)) return std::nullopt;
  const std::string_view unit(rest, static_cast<std::size_t>(end - rest));
  if (unit.empty()) return number;
  const auto found = std::ranges::find(kUnits, unit, &Unit::name);
  return found == kUnits.end() ? std::nullopt : std::optional(number * found->seconds);
}

void add_duration(CLI::App& command, const std::string& name, std::string& value,
                  const std::string& description) {
  const auto check = [](const std::string& text) {
    return parse_duration(text) ? std::string()
                                : fmt::format("\"{}\" is no duration; write 90s, 15m, 12h or 7d", text);
  };
  command.add_option(name, value, description)
      ->type_name("DURATION")
      ->check(CLI::Validator(check, "", "duration"));
}

void add_list_options(CLI::App& command, ListOptions& options) {
  command.add_option("--queue", options.queue, "Those of this queue")->type_name("NAME");
  add_metadata(command, options.metadata, "Those that have this; more than once: all of it");
  command.add_option("--limit", options.limit, "At most so many, the latest first")
      ->type_name("N")
      ->check(CLI::Range(std::size_t{1}, std::size_t{1'000'000'000}));
  command.add_flag("--all", options.all, "All of them");
  command.add_option("--after", options.after, "Those that come after this one in the list")->type_name("ID");
}

Outcome print_list(const ServerOptions& server, const std::string& path, const ListOptions& options,
                   Table table, const std::function<std::vector<std::string>(const JobText& job)>& row) {
  const Result<std::unique_ptr<ApiClient>> client = ApiClient::make(server);
  if (!client) return std::unexpected(client.error());
  Output output;
  const Status listed = list_pages(**client, path, options, [&](const ApiList& list) -> Status {
    for (const std::string_view item : list.items) {
      if (server.json) {
        output.write(json_line(item));
        continue;
      }
      const Result<JobText> job = JobText::parse(item);
      if (!job) return std::unexpected(job.error());
      table.add_row(row(*job));
    }
    return output.flush();
  });
  if (!listed) return std::unexpected(listed.error());
  if (!table.empty()) output.write(table.text());
  return finish(output);
}

std::string path_of_job(std::string_view id, std::string_view rest) {
  return fmt::format("/v1/jobs/{}{}", percent_encoded(id), rest);
}

}  // namespace waybill::cli
