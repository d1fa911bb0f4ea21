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

# waybill_fuzz(NAME PART SOURCE): a libFuzzer target; with WAYBILL_FUZZ off the same
# source is linked with a driver that replays files, so that the corpus is always run.
function(waybill_fuzz name part source)
  if(NOT WAYBILL_TESTS AND NOT WAYBILL_FUZZ)
    return()
  endif()
  if(WAYBILL_FUZZ)
    add_executable(${name} ${source})
    target_link_options(${name} PRIVATE -fsanitize=fuzzer)
  else()
    add_executable(${name} ${source} ${CMAKE_SOURCE_DIR}/tests/fuzz/replay.cc)
    add_test(NAME ${name}_corpus COMMAND ${name} ${CMAKE_SOURCE_DIR}/tests/fuzz/corpus/${name})
  endif()
  target_link_libraries(${name} PRIVATE waybill::${part})
endfunction()
