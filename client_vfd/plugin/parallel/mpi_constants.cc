#include "client_vfd/plugin/parallel/mpi_constants.h"

#include <array>

namespace h5mirror::vfd {

std::optional<MpiConstants> MpichConstants(std::string_view library_version) {
  constexpr std::array<std::string_view, 4> kNames = {"MPICH", "MVAPICH", "Intel(R) MPI",
                                                      "CRAY MPICH"};
  for (const std::string_view name : kNames) {
    if (library_version.find(name) != std::string_view::npos) {
      return MpiConstants{.byte = 0x4c00010d, .comm_null = 0x04000000};
    }
  }
  return std::nullopt;
}

}  // namespace h5mirror::vfd
