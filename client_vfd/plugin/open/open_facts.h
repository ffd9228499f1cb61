// The arguments of HDF5's open, and the facts of its file as the system tells them.
#ifndef H5MIRROR_CLIENT_VFD_PLUGIN_OPEN_OPEN_FACTS_H_
#define H5MIRROR_CLIENT_VFD_PLUGIN_OPEN_OPEN_FACTS_H_

#include <sys/stat.h>

#include <memory>
#include <optional>
#include <string>

#include "client_vfd/plugin/config/config.h"
#include "client_vfd/plugin/host/hdf5_headers.h"
#include "client_vfd/plugin/host/host_library.h"
#include "client_vfd/plugin/modes/linked_open.h"
#include "client_vfd/plugin/modes/open_files.h"
#include "client_vfd/plugin/modes/reader_file.h"
#include "client_vfd/plugin/open/plan_open.h"

namespace h5mirror::vfd {

// One call of H5FD_class_t::open, with the configuration that holds for it.
struct OpenCall {
  HostLibrary& host;
  OpenRequest request;
  unsigned flags;  // as `request` reads them; for the file below
  hid_t fapl;
  haddr_t maxaddr;
  RootPtr root = nullptr;  // of a linked open; null: the program names the file itself
  std::string config_text = {};
  std::shared_ptr<const Config> config = nullptr;
};

OpenRequest RequestOf(const char* name, unsigned flags);

// Asks the system each question at its first use, and keeps the answer. `call` must outlive it.
class FileFacts final : public OpenFacts {
 public:
  explicit FileFacts(const OpenCall& call) : call_(call) {}

  bool IsTaken() override { return server_file().has_value(); }
  bool LiesInServersRoot() override { return !server_file()->name.empty(); }
  bool Exists() override { return before() != nullptr; }
  bool IsOpenHere() override;
  int WhyNotWritable() override;
  bool IsLockedByOther() override;
  Problem SwmrWriterAtWork() override;
  Problem HistoryBeside() override;
  Problem EditBrokenOff() override;

  // The file on a server; unset where the rules leave it out.
  const std::optional<ReaderTarget>& server_file();
  // The local file as it was before this open; null: there was none.
  const struct stat* before();
  // Of the local file; empty where there was none.
  FileKey key();

 private:
  const std::string& real_path();

  const OpenCall& call_;
  bool has_asked_rules_ = false;
  std::optional<ReaderTarget> server_file_;
  bool has_looked_ = false;
  bool exists_ = false;
  struct stat before_ {};
  std::optional<std::string> real_path_;
};

}  // namespace h5mirror::vfd

#endif  // H5MIRROR_CLIENT_VFD_PLUGIN_OPEN_OPEN_FACTS_H_
