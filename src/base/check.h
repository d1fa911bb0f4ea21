// WAYBILL_CHECK: an assertion that stays on in release. It marks our own bugs; no input may trigger one.
#pragma once

namespace waybill {

[[noreturn]] void check_failed(const char* condition, const char* file, int line) noexcept;

}  // namespace waybill

#define WAYBILL_CHECK(condition)                     \
  (__builtin_expect(static_cast<bool>(condition), 1) \
       ? void()                                      \
       : ::waybill::check_failed(#condition, __FILE__, __LINE__))
