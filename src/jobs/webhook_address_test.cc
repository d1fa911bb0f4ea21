#include "jobs/webhook_address.h"

#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace waybill::jobs {
namespace {

AddressKind kind(const std::string& text) { return kind_of(boost::asio::ip::make_address(text)); }

TEST(WebhookAddress, PublicOnes) {
  for (const char* text : {"1.1.1.1",          "8.8.8.8",
                           "9.255.255.255",    "11.0.0.0",
                           "100.63.255.255",   "100.128.0.0",
                           "126.255.255.255",  "128.0.0.0",
                           "169.253.255.255",  "169.255.0.0",
                           "172.15.255.255",   "172.32.0.0",
                           "192.0.1.0",        "192.167.255.255",
                           "192.169.0.0",      "198.17.255.255",
                           "198.20.0.0",       "168.63.129.15",
                           "223.255.255.255",  "2606:4700::1111",
                           "2a00:1450::1",     "2001:4860:4860::8888",
                           "2001:200::1",      "::ffff:8.8.8.8",
                           "64:ff9b::808:808", "2002:808:808::1"})
    EXPECT_EQ(kind(text), AddressKind::kPublic) << text;
}

TEST(WebhookAddress, PrivateOnesHoweverTheyAreWritten) {
  for (const char* text : {"10.0.0.0", "10.255.255.255", "172.16.0.0", "172.31.255.255", "192.168.0.0",
                           "192.168.255.255", "127.0.0.1", "127.255.255.255", "100.64.0.0", "100.127.255.255",
                           "::1", "fc00::", "fdff:ffff::1", "::ffff:10.0.0.1", "::ffff:127.0.0.1",
                           "64:ff9b::7f00:1", "64:ff9b::a00:1", "2002:7f00:1::", "2002:c0a8:101::1"})
    EXPECT_EQ(kind(text), AddressKind::kPrivate) << text;
}

TEST(WebhookAddress, ThoseThatNobodyMayCall) {
  for (const char* text : {"0.0.0.0",
                           "0.1.2.3",
                           "169.254.169.254",
                           "169.254.0.1",
                           "100.100.100.200",
                           "168.63.129.16",
                           "192.0.0.192",
                           "192.0.2.1",
                           "198.51.100.1",
                           "203.0.113.1",
                           "198.18.0.1",
                           "198.19.255.255",
                           "192.88.99.1",
                           "224.0.0.1",
                           "239.255.255.255",
                           "240.0.0.1",
                           "255.255.255.255",
                           "::",
                           "::7f00:1",
                           "fe80::1",
                           "fe80::1%1",
                           "febf::1",
                           "fec0::1",
                           "ff02::1",
                           "fd00:ec2::254",
                           "fd20:ce::254",
                           "2001::1",
                           "2001:db8::1",
                           "3fff::1",
                           "4000::1",
                           "100::1",
                           "64:ff9b:1::7f00:1",
                           "::ffff:169.254.169.254",
                           "64:ff9b::a9fe:a9fe",
                           "2002:a9fe:a9fe::1",
                           "::ffff:0:127.0.0.1",
                           "5f00::1"})
    EXPECT_EQ(kind(text), AddressKind::kNever) << text;
}

TEST(WebhookAddress, PrivateOnesMayBeAllowedTheOthersNever) {
  const auto address = [](const char* text) { return boost::asio::ip::make_address(text); };
  EXPECT_TRUE(may_connect(address("8.8.8.8"), false));
  EXPECT_FALSE(may_connect(address("10.0.0.1"), false));
  EXPECT_TRUE(may_connect(address("10.0.0.1"), true));
  EXPECT_FALSE(may_connect(address("169.254.169.254"), true));
}

TEST(WebhookUrl, IsTakenApart) {
  const auto url = parse_webhook_url("https://Hooks.Example.com:8443/a/b?c=d&e=%20");
  ASSERT_TRUE(url.has_value());
  EXPECT_TRUE(url->tls);
  EXPECT_EQ(url->host, "hooks.example.com");
  EXPECT_EQ(url->port, 8443);
  EXPECT_EQ(url->target, "/a/b?c=d&e=%20");
  EXPECT_EQ(parse_webhook_url("http://h")->target, "/");
  EXPECT_EQ(parse_webhook_url("http://h")->port, 80);
  EXPECT_EQ(parse_webhook_url("https://h?q")->target, "/?q");
  EXPECT_TRUE(parse_webhook_url("HTTPS://h/").value().tls);
  EXPECT_FALSE(parse_webhook_url("Http://h/").value().tls);
  EXPECT_EQ(parse_webhook_url("https://[2606:4700::1111]/x")->host, "2606:4700::1111");
}

TEST(WebhookUrl, WhatIsNoneIsRefused) {
  for (const char* text : {"",
                           "hooks.example.com/x",
                           "ftp://h/",
                           "file:///etc/passwd",
                           "gopher://h/",
                           "https://",
                           "https:///x",
                           "https://user:pw@h/",
                           "https://user@h/",
                           "https://h:0/",
                           "https://h:65536/",
                           "https://h:x/",
                           "https://h/a b",
                           "https://h/a\r\nX: y",
                           "https://h/#f",
                           "https://h\\@evil/",
                           "https://h%2e/",
                           "https://[::1",
                           "https://a:b:c/",
                           "https://\xc3\xa4/"})
    EXPECT_FALSE(parse_webhook_url(text).has_value()) << text;
  EXPECT_FALSE(parse_webhook_url("https://h/" + std::string(3000, 'a')).has_value());
}

TEST(WebhookUrl, IsHeldAgainstTheSettings) {
  config::JobWebhooks settings;
  const auto may = [&settings](const char* url) { return check_webhook_url(url, settings).has_value(); };
  EXPECT_FALSE(may("https://hooks.example.com/"));
  settings.secrets = {{.env = "WEBHOOK_SECRET", .file = {}, .position = {}}};
  EXPECT_TRUE(may("https://hooks.example.com/"));
  EXPECT_FALSE(may("http://hooks.example.com/"));
  EXPECT_FALSE(may("https://127.0.0.1/"));
  EXPECT_FALSE(may("https://[::ffff:10.0.0.1]/"));
  settings.allow_http = true;
  EXPECT_TRUE(may("http://hooks.example.com/"));
  settings.allow_private = true;
  EXPECT_TRUE(may("https://127.0.0.1/"));
  EXPECT_FALSE(may("https://169.254.169.254/latest"));
  settings.allow_hosts = {"example.com", "*.Hooks.test"};
  EXPECT_TRUE(may("https://EXAMPLE.com/"));
  EXPECT_TRUE(may("https://example.com./"));
  EXPECT_FALSE(may("https://a.example.com/"));
  EXPECT_TRUE(may("https://a.hooks.test/"));
  EXPECT_TRUE(may("https://a.b.hooks.test/"));
  EXPECT_FALSE(may("https://hooks.test/"));
  EXPECT_FALSE(may("https://evilhooks.test/"));
  EXPECT_FALSE(may("https://127.0.0.1/"));
}

}  // namespace
}  // namespace waybill::jobs
