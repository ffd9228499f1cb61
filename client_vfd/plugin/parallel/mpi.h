// The MPI library of a parallel program. The plugin links none: the program has one, and its
// functions are found by name. Handles are carried as the library gives them. Open MPI's are
// pointers; those of MPICH and its relatives are ints, which fit into the same word.
#ifndef H5MIRROR_CLIENT_VFD_PLUGIN_PARALLEL_MPI_H_
#define H5MIRROR_CLIENT_VFD_PLUGIN_PARALLEL_MPI_H_

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "client_vfd/plugin/host/host_library.h"
#include "client_vfd/plugin/parallel/mpi_constants.h"

namespace h5mirror::vfd {

// The communicator of a file: the ranks that have opened it together. The last three functions are
// collective, so all ranks call them in the same order. MPI errors end the program, as MPI's
// default is.
class Ranks {
 public:
  // A duplicate of the communicator of `fapl`, which H5Pset_fapl_mpio put there; collective. Null:
  // `why` says why not.
  static std::unique_ptr<Ranks> Of(const HostLibrary& host, hid_t fapl, std::string* why);
  // Frees the duplicate, unless MPI has been finalized; collective.
  ~Ranks();
  Ranks(const Ranks&) = delete;
  Ranks& operator=(const Ranks&) = delete;

  int rank() const { return rank_; }
  bool is_root() const { return rank_ == 0; }
  // False: MPI has been finalized, and none of the functions below may be called.
  bool CanTalk() const;

  // Rank 0's `bytes` come to all.
  void Broadcast(void* bytes, size_t size) const;
  // The same of bytes whose number only rank 0 knows; at most 1 GiB.
  void BroadcastText(std::string* text) const;
  // At rank 0: the bytes of each rank, in the order of ranks; elsewhere empty. At most 1 GiB each.
  std::vector<std::string> Gather(std::string_view mine) const;

 private:
  struct Functions {
    int (*comm_rank)(MpiHandle, int*) = nullptr;
    int (*comm_size)(MpiHandle, int*) = nullptr;
    int (*comm_free)(MpiHandle*) = nullptr;
    int (*bcast)(void*, int, MpiHandle, int, MpiHandle) = nullptr;
    int (*gather)(const void*, int, MpiHandle, void*, int, MpiHandle, int, MpiHandle) = nullptr;
    int (*gatherv)(const void*, int, MpiHandle, void*, const int*, const int*, MpiHandle, int,
                   MpiHandle) = nullptr;
    int (*finalized)(int*) = nullptr;
  };
  static std::optional<Functions> FindFunctions(void* library);
  static std::optional<MpiConstants> FindConstants(void* library);

  Ranks(Functions functions, MpiConstants constants, MpiHandle comm);

  const Functions functions_;
  const MpiConstants constants_;
  MpiHandle comm_;
  int rank_ = 0;
  int size_ = 1;
};

}  // namespace h5mirror::vfd

#endif  // H5MIRROR_CLIENT_VFD_PLUGIN_PARALLEL_MPI_H_
