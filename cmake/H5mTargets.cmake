# Functions that every room's CMakeLists.txt is written with.

include(GoogleTest)

# The release preset runs whole programs; its unit tests are built only when asked for by name.
option(H5MIRROR_UNIT_TESTS "Build unit tests with everything else" ON)

# The programs of the unit tests: all that the presets dev and tsan build.
add_custom_target(h5m_unit_tests)

# What all our own targets have in common. `test`: TRUE for those with GoogleTest.
function(_h5m_common name test)
  cmake_parse_arguments(arg "GRPC_PCH;CLI_PCH" "" "SOURCES;DEPS" ${ARGN})
  target_link_libraries(${name} PRIVATE h5m_flags)
  if(NOT arg_SOURCES MATCHES "\\.cc")
    return()   # C
  endif()
  if(arg_CLI_PCH)
    h5m_use_precompiled(${name} CLI)
    h5m_do_not_optimise_cli(${name})
  elseif(arg_GRPC_PCH AND test)
    h5m_use_precompiled(${name} GRPC_GTEST)
  elseif(arg_GRPC_PCH)
    h5m_use_precompiled(${name} GRPC)
  elseif(test)
    h5m_use_precompiled(${name} GTEST)
  else()
    h5m_use_precompiled(${name} STD)
  endif()
endfunction()

# h5m_library(NAME SOURCES... [DEPS...] [GRPC_PCH | CLI_PCH])
#
# A static, position-independent library with hidden symbols. DEPS are public. GRPC_PCH and CLI_PCH
# are for sources that include gRPC or a generated header, or CLI11 too (H5mPrecompiled.cmake).
function(h5m_library name)
  cmake_parse_arguments(arg "GRPC_PCH;CLI_PCH" "" "SOURCES;DEPS" ${ARGN})
  if(arg_SOURCES)
    add_library(${name} STATIC ${arg_SOURCES})
    target_include_directories(${name} PUBLIC "${PROJECT_SOURCE_DIR}")
    target_link_libraries(${name} PUBLIC ${arg_DEPS})
    _h5m_common(${name} FALSE ${ARGN})
  else()
    add_library(${name} INTERFACE)
    target_include_directories(${name} INTERFACE "${PROJECT_SOURCE_DIR}")
    target_link_libraries(${name} INTERFACE ${arg_DEPS})
  endif()
endfunction()

# h5m_executable(NAME SOURCES... [DEPS...] [GRPC_PCH] [INSTALL])
#
# A program in build/<preset>/bin; INSTALL puts it into ${CMAKE_INSTALL_BINDIR} too.
function(h5m_executable name)
  cmake_parse_arguments(arg "GRPC_PCH;CLI_PCH;INSTALL" "" "SOURCES;DEPS" ${ARGN})
  add_executable(${name} ${arg_SOURCES} ${h5m_sanitizer_sources})
  target_link_libraries(${name} PRIVATE ${arg_DEPS})
  _h5m_common(${name} FALSE ${ARGN})
  if(arg_INSTALL)
    install(TARGETS ${name} RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
  endif()
endfunction()

# h5m_test(NAME SOURCES... [DEPS...] [LABEL l] [TIMEOUT seconds] [COST n] [ENVIRONMENT k=v...] [GRPC_PCH] [NO_MAIN])
#
# A GoogleTest program. LABEL is `unit` (the dev and tsan presets run it) or one of e2e, compat,
# crash, sim (release). Each suite is a ctest of its own, "NAME.Suite", which may take 300 s. With
# LABEL or TIMEOUT the tests are long ones, and each is a ctest, "NAME.Suite.Test", of TIMEOUT or 60 s.
# With a COST they begin before those that have less. NO_MAIN leaves main() to the sources.
function(h5m_test name)
  cmake_parse_arguments(arg "GRPC_PCH;NO_MAIN" "LABEL;TIMEOUT;COST" "SOURCES;DEPS;ENVIRONMENT" ${ARGN})
  if(NOT BUILD_TESTING)
    return()
  endif()
  set(by_suite TRUE)
  if(arg_LABEL OR arg_TIMEOUT)
    set(by_suite FALSE)
  endif()
  if(NOT arg_LABEL)
    set(arg_LABEL unit)
  endif()
  if(NOT arg_TIMEOUT)
    set(arg_TIMEOUT 60)
  endif()
  if(NOT arg_COST)
    set(arg_COST 0)
  endif()
  add_executable(${name} ${arg_SOURCES} ${h5m_sanitizer_sources})
  if(arg_LABEL STREQUAL "unit")
    add_dependencies(h5m_unit_tests ${name})
  endif()
  if(arg_LABEL STREQUAL "unit" AND NOT H5MIRROR_UNIT_TESTS)
    set_target_properties(${name} PROPERTIES EXCLUDE_FROM_ALL TRUE)
  endif()
  target_link_libraries(${name} PRIVATE ${arg_DEPS} h5m_base_testing GTest::gmock)
  if(arg_NO_MAIN)
    target_link_libraries(${name} PRIVATE GTest::gtest)
  else()
    target_link_libraries(${name} PRIVATE GTest::gtest_main)
  endif()
  set_target_properties(${name} PROPERTIES
    RUNTIME_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/test_bin")
  _h5m_common(${name} TRUE ${ARGN})
  set(script "${CMAKE_CURRENT_BINARY_DIR}/${name}_environment.cmake")
  if(by_suite)
    file(WRITE "${script}.in"
      "include([==[${PROJECT_SOURCE_DIR}/cmake/discover_suites.cmake]==])\n"
      "h5m_add_suites(${name} [==[$<TARGET_FILE:${name}>]==] [==[${script}.list]==]\n"
      "  [==[${H5M_TEST_ENVIRONMENT};${arg_ENVIRONMENT}]==])\n")
  else()
    gtest_discover_tests(${name} TEST_PREFIX "${name}." TEST_LIST ${name}_tests
      DISCOVERY_MODE PRE_TEST DISCOVERY_TIMEOUT 60
      PROPERTIES LABELS ${arg_LABEL} TIMEOUT ${arg_TIMEOUT} COST ${arg_COST})
    # gtest_discover_tests splits a list that is one property's value, so the environment follows in
    # a file of its own, which ctest reads after the tests are known.
    file(WRITE "${script}.in"
      "if(${name}_tests)\n"
      "  set_tests_properties(\${${name}_tests} PROPERTIES ENVIRONMENT\n"
      "    [==[${H5M_TEST_ENVIRONMENT};${arg_ENVIRONMENT}]==])\n"
      "endif()\n")
  endif()
  file(GENERATE OUTPUT "${script}" INPUT "${script}.in")   # For generator expressions in it.
  set_property(DIRECTORY APPEND PROPERTY TEST_INCLUDE_FILES "${script}")
endfunction()

# h5m_script_test(NAME COMMAND... [LABEL l] [TIMEOUT seconds] [ENVIRONMENT k=v...] [WIDE | SERIAL])
#
# A test that is a command: exit 0 passes, 77 is "skipped" with its reason on the last line. Those that may take longest
# begin first, or one of them would run alone at the end. WIDE is for many processes or threads: one such test runs at a
# time, beside others that mostly wait. These come before all others: ctest begins one only where two places are free,
# which is the case when the one before ends, and otherwise at the end of the run only, when nothing is left to run
# beside them. SERIAL is for one that measures: nothing runs beside it.
function(h5m_script_test name)
  cmake_parse_arguments(arg "WIDE;SERIAL" "LABEL;TIMEOUT" "COMMAND;ENVIRONMENT" ${ARGN})
  if(NOT BUILD_TESTING)
    return()
  endif()
  if(NOT arg_LABEL)
    set(arg_LABEL unit)
  endif()
  if(NOT arg_TIMEOUT)
    set(arg_TIMEOUT 120)
  endif()
  add_test(NAME ${name} COMMAND ${arg_COMMAND})
  list(GET arg_COMMAND 0 program)
  if(arg_LABEL STREQUAL "unit" AND TARGET "${program}")
    add_dependencies(h5m_unit_tests "${program}")
  endif()
  set_tests_properties(${name} PROPERTIES
    LABELS ${arg_LABEL} TIMEOUT ${arg_TIMEOUT} COST ${arg_TIMEOUT} SKIP_RETURN_CODE 77
    ENVIRONMENT "${H5M_TEST_ENVIRONMENT};${arg_ENVIRONMENT}")
  if(arg_WIDE)
    math(EXPR cost "100000 + ${arg_TIMEOUT}")
    set_tests_properties(${name} PROPERTIES PROCESSORS 2 RESOURCE_LOCK wide COST ${cost})
  endif()
  if(arg_SERIAL)
    set_tests_properties(${name} PROPERTIES RUN_SERIAL TRUE)
  endif()
endfunction()

# h5m_proto_library(NAME [PROTOS h5mirror/v1/a.proto...])
#
# The generated protobuf and gRPC code of every proto/h5mirror/v1/*.proto (or of PROTOS, paths below
# proto/), in one static library. Include it as "h5mirror/v1/types.pb.h". Called from proto/.
function(h5m_proto_library name)
  cmake_parse_arguments(arg "" "" "PROTOS" ${ARGN})
  set(root "${PROJECT_SOURCE_DIR}/proto")
  if(NOT arg_PROTOS)
    file(GLOB arg_PROTOS CONFIGURE_DEPENDS RELATIVE "${root}" "${root}/h5mirror/v1/*.proto")
  endif()
  set(out "${PROJECT_BINARY_DIR}/generated")
  file(MAKE_DIRECTORY "${out}")
  set(sources "")
  foreach(proto IN LISTS arg_PROTOS)
    string(REGEX REPLACE "\\.proto$" "" stem "${proto}")
    set(outputs "${out}/${stem}.pb.cc" "${out}/${stem}.pb.h" "${out}/${stem}.grpc.pb.cc"
                "${out}/${stem}.grpc.pb.h")
    list(TRANSFORM arg_PROTOS PREPEND "${root}/" OUTPUT_VARIABLE inputs)
    add_custom_command(
      OUTPUT ${outputs}
      COMMAND protobuf::protoc "--proto_path=${root}" "--cpp_out=${out}" "--grpc_out=${out}"
              "--plugin=protoc-gen-grpc=${H5MIRROR_GRPC_CPP_PLUGIN}" "${root}/${proto}"
      DEPENDS ${inputs} COMMENT "Generating ${stem}.pb and .grpc.pb" VERBATIM)
    list(APPEND sources ${outputs})
  endforeach()
  # The sources without compiling them: for clang-tidy, and for IDEs.
  add_custom_target(${name}_generate DEPENDS ${sources})
  add_library(${name} STATIC ${sources})
  add_dependencies(${name} ${name}_generate)
  target_include_directories(${name} SYSTEM PUBLIC "${out}")
  target_link_libraries(${name} PUBLIC protobuf::libprotobuf gRPC::grpc++)
  target_compile_options(${name} PRIVATE -w)   # Generated: not ours to keep clean.
endfunction()
