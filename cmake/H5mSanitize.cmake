# What sanitized programs need at link time and at run time. H5MIRROR_SANITIZE chooses.
#
#   h5m_sanitizer_sources     objects that every program links (empty unless under TSan)
#   H5M_TEST_ENVIRONMENT      NAME=VALUE pairs that every test runs with

set(H5M_TEST_ENVIRONMENT
  "H5MIRROR_SOURCE_DIR=${PROJECT_SOURCE_DIR}"
  "H5MIRROR_BUILD_DIR=${PROJECT_BINARY_DIR}"
  "H5MIRROR_CACHE=${H5MIRROR_CACHE}"
  "H5MIRROR_HDF5_ROOT=${H5MIRROR_HDF5_PREFIX}")

set(h5m_sanitizer_dir "${CMAKE_CURRENT_LIST_DIR}/sanitizers")
set(h5m_sanitizer_sources "")

if(H5MIRROR_SANITIZE MATCHES "thread")
  add_library(h5m_tsan_order OBJECT
    "${h5m_sanitizer_dir}/tsan_absl_mutex.cc" "${h5m_sanitizer_dir}/tsan_grpc_callbacks.cc")
  target_link_libraries(h5m_tsan_order PRIVATE absl::synchronization gRPC::grpc)
  # They take the place of libraries' symbols, so they must export their own.
  set_target_properties(h5m_tsan_order PROPERTIES CXX_VISIBILITY_PRESET default
                        VISIBILITY_INLINES_HIDDEN OFF)
  set(h5m_sanitizer_sources $<TARGET_OBJECTS:h5m_tsan_order>)
  string(JOIN ":" options
    "suppressions=${h5m_sanitizer_dir}/tsan.supp" "ignore_noninstrumented_modules=1"
    "halt_on_error=0" "second_deadlock_stack=1" "history_size=4")
  list(APPEND H5M_TEST_ENVIRONMENT "TSAN_OPTIONS=${options}")
endif()

if(H5MIRROR_SANITIZE MATCHES "address")
  list(APPEND H5M_TEST_ENVIRONMENT
    "ASAN_OPTIONS=detect_stack_use_after_return=1:strict_string_checks=1:check_initialization_order=1"
    "LSAN_OPTIONS=suppressions=${h5m_sanitizer_dir}/lsan.supp:print_suppressions=0")
endif()
if(H5MIRROR_SANITIZE MATCHES "undefined")
  list(APPEND H5M_TEST_ENVIRONMENT "UBSAN_OPTIONS=print_stacktrace=1")
endif()
