// The keys of the server's sections, as describe.h has those of the decision.
#pragma once

#include <array>
#include <chrono>

#include "config/key.h"
#include "config/server_config.h"

namespace waybill::config {

inline constexpr std::array kLogFormats = {Choice<LogFormat>{"auto", LogFormat::kAuto},
                                           Choice<LogFormat>{"json", LogFormat::kJson},
                                           Choice<LogFormat>{"text", LogFormat::kText}};
inline constexpr std::array kLogLevels = {
    Choice<LogLevel>{"trace", LogLevel::kTrace}, Choice<LogLevel>{"debug", LogLevel::kDebug},
    Choice<LogLevel>{"info", LogLevel::kInfo}, Choice<LogLevel>{"warn", LogLevel::kWarn},
    Choice<LogLevel>{"error", LogLevel::kError}};
inline constexpr DurationBounds kTimeouts = {std::chrono::milliseconds(1), std::chrono::hours(24)};

template <class Visitor>
void describe(Visitor& v, Tls& t) {
  v.file({"certificate", "The server's certificate and those that lead to its authority, in PEM."},
         t.certificate);
  v.file({"private_key", "The key of the certificate, in PEM."}, t.private_key);
}

template <class Visitor>
void describe(Visitor& v, Cors& c) {
  v.texts({"allow_origins", "Web pages of these origins (https://app.example.com) may call; \"*\": of all."},
          c.allow_origins);
}

template <class Visitor>
void describe(Visitor& v, Server& s) {
  v.addresses({"listen", "host:port, [IPv6]:port, unix:/path, systemd, or a list of them."}, s.listen);
  v.addresses(
      {"admin_listen",
       "Where the admin endpoints are, in the same form. Default: on listen, for admin keys only; for "
       "everybody when there are no keys and listen is this machine's own."},
      s.admin_listen);
  v.automatic({"io_threads", "Event loops. auto: one per core."}, {1, 1024}, s.io_threads);
  v.integer(
      {"busy_poll_us",
       "While at most one request is under way an event loop looks for news this many microseconds before "
       "it sleeps: it costs CPU and saves the time to wake up. 0: it sleeps at once."},
      {0, 1000}, s.busy_poll_us);
  v.flag({"insecure", "Allow listening beyond this machine without keys."}, s.insecure);
  v.section({"tls", "HTTPS on listen. The files are read again when they change."}, s.tls);
  v.duration({"drain_timeout", "At the end, what is in flight has this long to finish."},
             {std::chrono::seconds(0), std::chrono::hours(24)}, s.drain_timeout);
  v.integer({"max_connections", "Open at a time; one more is answered 503 and closed."}, {1, 10'000'000},
            s.max_connections);
  v.size({"max_header_size", "Of a request, its first line counted."}, s.max_header_bytes);
  v.size({"max_body_size", "Of a request."}, s.max_body_bytes);
  v.size({"max_total_body_size",
          "Of all requests at a time; one more is answered 503. Bodies up to 64KiB are not counted."},
         s.max_total_body_bytes);
  v.duration({"header_timeout", "From the first byte of a request to the end of its header."}, kTimeouts,
             s.header_timeout);
  v.duration({"body_timeout", "The longest pause within a body."}, kTimeouts, s.body_timeout);
  v.duration({"idle_timeout", "A connection without a request is closed after this long."}, kTimeouts,
             s.idle_timeout);
  v.duration({"write_timeout", "The longest pause of a client that takes an answer."}, kTimeouts,
             s.write_timeout);
  v.section({"cors", "Calls from web pages of other origins."}, s.cors);
  v.integer({"max_inputs", "Prompts or texts in one request."}, {1, 1'000'000}, s.max_inputs);
}

template <class Visitor>
void describe(Visitor& v, ApiKey& k) {
  v.text({"name", "What logs and metrics call the caller.", true}, k.name);
  v.digest({"sha256", "SHA-256 of the key, 64 hexadecimal digits (printf %s KEY | sha256sum)."}, k.sha256);
  v.text({"env", "The environment variable that holds the key."}, k.env);
  v.file({"file", "The file whose first line is the key; relative to this file."}, k.file);
  v.flag({"admin", "May use the admin endpoints too."}, k.admin);
  v.section({"limits", "What this caller may use."}, k.limits);
  v.texts({"tags", "Words that reports group callers by (a team, a cost centre)."}, k.tags);
}

template <class Visitor>
void describe(Visitor& v, Admission& a) {
  v.duration({"deadline", "Of a request that names none."}, kTimeouts, a.deadline);
  v.duration({"max_deadline", "A request that asks for longer gets this."}, kTimeouts, a.max_deadline);
  v.duration({"max_wait",
              "What would wait longer than this for the encoder is decided by the static tier, or refused."},
             kTimeouts, a.max_wait);
  v.automatic({"max_queue_tokens", "Tokens that wait for the encoder at most. auto: 65536."}, {1, 1 << 30},
              a.max_queue_tokens);
}

template <class Visitor>
void describe(Visitor& v, Waybills& w) {
  v.integer({"keep", "The latest so many are kept in memory."}, {0, 100'000'000}, w.keep);
  v.size({"max_size", "Memory for them."}, w.max_bytes);
  v.file({"file", "Each is written here too, as a line of JSON; relative to this file. Default: nowhere."},
         w.file);
  v.size({"rotate_size", "The file is put aside when it is this large."}, w.rotate_bytes);
  v.integer({"rotate_keep", "So many files that were put aside are kept."}, {0, 10'000}, w.rotate_keep);
}

template <class Visitor>
void describe(Visitor& v, Log& l) {
  v.choice({"format", "auto: text on a terminal, JSON lines elsewhere."}, kLogFormats, l.format);
  v.choice({"level", "What is less than this is not logged."}, kLogLevels, l.level);
  v.integer({"healthy_per_second",
             "So many requests that went well are logged in a second; the others always are."},
            {0, 1'000'000}, l.healthy_per_second);
}

template <class Visitor>
void describe(Visitor& v, Traces& t) {
  v.text({"endpoint", "Where an OTLP/HTTP collector listens (http://localhost:4318). Default: no traces."},
         t.endpoint);
  v.number({"sample_ratio", "This share of the requests that bring no decision of their own is traced."},
           {0, 1}, t.sample_ratio);
  v.text({"service_name", "What traces call this program."}, t.service_name);
  v.integer({"max_queue", "Spans that wait for the collector at most; more are dropped and counted."},
            {1, 10'000'000}, t.max_queue);
}

template <class Visitor>
void describe(Visitor& v, Telemetry& t) {
  v.section({"waybills", "The records of requests."}, t.waybills);
  v.section({"log", "The log, on standard error."}, t.log);
  v.section({"traces", "Spans for a collector."}, t.traces);
}

}  // namespace waybill::config
