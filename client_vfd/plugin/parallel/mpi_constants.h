// The constants that an MPI library compiles into its programs.
#ifndef H5MIRROR_CLIENT_VFD_PLUGIN_PARALLEL_MPI_CONSTANTS_H_
#define H5MIRROR_CLIENT_VFD_PLUGIN_PARALLEL_MPI_CONSTANTS_H_

#include <cstdint>
#include <optional>
#include <string_view>

namespace h5mirror::vfd {

// A handle of the library's: a pointer, or an int.
using MpiHandle = uintptr_t;

struct MpiConstants {
  MpiHandle byte = 0;       // MPI_BYTE
  MpiHandle comm_null = 0;  // MPI_COMM_NULL
  bool operator==(const MpiConstants&) const = default;
};

// Those of MPICH's ABI, which MVAPICH, Intel MPI and Cray MPICH share (MPICH ABI Compatibility
// Initiative), by the text of MPI_Get_library_version. Unset: it is another library's.
std::optional<MpiConstants> MpichConstants(std::string_view library_version);

}  // namespace h5mirror::vfd

#endif  // H5MIRROR_CLIENT_VFD_PLUGIN_PARALLEL_MPI_CONSTANTS_H_
