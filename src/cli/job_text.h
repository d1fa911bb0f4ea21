// Jobs as the API tells them, for people: their times, their answers, what became of them.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include <boost/json/object.hpp>

#include "base/result.h"

namespace waybill::cli {

// What the API answered with as an object; kUpstreamFailed where it is none.
[[nodiscard]] Result<boost::json::object> parse_object(std::string_view raw);
// A member; empty, or `otherwise`, where it is not there, null, or of another kind.
[[nodiscard]] std::string text_of(const boost::json::object& object, std::string_view name);
[[nodiscard]] double number_of(const boost::json::object& object, std::string_view name,
                               double otherwise = 0);
// Null where it is not there or no object.
[[nodiscard]] const boost::json::object* object_of(const boost::json::object& object, std::string_view name);

// JSON as it is, but on one line.
[[nodiscard]] std::string json_line(std::string_view raw);

// {"object": "list", "data": [...]}: the elements as they are, views into `body`, and where the next page
// begins.
struct ApiList {
  std::vector<std::string_view> items;
  std::string next;  // empty: there is no more
};
[[nodiscard]] Result<ApiList> parse_list(std::string_view body);

// A job as it is told, read.
class JobText {
 public:
  [[nodiscard]] static Result<JobText> parse(std::string_view raw);

  [[nodiscard]] std::string id() const { return text_of(job_, "id"); }
  [[nodiscard]] std::string status() const { return text_of(job_, "status"); }
  [[nodiscard]] std::string painted_status() const;
  [[nodiscard]] bool is_completed() const { return status() == "completed"; }
  // Nothing more comes of it by itself: it has ended, or is held.
  [[nodiscard]] bool is_over() const;
  // What a model said, of all its choices; the answer as it is where it is no text. Empty: there is none.
  [[nodiscard]] std::string answer() const;
  // "upstream_timeout: No answer in time."; empty where nothing is wrong.
  [[nodiscard]] std::string error() const;
  // All of it: a line for each thing, then the answer.
  [[nodiscard]] std::string details(double now) const;
  [[nodiscard]] const boost::json::object& object() const noexcept { return job_; }

 private:
  std::string raw_;
  boost::json::object job_;
};

// Of an event of a stream ("data" of a chunk): what its first choice adds.
[[nodiscard]] std::string text_of_chunk(std::string_view data);

[[nodiscard]] double unix_now();
// "12 s ago", "in 3 h"; empty for a time that is not.
[[nodiscard]] std::string relative_time(double at, double now);
// "340 ms", "12 s", "3 min", "5 h", "12 d".
[[nodiscard]] std::string rough_duration(double seconds);

}  // namespace waybill::cli
