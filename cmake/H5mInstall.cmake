# Where an installation has its parts, and what it brings along. Everything is relative to the prefix,
# so that `cmake --install --prefix` can name another one.
#
#   H5MIRROR_PLUGIN_INSTALL_DIR   the plugin: a HDF5_PLUGIN_PATH. What it loads lies in `h5mirror` below it.
#   H5MIRROR_LIBEXEC_INSTALL_DIR  helpers of the CLI
#   H5MIRROR_PRIVATE_INSTALL_DIR  our copy of libhdf5, where we install one
#   h5m_install_hdf5_program()    a program that links libhdf5
#   h5m_man_page()                a page that is kept as Markdown
#   h5m_document()                other documents

set(H5MIRROR_PRIVATE_INSTALL_DIR "${CMAKE_INSTALL_LIBDIR}/h5mirror")
set(H5MIRROR_PLUGIN_INSTALL_DIR "${H5MIRROR_PRIVATE_INSTALL_DIR}/plugin")
set(H5MIRROR_LIBEXEC_INSTALL_DIR "libexec/h5mirror")

# An HDF5 that ./dev setup built lies in somebody's cache, where others cannot read it.
set(h5m_copies_hdf5 OFF)
if(H5MIRROR_HDF5_FOUND AND h5m_hdf5_library)
  cmake_path(IS_PREFIX H5MIRROR_CACHE "${h5m_hdf5_library}" NORMALIZE h5m_copies_hdf5)
endif()
option(H5MIRROR_INSTALL_HDF5
  "Install a copy of libhdf5 for our own programs (default: if it is the one of ./dev setup)" ${h5m_copies_hdf5})

if(H5MIRROR_INSTALL_HDF5 AND H5MIRROR_HDF5_FOUND)
  execute_process(COMMAND "${CMAKE_READELF}" -d "${h5m_hdf5_library}" OUTPUT_VARIABLE h5m_dynamic
                  COMMAND_ERROR_IS_FATAL ANY)
  if(NOT h5m_dynamic MATCHES "SONAME[^\n]*\\[([^]]+)\\]")
    message(FATAL_ERROR "${h5m_hdf5_library} has no SONAME; set H5MIRROR_INSTALL_HDF5=OFF")
  endif()
  set(h5m_soname "${CMAKE_MATCH_1}")
  file(REAL_PATH "${h5m_hdf5_library}" h5m_hdf5_file)
  install(FILES "${h5m_hdf5_file}" DESTINATION "${H5MIRROR_PRIVATE_INSTALL_DIR}" RENAME "${h5m_soname}")
  install(FILES "${H5MIRROR_HDF5_SOURCE}/COPYING" DESTINATION "${CMAKE_INSTALL_DOCDIR}" RENAME HDF5-COPYING OPTIONAL)
endif()

# h5m_install_hdf5_program(TARGET DIR) - installs it into DIR, relative to the prefix, so that it finds
# libhdf5: our copy if there is one, else the library that it was linked with.
function(h5m_install_hdf5_program name dir)
  if(H5MIRROR_INSTALL_HDF5)
    cmake_path(ABSOLUTE_PATH dir BASE_DIRECTORY "${CMAKE_INSTALL_PREFIX}" OUTPUT_VARIABLE from)
    cmake_path(ABSOLUTE_PATH H5MIRROR_PRIVATE_INSTALL_DIR BASE_DIRECTORY "${CMAKE_INSTALL_PREFIX}" OUTPUT_VARIABLE to)
    file(RELATIVE_PATH way "${from}" "${to}")
    set_target_properties(${name} PROPERTIES INSTALL_RPATH "$ORIGIN/${way}")
  else()
    set_target_properties(${name} PROPERTIES INSTALL_RPATH_USE_LINK_PATH ON)
  endif()
  install(TARGETS ${name} RUNTIME DESTINATION "${dir}")
endfunction()

# h5m_document(FILE...) - into share/doc/h5mirror, each at its place in the source tree, so that links
# from one to the other hold.
function(h5m_document)
  foreach(file IN LISTS ARGN)
    cmake_path(ABSOLUTE_PATH file NORMALIZE OUTPUT_VARIABLE path)
    cmake_path(GET path PARENT_PATH place)
    cmake_path(RELATIVE_PATH place BASE_DIRECTORY "${PROJECT_SOURCE_DIR}")
    install(FILES "${path}" DESTINATION "${CMAKE_INSTALL_DOCDIR}/${place}")
  endforeach()
endfunction()

find_program(H5MIRROR_LOWDOWN lowdown)
mark_as_advanced(H5MIRROR_LOWDOWN)
if(NOT H5MIRROR_LOWDOWN)
  message(STATUS "No lowdown: no man pages are made; the pages are installed as Markdown only. "
                 "Debian's package is `lowdown`.")
endif()

# h5m_man_page(PAGE.SECTION.md) - a man page, and the Markdown among the documents.
function(h5m_man_page file)
  h5m_document("${file}")
  if(NOT H5MIRROR_LOWDOWN)
    return()
  endif()
  string(REGEX MATCH "^(.+)\\.([1-9])\\.md$" matched "${file}")
  set(title "${CMAKE_MATCH_1}")
  set(section "${CMAKE_MATCH_2}")
  set(source "${CMAKE_CURRENT_SOURCE_DIR}/${file}")
  set(page "${PROJECT_BINARY_DIR}/man/man${section}/${title}.${section}")
  add_custom_command(OUTPUT "${page}"
    COMMAND "${CMAKE_COMMAND}" "-DLOWDOWN=${H5MIRROR_LOWDOWN}" "-DSOURCE=${source}" "-DPAGE=${page}"
            "-DTITLE=${title}" "-DSECTION=${section}" "-DDATE=${H5MIRROR_VERSION_DATE}"
            "-DRELEASE=h5mirror ${PROJECT_VERSION}" -P "${PROJECT_SOURCE_DIR}/cmake/man_page.cmake"
    DEPENDS "${source}" "${PROJECT_SOURCE_DIR}/cmake/man_page.cmake"
    COMMENT "Making ${title}(${section})" VERBATIM)
  add_custom_target(man_${title} ALL DEPENDS "${page}")
  install(FILES "${page}" DESTINATION "${CMAKE_INSTALL_MANDIR}/man${section}")
endfunction()
