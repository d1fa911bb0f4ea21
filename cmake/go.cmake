# waybill_go(NAME FOLDER): the Go program in FOLDER, standard library only, as go/NAME in the build tree. Go 1.19, which
# Debian 12 has, or newer.
find_program(WAYBILL_GO NAMES go PATHS /usr/local/go/bin)
function(waybill_go name folder)
  if(NOT WAYBILL_GO)
    message(FATAL_ERROR "the program `go` is missing; tools/setup installs it (Debian package golang-go)")
  endif()
  set(source ${CMAKE_CURRENT_SOURCE_DIR}/${folder})
  set(program ${CMAKE_BINARY_DIR}/go/${name})
  file(GLOB sources CONFIGURE_DEPENDS ${source}/*.go)
  add_custom_command(
    OUTPUT ${program}
    COMMAND ${CMAKE_COMMAND} -E env CGO_ENABLED=0 GOTOOLCHAIN=local GOFLAGS=-buildvcs=false
            ${WAYBILL_GO} build -trimpath -o ${program} .
    DEPENDS ${sources} ${source}/go.mod
    WORKING_DIRECTORY ${source}
    COMMENT "Building Go program ${name}"
    VERBATIM)
  add_custom_target(${name} ALL DEPENDS ${program})
endfunction()
