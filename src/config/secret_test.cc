#include "config/secret.h"

#include <cstdlib>
#include <filesystem>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "base/file.h"

namespace waybill::config {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

class Secret : public testing::Test {
 protected:
  ~Secret() override {
    std::filesystem::remove(file_);
    ::unsetenv("WAYBILL_SECRET_TEST");
  }
  Result<std::string> of_variable(const char* value) {
    ::setenv("WAYBILL_SECRET_TEST", value, 1);
    return read_secret({.env = "WAYBILL_SECRET_TEST", .file = {}, .position = {}}, "keys[0]");
  }
  Result<std::string> of_file(std::string_view text) {
    EXPECT_TRUE(write_file_atomically(file_, text));
    return read_secret({.env = {}, .file = file_, .position = {}}, "keys[0]");
  }
  std::filesystem::path file_ =
      std::filesystem::temp_directory_path() / ("waybill_secret_test." + std::to_string(::getpid()));
};

TEST_F(Secret, IsWhatTheVariableHolds) {
  EXPECT_EQ(of_variable(" sk-1 \n").value_or("-"), "sk-1");
  ::unsetenv("WAYBILL_SECRET_TEST");
  const auto missing = read_secret({.env = "WAYBILL_SECRET_TEST", .file = {}, .position = {}}, "keys[0]");
  ASSERT_FALSE(missing);
  EXPECT_EQ(missing.error().code, ErrorCode::kNotFound);
  EXPECT_EQ(missing.error().field, "keys[0].env");
  EXPECT_THAT(missing.error().message, HasSubstr("WAYBILL_SECRET_TEST is not set"));
}

TEST_F(Secret, IsTheFirstLineOfTheFile) {
  EXPECT_EQ(of_file("sk-1\n# of the batch account\n").value_or("-"), "sk-1");
  EXPECT_EQ(of_file("sk-1\r\n").value_or("-"), "sk-1");
  EXPECT_EQ(of_file("sk-1").value_or("-"), "sk-1");
  std::filesystem::remove(file_);
  const auto missing = read_secret({.env = {}, .file = file_, .position = {}}, "keys[0]");
  ASSERT_FALSE(missing);
  EXPECT_EQ(missing.error().field, "keys[0].file");
  EXPECT_THAT(missing.error().message, HasSubstr(file_.string()));
}

TEST_F(Secret, MustFitIntoAHeaderAndIsNotTold) {
  EXPECT_THAT(of_variable(" \n").error().message, HasSubstr("is empty"));
  EXPECT_THAT(of_file("\nsk-1\n").error().message, HasSubstr("is empty"));
  EXPECT_THAT(of_variable("sk-1\r\nx: y").error().message,
              AllOf(HasSubstr("a line break or a control character"), Not(HasSubstr("sk-1"))));
  EXPECT_THAT(of_file("sk\t1").error().message,
              AllOf(HasSubstr("control character"), HasSubstr("The first line of")));
  const std::string most(kMostSecretBytes, 'x');
  EXPECT_EQ(of_variable(most.c_str()).value_or("-"), most);
  EXPECT_THAT(of_variable((most + "x").c_str()).error().message, HasSubstr("holds 4097 bytes"));
  EXPECT_FALSE(of_file(most + "x"));
}

}  // namespace
}  // namespace waybill::config
