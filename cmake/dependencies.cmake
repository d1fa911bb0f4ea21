# Every dependency is a Debian 12 package; tools/setup lists and installs them.
find_package(Threads REQUIRED)
find_package(Boost 1.81 REQUIRED COMPONENTS json)
find_package(OpenSSL REQUIRED)
find_package(yaml-cpp REQUIRED)
find_package(CLI11 REQUIRED)
find_package(fmt REQUIRED)
find_package(spdlog REQUIRED)  # its target says to use the fmt above
find_package(PkgConfig REQUIRED)
pkg_check_modules(re2 REQUIRED IMPORTED_TARGET re2)
pkg_check_modules(xxhash REQUIRED IMPORTED_TARGET libxxhash)
pkg_check_modules(sqlite3 REQUIRED IMPORTED_TARGET sqlite3)
find_library(CLD2_LIBRARY NAMES cld2 REQUIRED)  # has neither a CMake nor a pkg-config file
find_path(CLD2_INCLUDE_DIR NAMES cld2/public/compact_lang_det.h REQUIRED)
add_library(cld2::cld2 UNKNOWN IMPORTED)
set_target_properties(cld2::cld2 PROPERTIES IMPORTED_LOCATION ${CLD2_LIBRARY} INTERFACE_INCLUDE_DIRECTORIES ${CLD2_INCLUDE_DIR})
if(NOT WAYBILL_SANITIZE)  # a sanitizer brings its own allocator
  find_library(TCMALLOC_LIBRARY NAMES tcmalloc_minimal REQUIRED)
endif()
find_package(Eigen3 3.4 REQUIRED NO_MODULE)
if(WAYBILL_TESTS)
  find_package(GTest REQUIRED)
endif()
