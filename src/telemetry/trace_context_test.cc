#include "telemetry/trace_context.h"

#include <algorithm>
#include <cctype>
#include <set>
#include <string>
#include <vector>

#include <boost/json.hpp>
#include <gtest/gtest.h>

#include "base/file.h"

namespace waybill::telemetry {
namespace {

using Texts = std::vector<std::string>;

TraceContext accept(const Texts& traceparent, const Texts& tracestate = {}, double ratio = 1) {
  const std::vector<std::string_view> parents(traceparent.begin(), traceparent.end());
  const std::vector<std::string_view> states(tracestate.begin(), tracestate.end());
  return accept_trace(parents, states, ratio);
}

const char* const kParent = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

// One case of tests/data/tracecontext.json, which says there what its members mean.
class Case {
 public:
  explicit Case(const boost::json::object& object) : object_(object) {
    for (const boost::json::value& header : object.at("headers").as_array()) {
      std::string name(header.as_array()[0].as_string());
      std::ranges::transform(name, name.begin(), [](unsigned char c) { return std::tolower(c); });
      (name == "traceparent" ? traceparents_ : tracestates_).emplace_back(header.as_array()[1].as_string());
    }
  }

  void check() const {
    SCOPED_TRACE(std::string(object_.at("name").as_string()));
    const TraceContext context = accept(traceparents_, tracestates_);
    const std::string outgoing = format_traceparent(context);
    if (!object_.at("continues_trace").as_bool()) {
      EXPECT_EQ(context.parent_id, SpanId{});
      for (const std::string& header : traceparents_) {
        if (header.size() >= 35) {
          EXPECT_EQ(header.find(to_hex(context.trace_id)), std::string::npos);
        }
      }
    }
    if (has("trace_id")) {
      EXPECT_EQ(to_hex(context.trace_id), text("trace_id"));
    }
    if (has("trace_id")) {
      EXPECT_EQ(outgoing.substr(3, 32), text("trace_id"));
    }
    if (has("parent_id")) {
      EXPECT_EQ(to_hex(context.parent_id), text("parent_id"));
    }
    if (has("parent_id")) {
      EXPECT_NE(outgoing.substr(36, 16), text("parent_id"));
    }
    if (has("flags")) {
      EXPECT_EQ(context.sampled, object_.at("flags").as_int64() == 1);
    }
    if (has("outgoing_flags")) {
      EXPECT_EQ(outgoing.substr(53), "01");
    }
    if (has("outgoing_version")) {
      EXPECT_EQ(outgoing.substr(0, 2), text("outgoing_version"));
    }
    if (has("outgoing_unchanged")) {
      EXPECT_EQ(context.tracestate, tracestates_.at(0));
    }
    if (has("outgoing_members")) {
      EXPECT_EQ(context.tracestate, joined_members());
    }
    if (has("outgoing_tracestate")) {
      EXPECT_EQ(context.tracestate,
                object_.at("outgoing_tracestate").is_null() ? "" : text("outgoing_tracestate"));
    }
  }

 private:
  [[nodiscard]] bool has(const char* name) const { return object_.contains(name); }
  [[nodiscard]] std::string text(const char* name) const { return std::string(object_.at(name).as_string()); }
  [[nodiscard]] std::string joined_members() const {
    std::string joined;
    for (const boost::json::value& member : object_.at("outgoing_members").as_array()) {
      if (!joined.empty()) joined += ',';
      joined += std::string_view(member.as_string());
    }
    return joined;
  }

  const boost::json::object& object_;
  Texts traceparents_, tracestates_;
};

TEST(TraceContext, DoesWhatEveryVectorSays) {
  const auto file = read_file(WAYBILL_SOURCE_DIR "/tests/data/tracecontext.json");
  ASSERT_TRUE(file);
  const boost::json::value vectors = boost::json::parse(*file);
  ASSERT_GE(vectors.at("cases").as_array().size(), 60U);
  for (const boost::json::value& value : vectors.at("cases").as_array()) Case(value.as_object()).check();
}

TEST(TraceContext, EveryShorterTraceparentStartsANewTrace) {
  const std::string whole = kParent;
  for (std::size_t n = 0; n < whole.size(); ++n)
    EXPECT_EQ(accept({whole.substr(0, n)}).parent_id, SpanId{}) << n;
}

TEST(TraceContext, TheCallersFlagOutweighsTheRatio) {
  std::string unsampled = kParent;
  unsampled.back() = '0';
  EXPECT_TRUE(accept({kParent}, {}, 0).sampled);
  EXPECT_FALSE(accept({unsampled}, {}, 1).sampled);
  EXPECT_FALSE(accept({}, {}, 0).sampled);
  EXPECT_TRUE(accept({}, {}, 1).sampled);
}

TEST(TraceContext, TheRatioIsHeldAndTheSameTraceGetsTheSameAnswer) {
  int sampled = 0;
  for (int i = 0; i < 20'000; ++i) {
    const TraceId id = new_trace_id();
    const bool answer = sample_by_ratio(id, 0.25);
    EXPECT_EQ(answer, sample_by_ratio(id, 0.25));
    EXPECT_TRUE(!answer || sample_by_ratio(id, 0.5));
    sampled += answer ? 1 : 0;
  }
  EXPECT_NEAR(sampled, 5'000, 500);
}

TEST(TraceContext, IdsAreNew) {
  std::set<SpanId> spans;
  for (int i = 0; i < 10'000; ++i) spans.insert(accept({kParent}).span_id);
  EXPECT_EQ(spans.size(), 10'000U);
}

TEST(TraceContext, NoTracestateIsLongerThanWhatWasGiven) {
  const Texts states = {" a=1 ,, b=2", "", ",", "c=3 "};
  EXPECT_EQ(accept({kParent}, states).tracestate, "a=1,b=2,c=3");
}

}  // namespace
}  // namespace waybill::telemetry
