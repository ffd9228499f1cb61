# What the project takes from Debian 12. `./dev setup` installs the packages.

find_package(Threads REQUIRED)
find_package(PkgConfig REQUIRED)
find_package(OpenSSL 3 REQUIRED)
find_package(ZLIB REQUIRED)
find_package(SQLite3 3.40 REQUIRED)
find_package(Protobuf 3.21 REQUIRED)        # CMake's own module: Debian ships no config file.
find_package(gRPC 1.51 CONFIG REQUIRED)
find_package(absl CONFIG REQUIRED)
find_package(spdlog 1.10 CONFIG REQUIRED)
find_package(tomlplusplus CONFIG REQUIRED)
find_package(CLI11 CONFIG REQUIRED)
find_package(nlohmann_json CONFIG REQUIRED)
find_package(prometheus-cpp CONFIG REQUIRED)
find_package(zstd CONFIG REQUIRED)
find_package(GTest CONFIG REQUIRED)
find_package(benchmark CONFIG REQUIRED)
pkg_check_modules(libsystemd REQUIRED IMPORTED_TARGET libsystemd)
pkg_check_modules(jemalloc REQUIRED IMPORTED_TARGET jemalloc)
pkg_check_modules(expat REQUIRED IMPORTED_TARGET expat)
# Debian's libmicrohttpd speaks TLS by GnuTLS.
pkg_check_modules(microhttpd REQUIRED IMPORTED_TARGET libmicrohttpd>=0.9.75 gnutls)

add_library(h5m::systemd ALIAS PkgConfig::libsystemd)
add_library(h5m::microhttpd ALIAS PkgConfig::microhttpd)

# Not by its cjose.pc, which wants that of jansson too.
find_path(CJOSE_INCLUDE_DIR cjose/cjose.h REQUIRED)
find_library(CJOSE_LIBRARY cjose REQUIRED)
add_library(h5m_cjose INTERFACE)
add_library(h5m::cjose ALIAS h5m_cjose)
target_include_directories(h5m_cjose SYSTEM INTERFACE "${CJOSE_INCLUDE_DIR}")
target_link_libraries(h5m_cjose INTERFACE "${CJOSE_LIBRARY}")

# The server's allocator; a sanitizer brings its own.
add_library(h5m_jemalloc INTERFACE)
add_library(h5m::jemalloc ALIAS h5m_jemalloc)
if(NOT H5MIRROR_SANITIZE)
  target_link_libraries(h5m_jemalloc INTERFACE PkgConfig::jemalloc)
endif()

find_program(H5MIRROR_GRPC_CPP_PLUGIN grpc_cpp_plugin REQUIRED)

include(H5mHdf5)
include(H5mParallelHdf5)
