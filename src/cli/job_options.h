// What the command lines about jobs have in common.
#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"
#include "cli/api_client.h"
#include "cli/command.h"
#include "cli/job_text.h"
#include "cli/terminal.h"

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace waybill::cli {

// Ids on the command line; standard input has them, one a line, if there are none.
void add_ids(CLI::App& command, std::vector<std::string>& ids, const std::string& description);
[[nodiscard]] Result<std::vector<std::string>> given_ids(const std::vector<std::string>& ids);

// --metadata KEY=VALUE, any number of times.
void add_metadata(CLI::App& command, std::vector<std::string>& pairs, const std::string& description);
// Of a pair that was checked.
[[nodiscard]] std::pair<std::string_view, std::string_view> split_pair(std::string_view pair);

// An option that takes "90s", "15m", "12h", "7d", or seconds.
void add_duration(CLI::App& command, const std::string& name, std::string& value,
                  const std::string& description);
// Nothing where it is no duration.
[[nodiscard]] std::optional<double> parse_duration(std::string_view text) noexcept;

// --limit, --all, --after and what filters a list of jobs.
struct ListOptions {
  std::string status, queue, after;
  std::vector<std::string> metadata;
  std::size_t limit = 20;
  bool all = false;
};
void add_list_options(CLI::App& command, ListOptions& options);
// Prints the jobs of the list at `path`, page after page, as many as were wanted: as they are, one a line
// (--json), or in `table`, which `row` makes the cells for. A note says where there are more.
[[nodiscard]] Outcome print_list(const ServerOptions& server, const std::string& path,
                                 const ListOptions& options, Table table,
                                 const std::function<std::vector<std::string>(const JobText& job)>& row);

// "/v1/jobs/ID" and `rest`.
[[nodiscard]] std::string path_of_job(std::string_view id, std::string_view rest = {});

}  // namespace waybill::cli
