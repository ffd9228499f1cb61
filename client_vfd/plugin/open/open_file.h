// One file that a host library has open through the driver, and its open and close.
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

// HDF5 fills and reads `base`. So `base` comes first, and the struct has no virtual functions.
struct OpenFile {
  H5FD_t base{};
  HostLibrary* host = nullptr;
  H5FD_t* under = nullptr;
  // The key of a local file; a reader's is KeyOf(under). With server=embedded the head's, if there
  // was a head at the open.
  FileKey key;
  // Null: a reader, server=embedded, or pass-through (read-only, left out by the rules, mode=off).
  std::unique_ptr<MirroredFile> mirror;
  // In mode=remote: names the server and the file. Two opens of one process with equal keys are one
  // file to HDF5, unless both only read, at different cuts.
  std::string remote_key;
  RootPtr remote_root;  // of a file that is written: for the files that it leads to
  // Over `mirror` or `under`, with metadata=memory; null: metadata goes to the file at once.
  std::unique_ptr<BufferedFile> buffered;
  SwmrFlags swmr;
  // For BeforeFirstRead(): set for an existing file that is opened for writing and not truncated,
  // until its first read. HDF5's probes, for "w" too, read nothing.
  struct Unread {
    std::string name;
    std::string log;
    bool refused = false;  // its SWMR writer may be at work: each read fails
  };
  std::unique_ptr<Unread> unread;
  // Set for a file that is opened for writing and gets no mirror, until its first change: why.
  struct LeftOut {
    std::string real_path;
    std::string log;
    std::string why;
  };
  std::unique_ptr<LeftOut> left_out;
};

// Before the first change of a file that gets no mirror: tells `h5mirror exec` and the log.
inline void BeforeChange(OpenFile* file) {
  if (file->left_out == nullptr) return;
  const std::unique_ptr<OpenFile::LeftOut> left_out = std::move(file->left_out);
  ReportLeftOut(*file->host, left_out->log, left_out->real_path, left_out->why);
}

// True: a version or cut of a server, in mode=reader.
inline bool IsReader(const OpenFile& file) { return file.under->cls == ReaderClass(); }

// True: written with mode=remote.
inline bool IsRemote(const OpenFile& file) { return file.under->cls == RemoteClass(); }

// True: written with server=embedded.
inline bool IsEmbedded(const OpenFile& file) { return file.under->cls == EmbeddedClass(); }

// Opens the file as HDF5 asks. Null: it failed, and the reason is on the host's error stack.
OpenFile* OpenFileFor(HostLibrary& host, const char* name, unsigned flags, hid_t fapl,
                      haddr_t maxaddr);

// Notes that the first read refused the file `name`, after its open for writing had succeeded.
void NoteRefusedRead(const char* name);

// Why HDF5 may not delete the local file `name`: the program means a file on a server.
Problem ProblemOfDeleting(const HostLibrary& host, const char* name, hid_t fapl);

// Closes and frees `file`. The result is that of the under driver.
herr_t CloseFile(OpenFile* file);

}  // namespace h5mirror::vfd

#endif  // H5MIRROR_CLIENT_VFD_PLUGIN_OPEN_OPEN_FILE_H_
