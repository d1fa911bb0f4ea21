// burst: drives a gateway's POST /route through the load of the incident and reports what became of every
// request. See ../README.md for the scenarios.
#include <cstdlib>
#include <functional>
#include <map>
#include <string>

#include <fmt/core.h>
#include <sys/resource.h>

#include "prompts.h"
#include "report.h"

namespace burst {
namespace {

[[noreturn]] void usage(const std::string& complaint) {
  fmt::print(
      stderr,
      "burst: {}\n"
      "usage: burst [--url http://127.0.0.1:8000] [--scenario burst300,qps240,closed100,ramp] [--runs 3]\n"
      "  [--label NAME] [--json FILE] [--pid SERVER_PID] [--seed 1] [--pool PROMPTS] [--timeout-s 5] "
      "[--warmup 20]\n"
      "  [--header 'Name: value'] [--settle-s 120] [--rate 240] [--seconds 30] [--hang-up SHARE] "
      "[--hang-up-s 0.1]\n"
      "  [--clients 100] [--rounds 10]\n"
      "  [--ramp-start 10] [--ramp-max 40000] [--ramp-growth 1.3] [--ramp-step-s 5] [--p95-ms 320]\n"
      "  [--dump-prompts N]\n",
      complaint);
  std::exit(2);
}

Target parse_url(const std::string& url, Target target) {
  const std::string scheme = "http://";
  const std::size_t colon = url.find(':', scheme.size());
  if (!url.starts_with(scheme) || colon == url.npos) usage("--url is http://HOST:PORT, not " + url);
  target.host = url.substr(scheme.size(), colon - scheme.size());
  if (target.host == "localhost") target.host = "127.0.0.1";
  if (!target.host.starts_with("127.")) usage("only a loopback address is loaded, not " + target.host);
  target.port = std::atoi(url.c_str() + colon + 1);
  return target;
}

std::vector<std::string> split(const std::string& text) {
  std::vector<std::string> parts{""};
  for (const char c : text) {
    if (c == ',') {
      parts.emplace_back();
    } else {
      parts.back() += c;
    }
  }
  return parts;
}

Options parse_options(int argc, char** argv) {
  Options o;
  const std::map<std::string, std::function<void(const std::string&)>> options = {
      {"--url", [&](const std::string& v) { o.target = parse_url(v, o.target); }},
      {"--scenario", [&](const std::string& v) { o.scenarios = split(v); }},
      {"--runs", [&](const std::string& v) { o.runs = std::atoi(v.c_str()); }},
      {"--label", [&](const std::string& v) { o.label = v; }},
      {"--json", [&](const std::string& v) { o.json_file = v; }},
      {"--pid", [&](const std::string& v) { o.server_pid = std::atoi(v.c_str()); }},
      {"--seed", [&](const std::string& v) { o.seed = std::strtoull(v.c_str(), nullptr, 10); }},
      {"--pool", [&](const std::string& v) { o.pool = std::strtoull(v.c_str(), nullptr, 10); }},
      {"--timeout-s", [&](const std::string& v) { o.timeout_s = std::atof(v.c_str()); }},
      {"--warmup", [&](const std::string& v) { o.warmup = std::atoi(v.c_str()); }},
      {"--header", [&](const std::string& v) { o.target.headers.push_back(v); }},
      {"--settle-s", [&](const std::string& v) { o.settle_s = std::atof(v.c_str()); }},
      {"--rate", [&](const std::string& v) { o.rate = std::atof(v.c_str()); }},
      {"--seconds", [&](const std::string& v) { o.seconds = std::atof(v.c_str()); }},
      {"--hang-up", [&](const std::string& v) { o.hang_up_share = std::atof(v.c_str()); }},
      {"--hang-up-s", [&](const std::string& v) { o.hang_up_within_s = std::atof(v.c_str()); }},
      {"--clients", [&](const std::string& v) { o.clients = std::atoi(v.c_str()); }},
      {"--rounds", [&](const std::string& v) { o.rounds = std::atoi(v.c_str()); }},
      {"--ramp-start", [&](const std::string& v) { o.ramp_start = std::atof(v.c_str()); }},
      {"--ramp-max", [&](const std::string& v) { o.ramp_max = std::atof(v.c_str()); }},
      {"--ramp-growth", [&](const std::string& v) { o.ramp_growth = std::atof(v.c_str()); }},
      {"--ramp-step-s", [&](const std::string& v) { o.ramp_step_s = std::atof(v.c_str()); }},
      {"--p95-ms", [&](const std::string& v) { o.p95_limit_ms = std::atof(v.c_str()); }},
      {"--dump-prompts", [&](const std::string& v) { o.dump_prompts = std::atoi(v.c_str()); }},
  };
  for (int i = 1; i < argc; i += 2) {
    const auto option = options.find(argv[i]);
    if (option == options.end()) usage(std::string("unknown option ") + argv[i]);
    if (i + 1 == argc) usage(option->first + " needs a value");
    option->second(argv[i + 1]);
  }
  for (const std::string& name : o.scenarios) {
    if (!is_scenario(name)) usage("unknown scenario " + name);
  }
  return o;
}

int dump_prompts(const Options& o) {
  PromptSource prompts(o.seed, o.pool);
  for (int i = 0; i < o.dump_prompts; ++i) {
    const Prompt p = prompts.next();
    fmt::print("{}\t{}\n", p.topic, p.text);
  }
  return 0;
}

int run(const Options& o) {
  rlimit files{};
  getrlimit(RLIMIT_NOFILE, &files);
  files.rlim_cur = files.rlim_max;
  setrlimit(RLIMIT_NOFILE, &files);

  Runs runs;
  Medians medians;
  for (const std::string& name : o.scenarios) {
    for (int i = 0; i < o.runs; ++i) {
      fmt::print(stderr, "  {}: {}, run {} of {}\n", o.label, name, i + 1, o.runs);
      // Every run has prompts of its own: what a server cached in one is no use in the next.
      const std::uint64_t seed =
          o.seed * 1000 + static_cast<std::uint64_t>(name[0]) * 10 + static_cast<std::uint64_t>(i);
      runs[name].push_back(run_scenario(name, o, seed));
    }
    medians.emplace_back(name, median_of(runs[name]));
  }
  print_table(o.label, medians);
  if (o.json_file.empty() || write_json(o, medians, runs)) return 0;
  fmt::print(stderr, "burst: cannot write {}\n", o.json_file);
  return 1;
}

}  // namespace
}  // namespace burst

int main(int argc, char** argv) {
  const burst::Options options = burst::parse_options(argc, argv);
  return options.dump_prompts > 0 ? burst::dump_prompts(options) : burst::run(options);
}
