# Everything that is installed: the program with its manual pages and completions, and the library as one archive
# with a CMake package and a pkg-config file. Two Debian packages are made of it: waybill and libwaybill-dev.
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

if(WAYBILL_FUZZ)
  return()
endif()

# --- the program -----------------------------------------------------------------------------------------------
install(TARGETS waybill RUNTIME COMPONENT program)
foreach(tool fetch-model)
  install(PROGRAMS ${CMAKE_SOURCE_DIR}/tools/${tool} DESTINATION ${CMAKE_INSTALL_DATADIR}/waybill COMPONENT program)
endforeach()
install(FILES ${CMAKE_SOURCE_DIR}/LICENSE DESTINATION ${CMAKE_INSTALL_DOCDIR} RENAME copyright COMPONENT program)

# Manual pages and completions are printed by the program itself, so that they cannot differ from it.
set(documents ${CMAKE_BINARY_DIR}/documents)
add_custom_command(
  OUTPUT ${documents}/stamp
  COMMAND ${CMAKE_COMMAND} -E rm -rf ${documents}
  COMMAND ${CMAKE_COMMAND} -E make_directory ${documents}
  COMMAND waybill man --output ${documents}/man
  COMMAND waybill completion bash > ${documents}/waybill.bash
  COMMAND waybill completion zsh > ${documents}/_waybill
  COMMAND waybill completion fish > ${documents}/waybill.fish
  COMMAND ${CMAKE_COMMAND} -E touch ${documents}/stamp
  DEPENDS waybill
  COMMENT "Manual pages and completions"
  VERBATIM)
add_custom_target(waybill_documents ALL DEPENDS ${documents}/stamp)
install(DIRECTORY ${documents}/man/ DESTINATION ${CMAKE_INSTALL_MANDIR}/man1 COMPONENT program)
install(FILES ${documents}/waybill.bash DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions
        RENAME waybill COMPONENT program)
install(FILES ${documents}/_waybill DESTINATION ${CMAKE_INSTALL_DATADIR}/zsh/site-functions COMPONENT program)
install(FILES ${documents}/waybill.fish DESTINATION ${CMAKE_INSTALL_DATADIR}/fish/vendor_completions.d
        COMPONENT program)

# --- the library -----------------------------------------------------------------------------------------------
set(library_objects)
foreach(part base config embed route library)
  list(APPEND library_objects $<TARGET_OBJECTS:waybill_${part}>)
endforeach()
if(WAYBILL_LTO)
  # The objects are the compiler's intermediate form, which only this compiler's linker reads. One link without
  # output to an executable (-r) turns them into machine code for everybody's linker.
  set(merged ${CMAKE_BINARY_DIR}/waybill.o)
  set(link_flags)
  if(CMAKE_CXX_COMPILER_ID MATCHES "Clang" AND WAYBILL_LLD)
    set(link_flags -flto=thin --ld-path=${WAYBILL_LLD} -Wl,--thinlto-cache-dir=${CMAKE_BINARY_DIR}/thinlto-cache)
  endif()
  add_custom_command(
    OUTPUT ${merged}
    COMMAND ${CMAKE_CXX_COMPILER} -r -nostdlib -O3 -march=x86-64-v3 ${link_flags} -o ${merged} ${library_objects}
    DEPENDS ${library_objects} waybill_base waybill_config waybill_embed waybill_route waybill_library
    COMMENT "Merging the library"
    COMMAND_EXPAND_LISTS VERBATIM)
  set(library_objects ${merged})
  set_source_files_properties(${merged} PROPERTIES EXTERNAL_OBJECT TRUE GENERATED TRUE)
endif()
add_library(waybill_archive STATIC ${library_objects})
set_target_properties(waybill_archive PROPERTIES OUTPUT_NAME waybill LINKER_LANGUAGE CXX)

set(package_folder ${CMAKE_INSTALL_LIBDIR}/cmake/waybill)
install(TARGETS waybill_archive ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT library)
install(DIRECTORY ${CMAKE_SOURCE_DIR}/include/waybill DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} COMPONENT library)
install(DIRECTORY ${CMAKE_SOURCE_DIR}/examples DESTINATION ${CMAKE_INSTALL_DOCDIR} COMPONENT library)
configure_package_config_file(${CMAKE_SOURCE_DIR}/cmake/waybillConfig.cmake.in
  ${CMAKE_BINARY_DIR}/waybillConfig.cmake INSTALL_DESTINATION ${package_folder}
  PATH_VARS CMAKE_INSTALL_INCLUDEDIR CMAKE_INSTALL_LIBDIR)
write_basic_package_version_file(${CMAKE_BINARY_DIR}/waybillConfigVersion.cmake COMPATIBILITY SameMinorVersion)
configure_file(${CMAKE_SOURCE_DIR}/cmake/waybill.pc.in ${CMAKE_BINARY_DIR}/waybill.pc @ONLY)
install(FILES ${CMAKE_BINARY_DIR}/waybillConfig.cmake ${CMAKE_BINARY_DIR}/waybillConfigVersion.cmake
        DESTINATION ${package_folder} COMPONENT library)
install(FILES ${CMAKE_BINARY_DIR}/waybill.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig COMPONENT library)

# --- Debian packages -------------------------------------------------------------------------------------------
set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_NAME waybill)
set(CPACK_PACKAGE_CONTACT "Waybill maintainers <maintainers@waybill.invalid>")
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_STRIP_FILES ON)
set(CPACK_COMPONENTS_ALL program library)
set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PROGRAM_PACKAGE_NAME waybill)
set(CPACK_DEBIAN_PROGRAM_PACKAGE_SECTION net)
set(CPACK_DEBIAN_PROGRAM_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PROGRAM_PACKAGE_RECOMMENDS "python3-pip")
set(CPACK_COMPONENT_PROGRAM_DESCRIPTION
    "Decides which model a prompt should go to, with a sentence encoder that runs in its own process")
set(CPACK_DEBIAN_LIBRARY_PACKAGE_NAME libwaybill-dev)
set(CPACK_DEBIAN_LIBRARY_PACKAGE_SECTION libdevel)
set(CPACK_DEBIAN_LIBRARY_PACKAGE_DEPENDS
    "libboost-json1.81-dev, libyaml-cpp-dev, libfmt-dev, libre2-dev, libssl-dev, libxxhash-dev, libcld2-dev, pkg-config")
set(CPACK_COMPONENT_LIBRARY_DESCRIPTION "Route decisions in your own process: the C++ library of Waybill")
include(CPack)
