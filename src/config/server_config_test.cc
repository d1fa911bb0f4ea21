#include "config/server_config.h"

#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "config/config.h"

namespace waybill::config {
namespace {

using std::chrono::milliseconds;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

constexpr std::string_view kHash = "2c26b46b68ffc68ff99b453c1d30413413422d706483bfa0f98a5e886266e7ae";

std::string with_routes(std::string_view yaml) {
  return std::string(yaml) + "\nroutes: [{name: a, utterances: [x]}]\n";
}

Config parsed(std::string_view yaml) {
  auto config = parse(with_routes(yaml));
  EXPECT_TRUE(config) << config.error().text();
  return config ? *std::move(config) : Config{};
}

std::string errors_of(std::string_view yaml) {
  const auto config = parse(with_routes(yaml));
  EXPECT_FALSE(config) << yaml;
  return config ? std::string() : config.error().text();
}

std::vector<std::string> listen_texts(std::string_view yaml) {
  std::vector<std::string> texts;
  for (const ListenAddress& address : parsed(yaml).server.listen) texts.push_back(address.text());
  return texts;
}

TEST(ServerConfig, IsCompleteWithoutASingleKey) {
  const Config config = parsed("");
  EXPECT_THAT(listen_texts(""), ElementsAre("127.0.0.1:8000"));
  EXPECT_THAT(config.server.admin_listen, IsEmpty());
  EXPECT_EQ(config.server.max_header_bytes, 16U << 10);
  EXPECT_EQ(config.server.idle_timeout, std::chrono::seconds(75));
  EXPECT_EQ(config.admission.deadline, std::chrono::seconds(30));
  EXPECT_FALSE(config.server.tls.enabled());
  EXPECT_THAT(config.warnings, IsEmpty());
}

TEST(ServerConfig, ALargestBodyFitsIntoWhatAllBodiesMayTake) {
  EXPECT_EQ(parsed("server: {max_body_size: 2MiB, max_total_body_size: 2MiB}\n").server.max_total_body_bytes,
            2U << 20);
  EXPECT_THAT(errors_of("server:\n  max_total_body_size: 9MiB\n"),
              HasSubstr("waybill.yaml:2: server.max_total_body_size is less than server.max_body_size"));
  EXPECT_THAT(errors_of("server:\n  max_body_size: 2GiB\n"),
              HasSubstr("waybill.yaml:2: server.max_total_body_size is less than server.max_body_size"));
}

TEST(ServerConfig, WhatIsWrittenOutIsReadBack) {
  const Config config =
      parsed("keys: [{name: a, sha256: " + std::string(kHash) +
             "}]\n"
             "server: {listen: [\"[::]:80\", systemd], write_timeout: 90s, header_timeout: 1500ms}\n");
  const std::string yaml = to_yaml(config, Secrets::kShown);
  const auto again = parse(yaml);
  ASSERT_TRUE(again) << again.error().text() << yaml;
  EXPECT_EQ(to_yaml(*again, Secrets::kShown), yaml);
  EXPECT_EQ(again->server.listen, config.server.listen);
  EXPECT_THAT(yaml, AllOf(HasSubstr("write_timeout: \"90s\""), HasSubstr("header_timeout: \"1500ms\"")));
}

TEST(ServerConfig, ReadsDurations) {
  const auto duration = [](std::string_view text) {
    return parsed("admission: {max_deadline: 24h, deadline: " + std::string(text) + "}").admission.deadline;
  };
  EXPECT_EQ(duration("10s"), std::chrono::seconds(10));
  EXPECT_EQ(duration("250ms"), milliseconds(250));
  EXPECT_EQ(duration("2 m"), std::chrono::minutes(2));
  EXPECT_EQ(duration("1h"), std::chrono::hours(1));
  EXPECT_EQ(duration("1d"), std::chrono::hours(24));
  EXPECT_THAT(errors_of("admission: {deadline: 10}"),
              HasSubstr("waybill.yaml:1: admission.deadline is \"10\", which must be a duration from 1ms to "
                        "1d: a whole number with ms, s, m, h or d (10s)"));
  for (const std::string_view wrong :
       {"1.5s", "-1s", "10 parsecs", "s", "0s", "25h", "99999999999999999999s", "4294967295h"})
    EXPECT_THAT(errors_of("admission: {deadline: " + std::string(wrong) + "}"),
                HasSubstr("must be a duration"))
        << wrong;
}

TEST(ServerConfig, ReadsAddresses) {
  EXPECT_THAT(listen_texts("server: {listen: localhost:80}"), ElementsAre("localhost:80"));
  EXPECT_THAT(listen_texts("server: {listen: [\"[::1]:8000\", 127.0.0.1:0, unix:/run/w.sock]}"),
              ElementsAre("[::1]:8000", "127.0.0.1:0", "unix:/run/w.sock"));
  const auto error = [](std::string_view text) {
    return errors_of("server: {listen: \"" + std::string(text) + "\"}");
  };
  EXPECT_THAT(error("8000"),
              HasSubstr("waybill.yaml:1: server.listen: \"8000\" has no host; write 127.0.0.1:8000"));
  EXPECT_THAT(error(":8000"), HasSubstr("has no host; write 127.0.0.1:8000, or 0.0.0.0:8000"));
  EXPECT_THAT(error("localhost"), HasSubstr("has no port; write localhost:8000"));
  EXPECT_THAT(error("[::1]"), HasSubstr("has no port; write [::1]:8000"));
  EXPECT_THAT(error("::1:8000"), HasSubstr("write an IPv6 address in brackets ([::1]:8000)"));
  EXPECT_THAT(error("[localhost]:80"), HasSubstr("no IPv6 address in its brackets"));
  EXPECT_THAT(error("*:80"), HasSubstr("write 0.0.0.0:80 and [::]:80"));
  EXPECT_THAT(error("http://localhost:80"), HasSubstr("is a URL"));
  EXPECT_THAT(error("localhost:http"), HasSubstr("has the port \"http\""));
  EXPECT_THAT(error("localhost:65536"), HasSubstr("has the port \"65536\""));
  EXPECT_THAT(error("unix:"), HasSubstr("names no socket"));
  EXPECT_THAT(error("unix:/" + std::string(107, 'x')), HasSubstr("107 bytes"));
  EXPECT_THAT(errors_of("server: {listen: [127.0.0.1:80, 127.0.0.1:80]}"), HasSubstr("twice"));
  EXPECT_THAT(errors_of("server: {admin_listen: 127.0.0.1:8000}"), HasSubstr("which server.listen has too"));
}

TEST(ServerConfig, ListensBeyondThisMachineOnlyWithKeysOrWhenToldTo) {
  for (const std::string_view open : {"0.0.0.0:8000", "\"[::]:8000\"", "gateway.example:8000", "systemd",
                                      "128.0.0.1:80", "127.example.com:80"}) {
    const std::string listen = "server: {listen: " + std::string(open) + "}\n";
    EXPECT_THAT(errors_of(listen), AllOf(HasSubstr("waybill.yaml:1: server.listen names"),
                                         HasSubstr("there are no keys; add keys")));
    EXPECT_TRUE(parse(with_routes(listen + "keys: [{name: a, env: A}]"))) << open;
    EXPECT_TRUE(parse(with_routes("server: {insecure: true, listen: " + std::string(open) + "}"))) << open;
  }
  for (const std::string_view local :
       {"127.0.0.1:80", "127.9.9.9:80", "localhost:80", "\"[::1]:80\"", "unix:a.sock"})
    EXPECT_TRUE(parse(with_routes("server: {listen: " + std::string(local) + "}"))) << local;
  EXPECT_THAT(errors_of("keys: []\nserver: {listen: 0.0.0.0:80}"), HasSubstr("there are no keys"));
}

TEST(ServerConfig, TheAdminAddressNeedsAnAdminKey) {
  EXPECT_THAT(errors_of("server: {admin_listen: 0.0.0.0:9000}\nkeys: [{name: a, env: A}]"),
              HasSubstr("add a key with admin: true"));
  EXPECT_TRUE(
      parse(with_routes("server: {admin_listen: 0.0.0.0:9000}\nkeys: [{name: a, env: A, admin: true}]")));
  EXPECT_TRUE(parse(with_routes("server: {admin_listen: 127.0.0.1:9000}\nkeys: [{name: a, env: A}]")));
  const Config config = parsed("keys: [{name: a, env: A}]");
  ASSERT_EQ(config.warnings.size(), 1U);
  EXPECT_THAT(config.warnings[0].message, HasSubstr("nobody can use the admin endpoints"));
}

TEST(ServerConfig, AKeyHasOneSourceAndANameOfItsOwn) {
  EXPECT_THAT(errors_of("keys: [{name: a}]"),
              HasSubstr("keys[0] must have one of sha256, env and file; add"));
  EXPECT_THAT(errors_of("keys: [{name: a, env: A, file: f}]"), HasSubstr("not several"));
  EXPECT_THAT(errors_of("keys: [{env: A}]"), HasSubstr("name is missing in keys[0]"));
  EXPECT_THAT(errors_of("keys:\n  - {name: a, env: A}\n  - {name: a, env: B}"),
              HasSubstr("waybill.yaml:3: the key \"a\" is there twice (first at waybill.yaml:2)"));
  EXPECT_THAT(errors_of("keys:\n  - {name: a, env: A}\n  - {name: b, env: A}"),
              HasSubstr("waybill.yaml:3: keys[1] is the same key as \"a\""));
  std::string upper(kHash);
  for (char& c : upper) c = static_cast<char>(std::toupper(c));
  EXPECT_THAT(
      errors_of("keys: [{name: a, sha256: " + std::string(kHash) + "}, {name: b, sha256: " + upper + "}]"),
      HasSubstr("is the same key"));
}

TEST(ServerConfig, SecretsAreNeitherPrintedNorTold) {
  const Config config = parsed("keys: [{name: a, sha256: " + std::string(kHash) + "}]");
  EXPECT_THAT(to_yaml(config), AllOf(Not(HasSubstr(std::string(kHash))), HasSubstr("sha256: hidden")));
  EXPECT_THAT(to_json(config), Not(HasSubstr(std::string(kHash))));
  EXPECT_THAT(errors_of("keys: [{name: a, sha256: sk-secret}]"),
              AllOf(HasSubstr("is not 64 hexadecimal digits"), Not(HasSubstr("sk-secret"))));
  EXPECT_THAT(errors_of("keys: [{name: a, key: sk-secret}]"),
              AllOf(HasSubstr("unknown key \"key\""), Not(HasSubstr("sk-secret"))));
  EXPECT_THAT(errors_of("telemetry: {traces: {endpoint: \"http://me:secret@host/\"}}"),
              AllOf(HasSubstr("user name or password"), Not(HasSubstr("secret"))));
}

TEST(ServerConfig, ACertificateNeedsItsKey) {
  EXPECT_THAT(errors_of("server: {tls: {certificate: c.pem}}"),
              HasSubstr("has a certificate and no private_key; add private_key"));
  EXPECT_THAT(errors_of("server: {tls: {private_key: k.pem}}"),
              HasSubstr("has a private_key and no certificate"));
  EXPECT_TRUE(parsed("server: {tls: {certificate: c.pem, private_key: k.pem}}").server.tls.enabled());
}

TEST(ServerConfig, ChecksWhatHangsTogether) {
  EXPECT_THAT(errors_of("admission: {deadline: 11m}"),
              HasSubstr("waybill.yaml:1: admission.deadline is longer than admission.max_deadline"));
  EXPECT_THAT(errors_of("server: {cors: {allow_origins: [app.example.com]}}"),
              HasSubstr("\"app.example.com\" is not an origin"));
  EXPECT_THAT(errors_of("server: {cors: {allow_origins: [\"https://a.example/\"]}}"),
              HasSubstr("is not an origin"));
  EXPECT_THAT(errors_of("server: {cors: {allow_origins: [\"https://a.example\\r\\nx: y\"]}}"),
              HasSubstr("is not an origin"));
  EXPECT_TRUE(parse(with_routes("server: {cors: {allow_origins: [\"*\", \"https://a.example:8443\"]}}")));
  EXPECT_THAT(errors_of("telemetry: {traces: {endpoint: collector:4318}}"),
              HasSubstr("write http://localhost:4318"));
  EXPECT_THAT(errors_of("server: {bind: 127.0.0.1:80}"), HasSubstr("did you mean \"listen\"?"));
  EXPECT_THAT(errors_of("telemetry: {log: {level: verbose}}"),
              HasSubstr("must be trace, debug, info, warn or error"));
}

TEST(ServerConfig, TakesPathsFromTheFolderOfTheFile) {
  const auto config = parse(with_routes("server: {listen: unix:w.sock}\nkeys: [{name: a, file: "
                                        "a.key}]\ntelemetry: {waybills: {file: w.jsonl}}"),
                            {.name = "conf/waybill.yaml", .folder = "conf", .read_file = {}});
  ASSERT_TRUE(config) << config.error().text();
  EXPECT_EQ(config->server.listen[0].path, "conf/w.sock");
  EXPECT_EQ(config->keys[0].file, "conf/a.key");
  EXPECT_EQ(config->telemetry.waybills.file, "conf/w.jsonl");
  EXPECT_TRUE(parsed("").telemetry.waybills.file.empty());
}

}  // namespace
}  // namespace waybill::config
