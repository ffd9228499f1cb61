// A version or cut of a file on the server, below the driver: ReaderMode's `under`. Read-only.
#ifndef H5MIRROR_CLIENT_VFD_PLUGIN_MODES_READER_FILE_H_
#define H5MIRROR_CLIENT_VFD_PLUGIN_MODES_READER_FILE_H_

#include <memory>
#include <string>

#include "client_vfd/api/session_api.h"
#include "client_vfd/plugin/config/config.h"
#include "client_vfd/plugin/host/hdf5_headers.h"
#include "client_vfd/plugin/host/host_library.h"
#include "client_vfd/plugin/modes/linked_open.h"
#include "client_vfd/plugin/modes/under_file.h"

namespace h5mirror::vfd {

// The file to open.
struct ReaderTarget {
  std::string given_name;  // as HDF5 passed it, for messages
  std::string real_path;
  std::string name;         // under the server's root
  std::string config_text;  // the source of `config`
  RootPtr root;             // null: the program names the file itself
  // With mode=remote, for a linked open whose parent is open for writing: the file is opened as if
  // the program named it, and if that fails, as linked.
  RootPtr parent = nullptr;
};

// The functions of the module that reads: the session's, or the embedded store's.
struct ReaderApi {
  decltype(H5mSessionApi::reader_open) open = nullptr;
  decltype(H5mSessionApi::reader_read) read = nullptr;
  decltype(H5mSessionApi::reader_close) close = nullptr;
  decltype(H5mSessionApi::wait_for_cut) wait = nullptr;  // null: the embedded store's
};

class ReaderFile final : public UnderFile {
 public:
  // Null: it failed, and the reason is on the host's error stack. `host` must outlive the file.
  //
  // A linked open that fails although the file may exist gives a file whose reads fail with the
  // reason. Otherwise HDF5 would treat the target as missing, and read fill values instead of data.
  static std::unique_ptr<ReaderFile> Open(const HostLibrary& host, const Config& config,
                                          ReaderTarget target);
  ~ReaderFile() override;

  herr_t Read(H5FD_mem_t type, hid_t dxpl, haddr_t addr, size_t size, void* buffer) override;
  // Fails.
  herr_t Write(H5FD_mem_t type, hid_t dxpl, haddr_t addr, size_t size, const void* buffer) override;
  haddr_t Eof(H5FD_mem_t) const override { return info_.size_bytes; }

  // For a file that was opened for SWMR reading, as `config` and `target` told Open(): Refresh()
  // does something from now on, if the file is a cut that the program itself named.
  void AllowRefresh(std::shared_ptr<const Config> config, ReaderTarget target);
  // Moves to the newest cut, if the same open of an SWMR writer made both cuts. Only then may HDF5
  // read new bytes of one object beside cached metadata of others. True: key() and info() are new.
  // False: nothing has changed, and errors are only logged. Waits as an open does.
  bool Refresh();

  // Read(), but a failure gives an errno value, and the reason in `error`; 0: done. ESTALE: the
  // server no longer holds the cut, or the version.
  int ReadCut(H5FD_mem_t type, haddr_t address, size_t size, void* buffer, std::string* error);

  // The source of the files that its links lead to.
  const RootPtr& root() const { return root_; }
  // Files with equal keys are one file to HDF5. Equal versions that were opened at different times
  // of their roots have different keys, as their links lead elsewhere.
  const std::string& key() const { return key_; }
  const H5mReaderInfo& info() const { return info_; }

 private:
  ReaderFile(const HostLibrary& host, std::string name);
  // Opens the cut or version, or fills in `error_` and `info_.error_number`.
  void Start(const Config& config, const ReaderTarget& target);
  // Makes root and key of the open cut or version.
  void Identify(const Config& config, const ReaderTarget& target);
  bool HasNewerCut(const Config& config, const ReaderTarget& target) const;

  const HostLibrary& host_;
  const std::string name_;  // as HDF5 passed it
  ReaderApi api_;
  H5mReader* reader_ = nullptr;  // null: broken, for the reason in `error_`
  H5mReaderInfo info_{};
  std::string server_;  // that it is read from
  std::string key_;
  RootPtr root_;
  std::string error_;
  // Of AllowRefresh().
  struct Reopening {
    std::shared_ptr<const Config> config;
    ReaderTarget target;
  };
  std::unique_ptr<const Reopening> reopening_;
};

}  // namespace h5mirror::vfd

#endif  // H5MIRROR_CLIENT_VFD_PLUGIN_MODES_READER_FILE_H_
