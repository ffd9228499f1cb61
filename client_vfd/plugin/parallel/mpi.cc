#include "client_vfd/plugin/parallel/mpi.h"

#include <dlfcn.h>

#include <algorithm>
#include <array>
#include <utility>

#include "client_vfd/plugin/host/h5_error.h"

namespace h5mirror::vfd {
namespace {

// The property of a file access list that H5Pset_fapl_mpio sets (H5Fprivate.h,
// H5F_ACS_MPI_PARAMS_COMM_NAME). To get it duplicates it.
constexpr char kCommunicator[] = "mpi_params_comm";
// MPI_MAX_LIBRARY_VERSION_STRING of MPICH; Open MPI's is 256.
constexpr size_t kVersionBytes = 8192;

template <typename T>
bool Find(void* library, const char* name, T* out) {
  *out = reinterpret_cast<T>(dlsym(library, name));
  return *out != nullptr;
}

// Whether MPI_Comm_free and the like may still be called.
bool IsFinalized(int (*finalized)(int*)) {
  int flag = 0;
  return finalized(&flag) != 0 || flag != 0;
}

}  // namespace

std::optional<Ranks::Functions> Ranks::FindFunctions(void* library) {
  Functions found;
  const bool has_all = Find(library, "MPI_Comm_rank", &found.comm_rank) &&
                       Find(library, "MPI_Comm_size", &found.comm_size) &&
                       Find(library, "MPI_Comm_free", &found.comm_free) &&
                       Find(library, "MPI_Bcast", &found.bcast) &&
                       Find(library, "MPI_Gather", &found.gather) &&
                       Find(library, "MPI_Gatherv", &found.gatherv) &&
                       Find(library, "MPI_Finalized", &found.finalized);
  if (!has_all) return std::nullopt;
  return found;
}

std::optional<MpiConstants> Ranks::FindConstants(void* library) {
  const auto open_mpi_byte = reinterpret_cast<MpiHandle>(dlsym(library, "ompi_mpi_byte"));
  const auto open_mpi_null = reinterpret_cast<MpiHandle>(dlsym(library, "ompi_mpi_comm_null"));
  if (open_mpi_byte != 0 && open_mpi_null != 0) return MpiConstants{open_mpi_byte, open_mpi_null};
  int (*version)(char*, int*) = nullptr;
  if (!Find(library, "MPI_Get_library_version", &version)) return std::nullopt;
  std::array<char, kVersionBytes> text{};
  int length = 0;
  if (version(text.data(), &length) != 0 || length < 0) return std::nullopt;
  return MpichConstants({text.data(), std::min<size_t>(static_cast<size_t>(length), text.size())});
}

std::unique_ptr<Ranks> Ranks::Of(const HostLibrary& host, hid_t fapl, std::string* why) {
  const HostApi& api = host.api;
  if (!api.usable || api.p_exist(fapl, kCommunicator) <= 0) {
    *why = "under=mpio: " + host.path + " was built without MPI; leave out under=";
    return nullptr;
  }
  const std::optional<Functions> functions = FindFunctions(host.handle);
  const std::optional<MpiConstants> constants =
      functions ? FindConstants(host.handle) : std::nullopt;
  if (!constants) {
    *why = "under=mpio: the MPI library of " + host.path +
           " is neither Open MPI nor of MPICH's family; leave out h5mirror for this program";
    return nullptr;
  }
  MpiHandle comm = 0;
  if (api.p_get(fapl, kCommunicator, &comm) < 0 || comm == constants->comm_null || comm == 0) {
    *why =
        "under=mpio: the file access list names no communicator; call H5Pset_fapl_mpio before the "
        "driver is set";
    return nullptr;
  }
  return std::unique_ptr<Ranks>(new Ranks(*functions, *constants, comm));
}

Ranks::Ranks(Functions functions, MpiConstants constants, MpiHandle comm)
    : functions_(functions), constants_(constants), comm_(comm) {
  functions_.comm_rank(comm_, &rank_);
  functions_.comm_size(comm_, &size_);
}

Ranks::~Ranks() {
  if (!IsFinalized(functions_.finalized)) functions_.comm_free(&comm_);
}

bool Ranks::CanTalk() const { return !IsFinalized(functions_.finalized); }

void Ranks::Broadcast(void* bytes, size_t size) const {
  functions_.bcast(bytes, static_cast<int>(size), constants_.byte, 0, comm_);
}

void Ranks::BroadcastText(std::string* text) const {
  uint64_t size = text->size();
  Broadcast(&size, sizeof size);
  text->resize(size);
  if (size != 0) Broadcast(text->data(), size);
}

std::vector<std::string> Ranks::Gather(std::string_view mine) const {
  const int my_size = static_cast<int>(mine.size());
  std::vector<int> sizes(is_root() ? static_cast<size_t>(size_) : 0);
  functions_.gather(&my_size, sizeof my_size, constants_.byte, sizes.data(), sizeof my_size,
                    constants_.byte, 0, comm_);
  std::vector<int> places(sizes.size());
  int total = 0;
  for (size_t i = 0; i < sizes.size(); ++i) places[i] = std::exchange(total, total + sizes[i]);
  std::string all(static_cast<size_t>(total), '\0');
  functions_.gatherv(mine.data(), my_size, constants_.byte, all.data(), sizes.data(), places.data(),
                     constants_.byte, 0, comm_);
  std::vector<std::string> gathered;
  for (size_t i = 0; i < sizes.size(); ++i) {
    gathered.push_back(all.substr(static_cast<size_t>(places[i]), static_cast<size_t>(sizes[i])));
  }
  return gathered;
}

}  // namespace h5mirror::vfd
