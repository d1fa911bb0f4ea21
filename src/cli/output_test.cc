#include "cli/output.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

namespace waybill::cli {
namespace {

TEST(Output, AFullDiskIsAnErrorAndStaysOne) {
  const int full = ::open("/dev/full", O_WRONLY);
  ASSERT_GE(full, 0);
  Output output(full);
  output.write("x");
  const Status flushed = output.flush();
  ASSERT_FALSE(flushed);
  EXPECT_EQ(flushed.error().code, ErrorCode::kIo);
  EXPECT_NE(flushed.error().message.find("No space left"), std::string::npos);
  output.write("y");
  EXPECT_FALSE(output.flush());
  ::close(full);
}

}  // namespace
}  // namespace waybill::cli
