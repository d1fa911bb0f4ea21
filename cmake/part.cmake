# waybill_part(NAME [SOURCES a.cc ...] [PARTS base ...] [LIBRARIES fmt::fmt ...])
#
# One static library for src/NAME. PARTS is the list of parts it may include;
# tests/house_test.py holds the list against the #include lines.
function(waybill_part name)
  cmake_parse_arguments(PART "" "" "SOURCES;PARTS;LIBRARIES" ${ARGN})
  add_library(waybill_${name} STATIC ${PART_SOURCES})
  add_library(waybill::${name} ALIAS waybill_${name})
  target_include_directories(waybill_${name} PUBLIC ${CMAKE_SOURCE_DIR}/src ${CMAKE_SOURCE_DIR}/include)
  foreach(part ${PART_PARTS})
    target_link_libraries(waybill_${name} PUBLIC waybill::${part})
  endforeach()
  target_link_libraries(waybill_${name} PUBLIC ${PART_LIBRARIES})
  if(WAYBILL_FUZZ)
    target_compile_options(waybill_${name} PRIVATE -fsanitize=fuzzer-no-link)  # ahead of what files say for themselves
  endif()
endfunction()

# waybill_test(PART SOURCES a_test.cc ...): the unit tests of one part, one binary
# (each binary is a link; many tests in few binaries keeps the build short).
# waybill_test(PART NAME n SOURCES ...): another binary, n_test, for tests that are run apart.
function(waybill_test part)
  if(NOT WAYBILL_TESTS)
    return()
  endif()
  cmake_parse_arguments(TEST "" "NAME" "SOURCES;LIBRARIES" ${ARGN})
  set(name ${part}_test)
  if(TEST_NAME)
    set(name ${TEST_NAME}_test)
  endif()
  add_executable(${name} ${TEST_SOURCES})
  target_link_libraries(${name} PRIVATE waybill::${part} ${TEST_LIBRARIES} GTest::gmock GTest::gtest_main)
  target_compile_definitions(${name} PRIVATE WAYBILL_SOURCE_DIR="${CMAKE_SOURCE_DIR}")
  add_test(NAME ${name} COMMAND ${name})
endfunction()

# waybill_fuzz(NAME PART SOURCE): a libFuzzer target, and a test that runs its corpus once. With WAYBILL_FUZZ off the
# source becomes a part of fuzz_corpora, which replays files (tests/fuzz/replay.cc).
function(waybill_fuzz name part source)
  if(NOT WAYBILL_TESTS AND NOT WAYBILL_FUZZ)
    return()
  endif()
  set(corpus ${CMAKE_SOURCE_DIR}/tests/fuzz/corpus/${name})
  file(GLOB inputs ${corpus}/*)
  if(NOT inputs)
    message(FATAL_ERROR "${name} has no corpus: put inputs into ${corpus}")
  endif()
  if(WAYBILL_FUZZ)
    add_executable(${name} ${source})
    target_compile_options(${name} PRIVATE -fsanitize=fuzzer-no-link)
    target_link_options(${name} PRIVATE -fsanitize=fuzzer)
    add_test(NAME ${name}_corpus COMMAND ${name} -runs=0 -timeout=60 ${corpus})
    target_link_libraries(${name} PRIVATE waybill::${part})
    return()
  endif()
  if(NOT TARGET fuzz_corpora)
    add_executable(fuzz_corpora ${CMAKE_SOURCE_DIR}/tests/fuzz/replay.cc)
    target_include_directories(fuzz_corpora PRIVATE ${CMAKE_CURRENT_BINARY_DIR})
    file(GENERATE OUTPUT ${CMAKE_CURRENT_BINARY_DIR}/fuzz_targets.inc
         CONTENT "TARGET($<JOIN:$<TARGET_PROPERTY:fuzz_corpora,FUZZ_TARGETS>,)\nTARGET(>)\n")
  endif()
  set_property(TARGET fuzz_corpora APPEND PROPERTY FUZZ_TARGETS ${name})
  set_source_files_properties(${source} PROPERTIES COMPILE_DEFINITIONS LLVMFuzzerTestOneInput=${name})
  target_sources(fuzz_corpora PRIVATE ${source})
  target_link_libraries(fuzz_corpora PRIVATE waybill::${part})
  add_test(NAME ${name}_corpus COMMAND fuzz_corpora ${name} ${corpus})
endfunction()

# waybill_optimised(a.cc ...): files with the loops that tests run a great deal, and all that compute with Eigen (its
# templates are shared by all files that use them, and the linker keeps the slowest as well as any). They are compiled
# with -O1 where everything else is not optimised at all (debug and sanitizers), so that building stays short; not by
# g++, whose tree is never run.
function(waybill_optimised)
  set_property(SOURCE ${ARGN} APPEND PROPERTY COMPILE_OPTIONS
               $<$<AND:$<NOT:$<CONFIG:Release>>,$<CXX_COMPILER_ID:Clang>>:-O1>)
endfunction()
