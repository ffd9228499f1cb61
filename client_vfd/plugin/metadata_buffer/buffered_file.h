// metadata=memory: a layer between HDF5 and the local file. It buffers metadata writes, and puts
// them into the file at each cut and at the close. Collections of the global heap count as
// metadata. Other raw data goes straight on, with one exception: small writes to a file without a
// mirror, at or beyond the end that it had at the last cut. No metadata in the file leads there
// yet, so these are gathered and put together with the metadata between them.
//
//   1 MiB of raw data    gathered: put the bytes beyond the end of the last cut
//   H5Fflush, close      put, before the mirror hears of the cut: it reads the local file
//   metadata_memory      reached: put, and go on buffering
//   SWMR-write mode      put, and buffer no more: readers rely on HDF5's order of writes
//   fork                 put, so that parent and child see one file; the child buffers nothing
//
// Between two cuts the metadata in the file is that of the last cut. A put first writes the bytes
// at or beyond the end that the file had at that cut, and then overwrites. After a put outside a
// cut none of this is true until the next cut, and no raw data is gathered.
//
// Called by one thread at a time, as HDF5 does; and by a thread that forks.
#ifndef H5MIRROR_CLIENT_VFD_PLUGIN_METADATA_BUFFER_BUFFERED_FILE_H_
#define H5MIRROR_CLIENT_VFD_PLUGIN_METADATA_BUFFER_BUFFERED_FILE_H_

#include <cstddef>
#include <cstdint>
#include <string>

#include "client_vfd/plugin/host/hdf5_headers.h"
#include "client_vfd/plugin/host/host_library.h"
#include "client_vfd/plugin/metadata_buffer/buffer_put.h"
#include "client_vfd/plugin/metadata_buffer/buffered_bytes.h"
#include "client_vfd/plugin/modes/under_file.h"
#include "client_vfd/plugin/writes/barrier_detector.h"

namespace h5mirror::vfd {

class BufferedFile final : public FileBytes, private LocalBytes {
 public:
  // kRawData: of a file that is not mirrored.
  enum class Gathers { kNothing, kRawData };
  struct Target {
    const HostLibrary* host = nullptr;
    UnderFile* under = nullptr;  // of the local file
    FileBytes* below = nullptr;  // the target of a put: the mirror, or the local file
    Gathers gathers = Gathers::kNothing;
    std::string name;               // as the program gave it
    uint64_t memory_bytes_max = 0;  // of the process
  };

  // The objects that `target` points to must outlive this.
  explicit BufferedFile(Target target);
  ~BufferedFile() override;

  // As H5FD_class_t's. A call fails if its put fails; the bytes that were not put stay buffered.
  herr_t Read(H5FD_mem_t type, hid_t dxpl, haddr_t addr, size_t size, void* buffer) override;
  herr_t Write(H5FD_mem_t type, hid_t dxpl, haddr_t addr, size_t size, const void* buffer) override;
  herr_t Truncate(hid_t dxpl, hbool_t closing) override;
  herr_t Flush(hid_t dxpl, hbool_t closing) override;
  haddr_t Eof(H5FD_mem_t type) const override;
  // Puts the rest. Called before the mirror seals its last cut.
  herr_t BeforeClose() override;
  // Called before a fork, by the thread that forks.
  void BeforeFork();

 private:
  bool ReadLocal(uint64_t offset, size_t size, char* out) override;
  bool WriteLocal(uint64_t offset, size_t size, const char* bytes) override;
  uint64_t LocalSizeBytes() const override;
  uint64_t BlankFrom() const override;

  herr_t PassOn(H5FD_mem_t type, hid_t dxpl, haddr_t addr, size_t size, const void* buffer);
  herr_t WriteRaw(H5FD_mem_t type, hid_t dxpl, haddr_t addr, size_t size, const void* buffer);
  // Called with BufferMutex() held.
  herr_t BufferOrPut(H5FD_mem_t type, hid_t dxpl, haddr_t addr, size_t size, const void* buffer);
  // True: writes of this file are not buffered.
  bool WritesThrough() const;
  bool InForkedChild() const;
  void BeginSwmr();
  // These are called with BufferMutex() held. A put returns false: not all was put.
  bool GathersRaw(haddr_t addr) const;
  bool Put(uint64_t from, EqualBytes equal);
  // Puts the bytes at or beyond the end of the last cut.
  bool PutAppended();
  bool PutAll();
  bool PutOutsideCut();
  bool PutGathered();
  // Called beyond the bound on memory. Puts appended bytes, and all of them if that is not enough.
  bool MakeRoom();
  // Puts the gathered raw data, if there is too much of it. `*is_room`: `size` more bytes can be
  // gathered.
  bool MakeRoomToGather(size_t size, bool* is_room);
  // Forgets the bytes beyond the new end of file, and puts those that would make the file longer.
  bool CutOff(uint64_t size_bytes);
  // Brings the process's count of buffered bytes up to date.
  void Recount();
  // In a forked child: fails if the parent could not put all bytes before the fork.
  herr_t FailOfInherited();

  const Target target_;
  const unsigned fork_generation_;
  BarrierDetector detector_;
  BufferedBytes buffered_;
  uint64_t cut_end_;            // the local file's size at the last cut, or at the open
  size_t gathered_bytes_ = 0;   // of raw data, and its pieces, since the last PutAppended()
  uint64_t counted_bytes_ = 0;  // this file's part of the process's count
  // True: since the last cut metadata in the file may lead beyond the end of that cut, and a child
  // may have written there.
  bool put_outside_cut_ = false;
  bool swmr_ = false;
};

}  // namespace h5mirror::vfd

#endif  // H5MIRROR_CLIENT_VFD_PLUGIN_METADATA_BUFFER_BUFFERED_FILE_H_
