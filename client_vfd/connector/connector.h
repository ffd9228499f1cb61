// The connector's work around the calls of HDF5's own: ticks, and drivers that a program names.
#ifndef H5MIRROR_CLIENT_VFD_CONNECTOR_CONNECTOR_H_
#define H5MIRROR_CLIENT_VFD_CONNECTOR_CONNECTOR_H_

#include <cstdint>
#include <optional>

#include "client_vfd/connector/connector_host.h"
#include "client_vfd/connector/open_files.h"
#include "client_vfd/connector/settings.h"

namespace h5mirror::vol {

// One for each host, made when the host asks for the plugin, never freed. Its functions are called
// by HDF5, under HDF5's lock if it has one, and throw nothing.
class Connector {
 public:
  Connector(Host host, const H5VL_class_t& native);

  // The class of HDF5's own connector, a copy.
  const H5VL_class_t& native() const { return native_; }

  // Brackets each call that may change a file, or run code of the program (iterations, filters,
  // conversions). Due files are flushed before the outermost such call: then HDF5 is between two
  // calls of the program. Inside of one, a flush could meet state of the call.
  class Call {
   public:
    explicit Call(Connector& connector);
    ~Call();
    Call(const Call&) = delete;
    Call& operator=(const Call&) = delete;
  };

  // The object, of the kind `type`, or an object at it, has been changed. Reports no error: a
  // change that could not be noted goes with the next tick, or with the program's next flush.
  void NoteChange(void* object, H5I_type_t type);

  void* CreateFile(const char* name, unsigned flags, hid_t fcpl, hid_t fapl, hid_t dxpl,
                   void** req);
  void* OpenFile(const char* name, unsigned flags, hid_t fapl, hid_t dxpl, void** req);
  herr_t GetOfFile(void* file, H5VL_file_get_args_t* args, hid_t dxpl, void** req);
  herr_t CloseFile(void* file, hid_t dxpl, void** req);
  // Whether the program chose the connector. Where HDF5's own fails to open a file, HDF5 asks every
  // connector in the plugin directory for it. This connector then stays silent: an error of its own
  // would hide the first error and its errno.
  bool IsAsked(const H5VL_file_specific_args_t& is_accessible) const;
  // The program has opened `file` once more (H5Freopen).
  void NoteReopened(void* from, void* file);
  // The program has flushed `file` itself: nothing is due until it changes again.
  void NoteFlushed(void* file);

 private:
  // nullopt: none came with the connector's name.
  std::optional<Settings> SettingsOf(hid_t fapl) const;
  void FlushDue();
  OpenFiles::Flushed Flush(void* file, const OpenFiles::Mirrored& mirrored);
  // Fills `driver` if the file is of our driver, and not left out by its rules.
  bool IsMirrored(void* file, hid_t fapl, H5FDh5mirror_api_t* driver) const;
  // Of the local file; -1: there is none.
  int DescriptorOf(void* file, hid_t fapl) const;
  herr_t GetHandle(void* file, hid_t fapl, void** handle) const;
  void LookAfter(void* file, unsigned flags, const Settings& settings, hid_t fapl);
  template <typename Open>
  void* OpenWith(unsigned flags, hid_t fapl, Open open);

  const Host host_;
  const H5VL_class_t native_;
  OpenFiles files_;
};

}  // namespace h5mirror::vol

#endif  // H5MIRROR_CLIENT_VFD_CONNECTOR_CONNECTOR_H_
