# Sets of precompiled headers. Half of the compiler's time went into the same headers, in each source
# anew. A set is compiled once, with the flags of its targets: if these differ, the compiler says so
# (-Winvalid-pch), and that is an error here.
#
#   STD         the standard library and absl       every target that has none of the others
#   GTEST       STD and GoogleTest                  every test
#   GRPC        STD, gRPC and protobuf              GRPC_PCH
#   GRPC_GTEST  GRPC and GoogleTest                 every test with GRPC_PCH
#   CLI         GRPC, CLI11 and nlohmann-json       CLI_PCH: the verbs of h5mirror
#
# No set has a header of the project: a change of one would compile everything anew.
# A source still includes all that it needs: another compiler may take no set.

set(h5m_std_headers
  <algorithm> <array> <atomic> <chrono> <deque> <filesystem> <fstream> <functional> <map> <memory> <optional> <random>
  <set> <sstream> <string> <string_view> <thread> <utility> <variant> <vector>
  <absl/base/thread_annotations.h> <absl/container/flat_hash_map.h> <absl/functional/any_invocable.h>
  <absl/functional/function_ref.h> <absl/status/status.h> <absl/status/statusor.h> <absl/strings/str_cat.h>
  <absl/strings/str_format.h> <absl/strings/str_join.h> <absl/strings/str_split.h> <absl/synchronization/mutex.h>
  <absl/time/clock.h> <absl/time/time.h> <absl/types/span.h>)
set(h5m_gtest_headers <gmock/gmock.h> <gtest/gtest.h>)
set(h5m_grpc_headers
  <grpcpp/grpcpp.h> <google/protobuf/message.h> <google/protobuf/generated_message_util.h>
  <grpcpp/impl/codegen/proto_utils.h>)

# All sets: for clang-tidy.
add_custom_target(h5m_precompiled)

function(_h5m_precompile set)
  cmake_parse_arguments(arg "" "" "HEADERS;DEPS" ${ARGN})
  string(TOLOWER "h5m_pch_${set}" name)
  add_library(${name} STATIC "${CMAKE_CURRENT_FUNCTION_LIST_DIR}/precompiled.cc")
  target_link_libraries(${name} PRIVATE h5m_flags ${arg_DEPS})
  target_precompile_headers(${name} PRIVATE ${arg_HEADERS})
  add_dependencies(h5m_precompiled ${name})
endfunction()

set(h5m_grpc_deps gRPC::grpc++ protobuf::libprotobuf)
_h5m_precompile(STD HEADERS ${h5m_std_headers})
_h5m_precompile(GRPC HEADERS ${h5m_std_headers} ${h5m_grpc_headers} DEPS ${h5m_grpc_deps})
_h5m_precompile(CLI HEADERS ${h5m_std_headers} ${h5m_grpc_headers} <CLI/CLI.hpp> <nlohmann/json.hpp>
  DEPS ${h5m_grpc_deps} CLI11::CLI11 nlohmann_json::nlohmann_json)
if(BUILD_TESTING)
  _h5m_precompile(GTEST HEADERS ${h5m_std_headers} ${h5m_gtest_headers} DEPS GTest::gmock)
  _h5m_precompile(GRPC_GTEST HEADERS ${h5m_std_headers} ${h5m_grpc_headers} ${h5m_gtest_headers}
    DEPS ${h5m_grpc_deps} GTest::gmock)
endif()

# CLI11 comes as headers, and is most of what each verb compiles to: it is not worth optimising for a
# test. (Clang takes no precompiled header of a debug build without -Og.)
function(h5m_do_not_optimise_cli name)
  if(H5MIRROR_SANITIZE AND CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    target_compile_options(${name} PRIVATE -O0)
  endif()
endfunction()
h5m_do_not_optimise_cli(h5m_pch_cli)

# Gives a target one of the sets.
function(h5m_use_precompiled name set)
  string(TOLOWER "h5m_pch_${set}" headers)
  if(set MATCHES "GRPC|CLI")
    target_link_libraries(${name} PRIVATE ${h5m_grpc_deps})
  endif()
  target_precompile_headers(${name} REUSE_FROM ${headers})
endfunction()
