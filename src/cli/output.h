// Results on stdout.
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"

namespace waybill::cli {

// Buffers what a command prints and knows whether it arrived: a full disk is an error, not a short file.
class Output {
 public:
  explicit Output(int descriptor = 1) : descriptor_(descriptor) {}

  void write(std::string_view text);
  // Sends what is buffered. After a failure everything further is dropped and the failure is returned again.
  [[nodiscard]] Status flush();

 private:
  void send();

  int descriptor_;
  int error_ = 0;  // errno of the first failed write
  std::string buffer_;
};

}  // namespace waybill::cli
