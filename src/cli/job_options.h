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
#include "cli/job_text.h"

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
// Asks for page after page of the list at `path`, as many jobs as were wanted. A note says where there are
// more.
[[nodiscard]] Status list_pages(ApiClient& client, const std::string& path, const ListOptions& options,
                                const std::function<Status(const ApiList&)>& take);

// "/v1/jobs/ID" and `rest`.
[[nodiscard]] std::string path_of_job(std::string_view id, std::string_view rest = {});

}  // namespace waybill::cli
