# Finds a parallel HDF5 >= 1.14 and its MPI, for programs that link both, and defines
#
#   h5m::parallel_hdf5            headers and shared library, with MPI's.
#   H5MIRROR_PARALLEL_HDF5_FOUND  false where there is none; what needs it is then left out.
#   H5MIRROR_MPIEXEC              the program that starts MPI programs.
#
# H5MIRROR_PARALLEL_HDF5_ROOT is where it is looked for; its default is what `./dev setup` builds into
# the cache directory, over Open MPI. It comes after H5mHdf5, which defines H5MIRROR_CACHE.

set(H5MIRROR_PARALLEL_HDF5_ROOT "${H5MIRROR_CACHE}/hdf5-1.14.5-openmpi" CACHE PATH
    "Root of a parallel HDF5 >= 1.14")

set(H5MIRROR_PARALLEL_HDF5_FOUND FALSE)
find_library(h5m_parallel_hdf5_library hdf5 PATHS "${H5MIRROR_PARALLEL_HDF5_ROOT}/lib" NO_DEFAULT_PATH NO_CACHE)
find_program(H5MIRROR_MPICC NAMES mpicc.openmpi mpicc)
find_program(H5MIRROR_MPIEXEC NAMES mpirun.openmpi mpirun mpiexec)
mark_as_advanced(H5MIRROR_MPICC H5MIRROR_MPIEXEC)
if(h5m_parallel_hdf5_library AND H5MIRROR_MPICC AND H5MIRROR_MPIEXEC)
  # The wrapper of the MPI that the library was built with says where its parts are.
  set(MPI_C_COMPILER "${H5MIRROR_MPICC}")
  set(MPI_CXX_SKIP_MPICXX TRUE)
  find_package(MPI QUIET COMPONENTS C)
  if(MPI_C_FOUND)
    add_library(h5m_parallel_hdf5 INTERFACE)
    target_include_directories(h5m_parallel_hdf5 SYSTEM INTERFACE
      "${H5MIRROR_PARALLEL_HDF5_ROOT}/include" ${MPI_C_INCLUDE_DIRS})
    target_compile_definitions(h5m_parallel_hdf5 INTERFACE OMPI_SKIP_MPICXX MPICH_SKIP_MPICXX)
    target_link_libraries(h5m_parallel_hdf5 INTERFACE "${h5m_parallel_hdf5_library}" MPI::MPI_C)
    add_library(h5m::parallel_hdf5 ALIAS h5m_parallel_hdf5)
    set(H5MIRROR_PARALLEL_HDF5_FOUND TRUE)
  endif()
endif()

if(H5MIRROR_PARALLEL_HDF5_FOUND)
  message(STATUS "Parallel HDF5 in ${H5MIRROR_PARALLEL_HDF5_ROOT} (${H5MIRROR_MPIEXEC})")
else()
  message(STATUS "No parallel HDF5 in ${H5MIRROR_PARALLEL_HDF5_ROOT}, or no MPI: what needs them is left out")
endif()
