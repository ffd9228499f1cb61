#include "bench/drivers.h"

#include <cstdlib>
#include <filesystem>

#include "bench/workloads.h"

namespace h5mirror::bench {
namespace {

// Copies with its final 0 into one of HDF5's fixed arrays.
template <size_t size>
void CopyText(char (&to)[size], const std::string& from) {
  if (from.size() >= size) throw Hdf5Error("too long for the stock driver: " + from);
  from.copy(to, from.size());
  to[from.size()] = '\0';
}

void SetSplitter(hid_t fapl, hid_t copy_fapl, const std::string& copy_path) {
  H5FD_splitter_vfd_config_t splitter = {};
  splitter.magic = H5FD_SPLITTER_MAGIC;
  splitter.version = H5FD_CURR_SPLITTER_VFD_CONFIG_VERSION;
  splitter.rw_fapl_id = H5P_DEFAULT;
  splitter.wo_fapl_id = copy_fapl;
  splitter.ignore_wo_errs = false;
  CopyText(splitter.wo_path, copy_path);
  Check(H5Pset_fapl_splitter(fapl, &splitter), "H5Pset_fapl_splitter");
}

std::string CopyPath(const std::string& directory, const std::string& path) {
  return (std::filesystem::path(directory) / std::filesystem::path(path).filename()).string();
}

#ifdef H5_HAVE_MIRROR_VFD
// Returns the directory of the mirror's copies.
std::string SetMirror(hid_t fapl, const std::string& config) {
  const size_t port_at = config.find(':');
  const size_t directory_at =
      port_at == std::string::npos ? port_at : config.find(':', port_at + 1);
  if (directory_at == std::string::npos) {
    throw Hdf5Error("mirror's config '" + config + "' is not ADDRESS:PORT:DIR");
  }
  H5FD_mirror_fapl_t mirror = {};
  mirror.magic = H5FD_MIRROR_FAPL_MAGIC;
  mirror.version = H5FD_MIRROR_CURR_FAPL_T_VERSION;
  mirror.handshake_port = std::atoi(config.c_str() + port_at + 1);
  CopyText(mirror.remote_ip, config.substr(0, port_at));
  Check(H5Pset_fapl_mirror(fapl, &mirror), "H5Pset_fapl_mirror");
  return config.substr(directory_at + 1);
}
#else
std::string SetMirror(hid_t, const std::string&) {
  throw Hdf5Error("this HDF5 was built without the mirror driver");
}
#endif

// `config`: the number of a revision to read, or nothing for the newest.
void SetOnion(hid_t fapl, const std::string& config) {
  H5FD_onion_fapl_info_t onion = {};
  onion.version = H5FD_ONION_FAPL_INFO_VERSION_CURR;
  onion.backing_fapl_id = H5P_FILE_ACCESS_DEFAULT;  // H5P_DEFAULT does not work for writing.
  onion.page_size = 4096;
  onion.store_target = H5FD_ONION_STORE_TARGET_ONION;
  onion.revision_num = config.empty() ? H5FD_ONION_FAPL_INFO_REVISION_ID_LATEST
                                      : std::strtoull(config.c_str(), nullptr, 10);
  Check(H5Pset_fapl_onion(fapl, &onion), "H5Pset_fapl_onion");
}

}  // namespace

hid_t MakeFapl(const DriverChoice& choice, const std::string& path) {
  const hid_t fapl = Check(H5Pcreate(H5P_FILE_ACCESS), "H5Pcreate");
  if (choice.name == "default") return fapl;
  if (choice.name == "sec2") {
    Check(H5Pset_fapl_sec2(fapl), "H5Pset_fapl_sec2");
  } else if (choice.name == "splitter") {
    SetSplitter(fapl, H5P_DEFAULT, CopyPath(choice.config, path));
  } else if (choice.name == "onion") {
    SetOnion(fapl, choice.config);
  } else if (choice.name == "mirror") {
    const hid_t mirror_fapl = Check(H5Pcreate(H5P_FILE_ACCESS), "H5Pcreate");
    const std::string directory = SetMirror(mirror_fapl, choice.config);
    SetSplitter(fapl, mirror_fapl, CopyPath(directory, path));
    H5Pclose(mirror_fapl);
  } else {
    Check(H5Pset_driver_by_name(fapl, choice.name.c_str(), choice.config.c_str()),
          "H5Pset_driver_by_name");
  }
  return fapl;
}

}  // namespace h5mirror::bench
