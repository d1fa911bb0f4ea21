#include "embed/safetensors.h"

#include <cstdint>
#include <cstring>
#include <limits>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "embed/test_model.h"

namespace waybill::embed {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::safetensors_file;
using testing::safetensors_of;

Result<Safetensors> parse(const std::string& bytes) {
  return Safetensors::parse(std::as_bytes(std::span(bytes)), "model.safetensors");
}

// Parses a file that must be refused, and returns the sentence.
std::string refusal(const std::string& bytes, ErrorCode code = ErrorCode::kCorrupt) {
  const auto file = parse(bytes);
  if (file) return "(accepted)";
  EXPECT_EQ(file.error().code, code) << file.error().message;
  EXPECT_THAT(file.error().message, HasSubstr("model.safetensors"));
  return file.error().message;
}

std::vector<float> values(const Tensor& tensor) {
  std::vector<float> out(tensor.elements());
  tensor.copy_to(out);
  return out;
}

TEST(SafetensorsTest, TensorsReadBackByNameAndShape) {
  const std::string bytes = safetensors_of({{"a", {2, 3}}, {"b", {2}}});
  const auto file = parse(bytes);
  ASSERT_TRUE(file) << file.error().message;
  EXPECT_EQ(file->size(), 2U);
  EXPECT_TRUE(file->contains("b"));
  const std::size_t shape[] = {2};
  EXPECT_THAT(values(file->tensor("b", shape).value()), ElementsAre(6.0F / 64, 7.0F / 64));
  EXPECT_EQ(file->tensor("c", shape).error().code, ErrorCode::kNotFound);
  EXPECT_THAT(file->tensor("c", shape).error().message, HasSubstr("\"c\""));
  EXPECT_EQ(file->tensor("a", shape).error().code, ErrorCode::kCorrupt);
  EXPECT_THAT(file->tensor("a", shape).error().message, HasSubstr("[2, 3]"));
}

TEST(SafetensorsTest, HalfPrecisionNumbersConvertExactlyAtAnyAlignment) {
  const std::uint16_t halves[] = {0x3C00, 0xC000, 0x0001,
                                  0x7BFF, 0x3F80, 0xC040};  // three bytes of header padding misalign them
  const std::string data(reinterpret_cast<const char*>(halves), sizeof halves);
  const std::string bytes = safetensors_file(R"({"h":{"dtype":"F16","shape":[4],"data_offsets":[0,8]},)"
                                             R"("b":{"dtype":"BF16","shape":[2],"data_offsets":[8,12]}}   )",
                                             data);
  const auto file = parse(bytes);
  ASSERT_TRUE(file) << file.error().message;
  const std::size_t four[] = {4};
  const std::size_t two[] = {2};
  EXPECT_THAT(values(file->tensor("h", four).value()), ElementsAre(1.0F, -2.0F, 0x1p-24F, 65504.0F));
  EXPECT_THAT(values(file->tensor("b", two).value()), ElementsAre(1.0F, -3.0F));
}

TEST(SafetensorsTest, OtherElementTypesMayBeThereButAreNotRead) {
  const std::string bytes =
      safetensors_file(R"({"ids":{"dtype":"I64","shape":[1],"data_offsets":[0,8]}})", std::string(8, '\0'));
  const auto file = parse(bytes);
  ASSERT_TRUE(file) << file.error().message;
  const std::size_t shape[] = {1};
  EXPECT_EQ(file->tensor("ids", shape).error().code, ErrorCode::kUnsupported);
  EXPECT_THAT(refusal(safetensors_file(R"({"a":{"dtype":"F4","shape":[2],"data_offsets":[0,1]}})", "x"),
                      ErrorCode::kUnsupported),
              HasSubstr("\"F4\""));
}

TEST(SafetensorsTest, EveryTruncationIsRefused) {
  const std::string bytes = safetensors_of({{"a", {2, 3}}, {"b", {2}}});
  for (std::size_t n = 0; n < bytes.size(); ++n)
    EXPECT_NE(refusal(bytes.substr(0, n)), "(accepted)") << n << " bytes";
  EXPECT_THAT(refusal(bytes.substr(0, bytes.size() - 1)), HasSubstr("truncated"));
  EXPECT_THAT(refusal(bytes + "x"), HasSubstr("1 bytes follow"));
}

TEST(SafetensorsTest, LiesInTheHeaderAreRefused) {
  const auto file = [](std::string_view header) { return safetensors_file(header, std::string(16, '\0')); };
  EXPECT_THAT(refusal(file(R"({"a":{"dtype":"F32","shape":[8],"data_offsets":[0,32]}})")),
              HasSubstr("truncated"));
  EXPECT_THAT(refusal(file(R"({"a":{"dtype":"F32","shape":[3],"data_offsets":[0,16]}})")),
              HasSubstr("shape [3]"));
  EXPECT_THAT(refusal(file(R"({"a":{"dtype":"F32","shape":[4],"data_offsets":[16,0]}})")),
              HasSubstr("lower first"));
  EXPECT_THAT(refusal(file(R"({"a":{"dtype":"F32","shape":[4],"data_offsets":[-1,16]}})")),
              HasSubstr("data_offsets"));
  EXPECT_THAT(refusal(file(R"({"a":{"dtype":"F32","shape":[4],"data_offsets":[0,16,1]}})")),
              HasSubstr("data_offsets"));
  EXPECT_THAT(refusal(file(R"({"a":{"dtype":"F32","shape":[-4],"data_offsets":[0,16]}})")),
              HasSubstr("whole numbers"));
  EXPECT_THAT(refusal(file(R"({"a":{"dtype":"F32","shape":[4.5],"data_offsets":[0,16]}})")),
              HasSubstr("whole numbers"));
  EXPECT_THAT(refusal(file(R"({"a":{"dtype":"F32","shape":[4]}})")), HasSubstr("lacks"));
  EXPECT_THAT(refusal(file(R"({"a":7})")), HasSubstr("lacks"));
  EXPECT_THAT(refusal(file(R"([1])")), HasSubstr("object"));
  EXPECT_THAT(refusal(file(R"({"a")")), HasSubstr("JSON"));
  // 2^62 elements of 4 bytes are 0 modulo 2^64.
  EXPECT_THAT(refusal(file(R"({"a":{"dtype":"F32","shape":[4611686018427387904],"data_offsets":[0,0]}})")),
              HasSubstr("shape"));
}

TEST(SafetensorsTest, OverlapsHolesAndRepeatedNamesAreRefused) {
  const auto two = [](std::string_view names, int begin, int end) {
    return safetensors_file(fmt::format(R"({{"{}":{{"dtype":"F32","shape":[2],"data_offsets":[0,8]}},)"
                                        R"("{}":{{"dtype":"U8","shape":[{}],"data_offsets":[{},{}]}}}})",
                                        names.substr(0, 1), names.substr(1), end - begin, begin, end),
                            std::string(16, '\0'));
  };
  EXPECT_EQ(refusal(two("ab", 8, 16)), "(accepted)");
  EXPECT_THAT(refusal(two("ab", 7, 16)), HasSubstr("overlaps"));
  EXPECT_THAT(refusal(two("ab", 9, 16)), HasSubstr("hole"));
  EXPECT_THAT(refusal(two("aa", 8, 16)), HasSubstr("twice"));
}

TEST(SafetensorsTest, HeaderLengthsBeyondTheFileAreRefused) {
  std::string bytes = safetensors_of({{"a", {1}}});
  for (const std::uint64_t length : {std::numeric_limits<std::uint64_t>::max(), std::uint64_t{1} << 63,
                                     std::uint64_t{100'000'001}, std::uint64_t{bytes.size() - 7}}) {
    std::memcpy(bytes.data(), &length, sizeof length);
    EXPECT_THAT(refusal(bytes), HasSubstr("header should have"));
  }
}

}  // namespace
}  // namespace waybill::embed
