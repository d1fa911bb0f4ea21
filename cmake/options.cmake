# How everything is compiled. One set of flags for all parts, so that objects,
# precompiled headers and ccache entries are shared.
set(CMAKE_CXX_STANDARD 23)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)

option(WAYBILL_TESTS "Build the tests" ON)
option(WAYBILL_FUZZ "Build the fuzz targets with libFuzzer (clang only)" OFF)
option(WAYBILL_LTO "Link-time optimisation" OFF)
set(WAYBILL_SANITIZE "" CACHE STRING "Sanitizers, as -fsanitize= takes them")

# The program needs AVX2 and FMA (src/base/cpu_check.cc says so on a CPU without
# them); the kernels in src/embed/kernels are compiled again for more.
add_compile_options(-march=x86-64-v3 -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wsign-conversion
                    -Wnon-virtual-dtor -Woverloaded-virtual -Werror -fno-omit-frame-pointer)
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  # g++ 12 reports these inside libstdc++ and Boost at -O3.
  add_compile_options(-Wno-error=restrict -Wno-error=maybe-uninitialized -Wno-error=array-bounds
                      -Wno-error=stringop-overflow -Wno-psabi)
endif()
set(CMAKE_CXX_FLAGS_RELEASE "-O3 -g1")
set(CMAKE_CXX_FLAGS_DEBUG "-O0 -g")

if(WAYBILL_SANITIZE)
  add_compile_options(-fsanitize=${WAYBILL_SANITIZE} -fno-sanitize-recover=all)
  add_link_options(-fsanitize=${WAYBILL_SANITIZE})
endif()
if(WAYBILL_LTO)
  if(CMAKE_CXX_COMPILER_ID MATCHES "Clang")
    add_compile_options(-flto=thin)
    add_link_options(-flto=thin -Wl,--thinlto-cache-dir=${CMAKE_BINARY_DIR}/thinlto-cache)
  else()
    add_compile_options(-flto=auto -fno-fat-lto-objects)
    add_link_options(-flto=auto)
  endif()
endif()

# lld links ThinLTO objects, mold everything else.
if(CMAKE_CXX_COMPILER_ID MATCHES "Clang" AND WAYBILL_LTO)
  find_program(WAYBILL_LLD NAMES ld.lld-19)
  if(WAYBILL_LLD)
    add_link_options(--ld-path=${WAYBILL_LLD})
  endif()
else()
  find_program(WAYBILL_MOLD NAMES mold)
  if(WAYBILL_MOLD AND NOT WAYBILL_LTO)
    add_link_options(-fuse-ld=mold)
  endif()
endif()
find_program(WAYBILL_CCACHE NAMES ccache)
if(WAYBILL_CCACHE)
  set(CMAKE_CXX_COMPILER_LAUNCHER ${WAYBILL_CCACHE})
endif()
