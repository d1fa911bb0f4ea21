#include "http/websocket_frame.h"

#include <algorithm>
#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace waybill::http {
namespace {

using State = FrameReader::State;

// A frame as a client sends it. `length_bytes`: 0 for the shortest way.
std::string frame(unsigned opcode, std::string_view payload, bool last = true, unsigned length_bytes = 0,
                  unsigned reserved = 0) {
  std::string out(1, static_cast<char>((last ? 0x80 : 0) | reserved << 4 | opcode));
  if (length_bytes == 0) length_bytes = payload.size() < 126 ? 1 : payload.size() <= 0xFFFF ? 2 : 8;
  if (length_bytes == 1) {
    out.push_back(static_cast<char>(0x80 | payload.size()));
  } else {
    out.push_back(static_cast<char>(0x80 | (length_bytes == 2 ? 126 : 127)));
    for (unsigned i = length_bytes; i > 0; --i)
      out.push_back(static_cast<char>(payload.size() >> (8 * (i - 1)) & 0xFF));
  }
  const std::string mask = "\x37\xfa\x21\x3d";
  out += mask;
  for (std::size_t i = 0; i < payload.size(); ++i) out.push_back(static_cast<char>(payload[i] ^ mask[i % 4]));
  return out;
}
std::string close_frame(unsigned code, std::string_view reason = {}) {
  return frame(
      8, std::string{static_cast<char>(code >> 8), static_cast<char>(code & 0xFF)} + std::string(reason));
}

// What comes of the bytes, given in pieces: "text:hello", "failed:1002", ...
std::vector<std::string> read(std::string_view bytes, std::size_t step = 1 << 20, std::size_t most = 1000) {
  FrameReader reader(most);
  std::vector<std::string> told;
  std::string held;
  while (!bytes.empty()) {
    held.append(bytes.substr(0, step));
    bytes.remove_prefix(std::min(step, bytes.size()));
    for (;;) {
      std::size_t taken = 0;
      const State state = reader.consume(held, taken);
      held.erase(0, taken);
      if (state == State::kNeedMore) break;
      switch (state) {
        case State::kText:
          told.push_back("text:" + reader.take_payload());
          continue;
        case State::kBinary:
          told.push_back("binary:" + reader.take_payload());
          continue;
        case State::kPing:
          told.push_back("ping:" + reader.take_payload());
          continue;
        case State::kPong:
          told.push_back("pong:" + reader.take_payload());
          continue;
        case State::kClose:
          told.push_back("close:" + std::to_string(reader.code()) + reader.take_payload());
          return told;
        default:
          told.push_back("failed:" + std::to_string(reader.code()));
          return told;
      }
    }
  }
  return told;
}

struct Case {
  const char* name;
  std::string bytes;
  std::vector<std::string> told;
};

const std::vector<Case>& cases() {
  const std::string k125(125, 'a'), k126(126, 'b'), k1000(1000, 'c');
  static const std::vector<Case> all = {
      {"the masked hello of RFC 6455 section 5.7",
       "\x81\x85\x37\xfa\x21\x3d\x7f\x9f\x4d\x51\x58",
       {"text:Hello"}},
      {"an empty text", frame(1, ""), {"text:"}},
      {"lengths at their borders",
       frame(2, k125) + frame(2, k126) + frame(2, k1000),
       {"binary:" + k125, "binary:" + k126, "binary:" + k1000}},
      {"fragments", frame(1, "He", false) + frame(0, "l", false) + frame(0, "lo"), {"text:Hello"}},
      {"empty fragments", frame(1, "", false) + frame(0, "", false) + frame(0, ""), {"text:"}},
      {"a character cut by fragments", frame(1, "\xe2\x82", false) + frame(0, "\xac"), {"text:\xe2\x82\xac"}},
      {"a ping within a message",
       frame(1, "a", false) + frame(9, "x") + frame(0, "b"),
       {"ping:x", "text:ab"}},
      {"a ping with 125 bytes", frame(9, k125), {"ping:" + k125}},
      {"a pong that nobody asked for", frame(10, "p"), {"pong:p"}},
      {"a ping with 126 bytes", frame(9, k126), {"failed:1002"}},
      {"a ping in fragments", frame(9, "x", false), {"failed:1002"}},
      {"a close in fragments", frame(8, "", false), {"failed:1002"}},
      {"reserved bit 1", frame(1, "x", true, 0, 4), {"failed:1002"}},
      {"reserved bit 2", frame(9, "x", true, 0, 2), {"failed:1002"}},
      {"reserved bit 3", frame(8, "", true, 0, 1), {"failed:1002"}},
      {"opcode 3", frame(3, "x"), {"failed:1002"}},
      {"opcode 7", frame(7, "x"), {"failed:1002"}},
      {"opcode 11", frame(11, "x"), {"failed:1002"}},
      {"opcode 15", frame(15, "x"), {"failed:1002"}},
      {"a continuation of nothing", frame(0, "x"), {"failed:1002"}},
      {"a continuation after the end", frame(1, "a") + frame(0, "x"), {"text:a", "failed:1002"}},
      {"a text within a message", frame(1, "a", false) + frame(1, "x"), {"failed:1002"}},
      {"a frame that is not masked", std::string("\x81\x05Hello"), {"failed:1002"}},
      {"16 bits of length for 125", frame(2, k125, true, 2), {"failed:1002"}},
      {"64 bits of length for 126", frame(2, k126, true, 8), {"failed:1002"}},
      {"a length with its highest bit",
       "\x82\xff" + std::string("\x80\0\0\0\0\0\0\1", 8) + "mask",
       {"failed:1002"}},
      {"a message that is too long", frame(2, k1000 + "x"), {"failed:1009"}},
      {"fragments that are too long together", frame(2, k1000, false) + frame(0, "x"), {"failed:1009"}},
      {"a length of 2^62", "\x82\xff" + std::string("\x40\0\0\0\0\0\0\0", 8) + "mask", {"failed:1009"}},
      {"text that is no UTF-8", frame(1, "\xc3\x28"), {"failed:1007"}},
      {"a surrogate", frame(1, "\xed\xa0\x80"), {"failed:1007"}},
      {"beyond Unicode", frame(1, "\xf4\x90\x80\x80"), {"failed:1007"}},
      {"text that ends within a character", frame(1, "\xe2\x82"), {"failed:1007"}},
      {"bytes are no text", frame(2, "\xc3\x28"), {"binary:\xc3\x28"}},
      {"a close without a code", frame(8, ""), {"close:1005"}},
      {"a close with a code", close_frame(1000), {"close:1000"}},
      {"a close with a reason", close_frame(1001, "bye"), {"close:1001bye"}},
      {"nothing is read after a close", close_frame(1000) + frame(1, "x"), {"close:1000"}},
      {"a close with one byte", frame(8, "x"), {"failed:1002"}},
      {"a close whose reason is no UTF-8", close_frame(1000, "\xff"), {"failed:1007"}},
      {"a close within a message", frame(1, "a", false) + close_frame(1000), {"close:1000"}},
  };
  return all;
}

TEST(FrameReader, Cases) {
  for (const Case& each : cases()) EXPECT_EQ(read(each.bytes), each.told) << each.name;
}

TEST(FrameReader, ItDoesNotMatterHowTheBytesAreCut) {
  for (const Case& each : cases()) {
    for (const std::size_t step : {1U, 2U, 3U, 5U, 7U, 64U})
      EXPECT_EQ(read(each.bytes, step), each.told) << each.name;
  }
}

TEST(FrameReader, CodesThatMayBeSent) {
  for (const unsigned code : {1000U, 1001U, 1002U, 1003U, 1007U, 1008U, 1009U, 1010U, 1011U, 1012U, 1013U,
                              1014U, 3000U, 3999U, 4000U, 4999U})
    EXPECT_EQ(read(close_frame(code)), (std::vector<std::string>{"close:" + std::to_string(code)}));
  for (const unsigned code :
       {0U, 999U, 1004U, 1005U, 1006U, 1015U, 1016U, 1100U, 2000U, 2999U, 5000U, 65535U})
    EXPECT_EQ(read(close_frame(code)), (std::vector<std::string>{"failed:1002"})) << code;
}

TEST(FrameReader, HoldsNoMoreThanAMessageWhateverIsAnnounced) {
  FrameReader reader(1000);
  std::size_t taken = 0;
  const std::string bytes = frame(2, std::string(900, 'x'), false) + frame(0, std::string(101, 'x'));
  EXPECT_EQ(reader.consume(bytes, taken), State::kFailed);
  EXPECT_EQ(reader.code(), close_code::kTooBig);
}

TEST(AppendFrame, AsRfc6455HasThem) {
  std::string out;
  append_frame(Opcode::kText, "Hello", out);
  EXPECT_EQ(out, "\x81\x05Hello");
  out.clear();
  append_frame(Opcode::kBinary, std::string(256, 'x'), out);
  EXPECT_EQ(out.substr(0, 4), std::string("\x82\x7e\x01\x00", 4));
  out.clear();
  append_frame(Opcode::kBinary, std::string(65536, 'x'), out);
  EXPECT_EQ(out.substr(0, 10), std::string("\x82\x7f\0\0\0\0\0\1\0\0", 10));
  out.clear();
  append_close(1001, std::string(200, 'r'), out);
  EXPECT_EQ(out.size(), 127U);
  EXPECT_EQ(out.substr(0, 4), std::string("\x88\x7d\x03\xe9", 4));
  out.clear();
  append_close(close_code::kNone, {}, out);
  EXPECT_EQ(out, std::string("\x88\0", 2));
}

TEST(Upgrade, TheKeyOfRfc6455) {
  EXPECT_EQ(accept_key("dGhlIHNhbXBsZSBub25jZQ=="), "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=");
}

TEST(Upgrade, Tokens) {
  EXPECT_TRUE(has_token("keep-alive, Upgrade", "upgrade"));
  EXPECT_TRUE(has_token("UPGRADE", "upgrade"));
  EXPECT_TRUE(has_token("a,\t upgrade ,b", "upgrade"));
  EXPECT_FALSE(has_token("upgraded", "upgrade"));
  EXPECT_FALSE(has_token("up, grade", "upgrade"));
  EXPECT_FALSE(has_token("", "upgrade"));
}

}  // namespace
}  // namespace waybill::http
