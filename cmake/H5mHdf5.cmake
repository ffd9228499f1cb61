# Finds HDF5 >= 1.14 (VFD plugins came with it) and defines
#
#   h5m::hdf5_headers     its headers only: for the plugin, which must not link libhdf5.
#   h5m::hdf5             headers and shared library: for tests and tools.
#   H5MIRROR_HDF5_BIN     the directory of h5dump and its friends.
#   H5MIRROR_HDF5_PREFIX  the directory above it.
#   H5MIRROR_HDF5_VERSION
#   H5MIRROR_HDF5_FOUND   false where there is no such HDF5; rooms that need it then say so.
#
# H5MIRROR_HDF5_ROOT is looked at first; its default is what `./dev setup` builds into the cache
# directory where the system has none. After it comes whatever find_package knows system-wide.

if(DEFINED ENV{H5MIRROR_CACHE})
  set(h5m_cache "$ENV{H5MIRROR_CACHE}")
elseif(NOT "$ENV{XDG_CACHE_HOME}" STREQUAL "")
  set(h5m_cache "$ENV{XDG_CACHE_HOME}/h5mirror")
else()
  set(h5m_cache "$ENV{HOME}/.cache/h5mirror")
endif()
set(H5MIRROR_CACHE "${h5m_cache}" CACHE PATH "What ./dev setup made: HDF5, Python environments")
set(H5MIRROR_HDF5_ROOT "${H5MIRROR_CACHE}/hdf5-1.14.5" CACHE PATH "Root of an HDF5 >= 1.14")
if(DEFINED ENV{H5MIRROR_HDF5_ROOT})
  set(H5MIRROR_HDF5_ROOT "$ENV{H5MIRROR_HDF5_ROOT}" CACHE PATH "Root of an HDF5 >= 1.14" FORCE)
endif()
set(H5MIRROR_HDF5_SOURCE "${H5MIRROR_CACHE}/hdf5-1.14.5-src" CACHE PATH
    "HDF5's source, for its own test programs")

# Defines the two targets over `includes` and `library`.
function(h5m_define_hdf5 includes library)
  add_library(h5m_hdf5_headers INTERFACE)
  target_include_directories(h5m_hdf5_headers SYSTEM INTERFACE ${includes})
  add_library(h5m::hdf5_headers ALIAS h5m_hdf5_headers)
  add_library(h5m_hdf5 INTERFACE)
  target_link_libraries(h5m_hdf5 INTERFACE h5m_hdf5_headers ${library})
  add_library(h5m::hdf5 ALIAS h5m_hdf5)
endfunction()

set(H5MIRROR_HDF5_FOUND FALSE)
if(EXISTS "${H5MIRROR_HDF5_ROOT}/include/H5FDdevelop.h")
  file(STRINGS "${H5MIRROR_HDF5_ROOT}/include/H5pubconf.h" h5m_line REGEX "define H5_VERSION ")
  string(REGEX MATCH "[0-9]+\\.[0-9]+\\.[0-9]+" H5MIRROR_HDF5_VERSION "${h5m_line}")
  find_library(h5m_hdf5_library hdf5 PATHS "${H5MIRROR_HDF5_ROOT}/lib" NO_DEFAULT_PATH NO_CACHE
               REQUIRED)
  h5m_define_hdf5("${H5MIRROR_HDF5_ROOT}/include" "${h5m_hdf5_library}")
  set(H5MIRROR_HDF5_BIN "${H5MIRROR_HDF5_ROOT}/bin")
  set(H5MIRROR_HDF5_FOUND TRUE)
else()
  find_package(HDF5 1.14 QUIET COMPONENTS C)
  if(HDF5_FOUND AND HDF5_VERSION VERSION_GREATER_EQUAL 1.14)
    list(GET HDF5_C_INCLUDE_DIRS 0 h5m_include)
    h5m_define_hdf5("${HDF5_C_INCLUDE_DIRS}" "${HDF5_C_LIBRARIES}")
    get_filename_component(H5MIRROR_HDF5_BIN "${h5m_include}/../bin" ABSOLUTE)
    set(H5MIRROR_HDF5_VERSION "${HDF5_VERSION}")
    set(H5MIRROR_HDF5_FOUND TRUE)
  endif()
endif()

if(H5MIRROR_HDF5_FOUND)
  get_filename_component(H5MIRROR_HDF5_PREFIX "${H5MIRROR_HDF5_BIN}" DIRECTORY)
  message(STATUS "HDF5 ${H5MIRROR_HDF5_VERSION} (programs in ${H5MIRROR_HDF5_BIN})")
else()
  message(WARNING "No HDF5 >= 1.14 in ${H5MIRROR_HDF5_ROOT} or on this system: the plugin, the "
                  "tools' HDF5 parts and the e2e tests are left out. Run ./dev setup first, or set "
                  "H5MIRROR_HDF5_ROOT.")
endif()
