// One file that a host library has open through the driver, and how it came to be.
#ifndef H5MIRROR_CLIENT_VFD_PLUGIN_OPEN_OPEN_FILE_H_
#define H5MIRROR_CLIENT_VFD_PLUGIN_OPEN_OPEN_FILE_H_

#include <memory>
#include <string>
#include <utility>

#include "client_vfd/plugin/config/config.h"
#include "client_vfd/plugin/host/hdf5_headers.h"
#include "client_vfd/plugin/host/host_library.h"
#include "client_vfd/plugin/host/reporter.h"
#include "client_vfd/plugin/metadata_buffer/buffered_file.h"
#include "client_vfd/plugin/modes/embedded_file.h"
#include "client_vfd/plugin/modes/mirrored_file.h"
#include "client_vfd/plugin/modes/reader_file.h"
#include "client_vfd/plugin/modes/remote_file.h"
#include "client_vfd/plugin/open/open_files.h"
#include "client_vfd/plugin/open/swmr.h"

namespace h5mirror::vfd {

// HDF5 fills and reads `base`, so it comes first and the struct has no virtual functions.
struct OpenFile {
  H5FD_t base{};
  HostLibrary* host = nullptr;
  H5FD_t* under = nullptr;
  // Of a local file; a reader's is KeyOf(under). With server=embedded of the head, if there was
  // one.
  FileKey key;
  // Null: a reader, server=embedded, or pass-through (read-only, left out by the rules, mode=off).
  std::unique_ptr<MirroredFile> mirror;
  // In mode=remote: which file of which server it is. Two that one process has open are one file,
  // unless both are read, at different cuts.
  std::string remote_key;
  RootPtr remote_root;  // of one that is written: for the files that it leads to
  // Over `mirror` or `under`, with metadata=memory; null: metadata goes to the file at once.
  std::unique_ptr<BufferedFile> buffered;
  SwmrFlags swmr;
  // Until the first read of an existing file that is opened for writing, and not truncated: what is
  // to be known then. HDF5's probes, for "w" too, read nothing.
  struct Unread {
    std::string name;
    std::string log;
  };
  std::unique_ptr<Unread> unread;
  // Of a file that is opened for writing and that no server gets, until it is written: why.
  struct LeftOut {
    std::string real_path;
    std::string log;
    std::string why;
  };
  std::unique_ptr<LeftOut> left_out;
};

// Before the first change of one that is left out: `h5mirror exec` and the log are told.
inline void BeforeChange(OpenFile* file) {
  if (file->left_out == nullptr) return;
  const std::unique_ptr<OpenFile::LeftOut> left_out = std::move(file->left_out);
  ReportLeftOut(*file->host, left_out->log, left_out->real_path, left_out->why);
}

// A version on the server, in mode=reader.
inline bool IsReader(const OpenFile& file) { return file.under->cls == ReaderClass(); }

// Written with mode=remote.
inline bool IsRemote(const OpenFile& file) { return file.under->cls == RemoteClass(); }

// Written with server=embedded.
inline bool IsEmbedded(const OpenFile& file) { return file.under->cls == EmbeddedClass(); }

// Opens the file as HDF5 asked; null with the reason on the host's error stack.
OpenFile* OpenFileFor(HostLibrary& host, const char* name, unsigned flags, hid_t fapl,
                      haddr_t maxaddr);

// Why HDF5 may not delete the local file of that name: the program means one on a server.
Problem ProblemOfDeleting(const HostLibrary& host, const char* name, hid_t fapl);

// Closes and frees it. The result is the under driver's.
herr_t CloseFile(OpenFile* file);

}  // namespace h5mirror::vfd

#endif  // H5MIRROR_CLIENT_VFD_PLUGIN_OPEN_OPEN_FILE_H_
