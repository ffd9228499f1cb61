# Compiler flags for every target of the project, in one place.

set(CMAKE_C_STANDARD 11)
set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
# Static libraries end up in the plugin; -fPIC for programs too, so that all share one set of
# precompiled headers.
add_compile_options(-fPIC)
set(CMAKE_C_VISIBILITY_PRESET hidden)
set(CMAKE_CXX_VISIBILITY_PRESET hidden)
set(CMAKE_VISIBILITY_INLINES_HIDDEN ON)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)

# Programs and the plugin land in build/<preset>/bin and lib, so that scripts find them without
# knowing the rooms.
set(CMAKE_RUNTIME_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/bin")
set(CMAKE_LIBRARY_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/lib")

if(NOT CMAKE_BUILD_TYPE)
  set(CMAKE_BUILD_TYPE RelWithDebInfo CACHE STRING "Build type" FORCE)
endif()

# Sanitizers, as a comma-separated list for -fsanitize=; empty for none.
set(H5MIRROR_SANITIZE "" CACHE STRING "address,undefined or thread; empty for none")

# The flags of our own code.
add_library(h5m_flags INTERFACE)
# -pthread for all, so that all can share precompiled headers.
target_compile_options(h5m_flags INTERFACE -Wall -Wextra -Werror -pthread)
target_include_directories(h5m_flags INTERFACE "${PROJECT_SOURCE_DIR}")

if(CMAKE_CXX_COMPILER_ID MATCHES "Clang")
  # absl's headers carry the annotations; a mistake with a lock is then a compile error.
  target_compile_options(h5m_flags INTERFACE $<$<COMPILE_LANGUAGE:CXX>:-Wthread-safety>)
endif()

if(H5MIRROR_SANITIZE)
  add_compile_options("-fsanitize=${H5MIRROR_SANITIZE}" -fno-omit-frame-pointer)
  add_link_options("-fsanitize=${H5MIRROR_SANITIZE}")
  if(H5MIRROR_SANITIZE MATCHES "undefined")
    add_compile_options(-fno-sanitize-recover=undefined)
  endif()
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    # The sanitizers' extra branches make GCC 12 see uninitialized values that are not there.
    target_compile_options(h5m_flags INTERFACE -Wno-maybe-uninitialized)
  endif()
endif()

# tests/fuzz: everything reports its branches to libFuzzer, which only the fuzzers link.
option(H5MIRROR_FUZZ "Build the fuzzers with libFuzzer (clang)" OFF)
if(H5MIRROR_FUZZ)
  add_compile_options(-fsanitize=fuzzer-no-link)
endif()

# Debug info for stack traces, small enough to link quickly.
if(CMAKE_BUILD_TYPE STREQUAL "Debug" AND CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  add_compile_options(-gz)
endif()

find_program(H5MIRROR_CCACHE ccache)
mark_as_advanced(H5MIRROR_CCACHE)
if(H5MIRROR_CCACHE)
  # Paths below the checkout are hashed as relative ones, so that one clone's objects serve another;
  # not those with precompiled headers, which have paths in them.
  # Precompiled headers are only cached with this sloppiness (ccache manual, "Precompiled headers").
  set(launcher "${CMAKE_COMMAND}" -E env
      "CCACHE_BASEDIR=${PROJECT_SOURCE_DIR}" CCACHE_NOHASHDIR=1
      CCACHE_SLOPPINESS=pch_defines,time_macros,include_file_mtime,include_file_ctime
      "${H5MIRROR_CCACHE}")
  set(CMAKE_C_COMPILER_LAUNCHER "${launcher}")
  set(CMAKE_CXX_COMPILER_LAUNCHER "${launcher}")
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    add_compile_options($<$<COMPILE_LANGUAGE:CXX>:-fpch-preprocess>)
  endif()
endif()
