// metadata=memory: a layer between HDF5 and the local file that holds metadata writes in memory,
// and puts them into the file at each cut and at the close. Collections of the global heap count as
// metadata. Other raw data goes straight on, but for small writes to a file that is not mirrored,
// at or beyond the end that it had at the last cut: nothing in the file leads there yet, so they
// are put together with the metadata between them.
//
//   1 MiB of raw data    held: put what lies beyond the end of the last cut
//   H5Fflush, close      put, before the mirror is told of the cut: it reads the local file
//   metadata_memory      reached: put, and go on holding
//   SWMR-write mode      put, and hold nothing from then on: readers rely on HDF5's order of writes
//   fork                 put, so that parent and child see one file; the child holds nothing
//
// Between two cuts the metadata in the file is that of the last cut. A put writes what lies at or
// beyond the end that the file had then before it overwrites anything. After a put outside a cut
// nothing of this holds until the next cut, and no raw data is gathered.
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
#include "client_vfd/plugin/modes/file_bytes.h"
#include "client_vfd/plugin/writes/barrier_detector.h"

namespace h5mirror::vfd {

class BufferedFile final : public FileBytes, private LocalBytes {
 public:
  // kRawData: of a file that is not mirrored.
  enum class Gathers { kNothing, kRawData };
  struct Target {
    const HostLibrary* host = nullptr;
    H5FD_t* under = nullptr;     // of the local file
    FileBytes* below = nullptr;  // where what is put goes: the mirror, or the local file
    Gathers gathers = Gathers::kNothing;
    std::string name;               // as the program gave it
    uint64_t memory_bytes_max = 0;  // of the process
  };

  // What `target` points to must outlive it.
  explicit BufferedFile(Target target);
  ~BufferedFile() override;

  // As H5FD_class_t's. A call that puts fails where the put does; what was not put is held on.
  herr_t Read(H5FD_mem_t type, hid_t dxpl, haddr_t addr, size_t size, void* buffer) override;
  herr_t Write(H5FD_mem_t type, hid_t dxpl, haddr_t addr, size_t size, const void* buffer) override;
  herr_t Truncate(hid_t dxpl, hbool_t closing) override;
  herr_t Flush(hid_t dxpl, hbool_t closing) override;
  haddr_t Eof(H5FD_mem_t type) const override;
  // Puts the rest; before the mirror seals its last cut.
  herr_t BeforeClose() override;
  // In the thread that forks, before it does.
  void BeforeFork();

 private:
  bool ReadLocal(uint64_t offset, size_t size, char* out) override;
  bool WriteLocal(uint64_t offset, size_t size, const char* bytes) override;
  uint64_t LocalSizeBytes() const override;
  uint64_t BlankFrom() const override;

  herr_t PassOn(H5FD_mem_t type, hid_t dxpl, haddr_t addr, size_t size, const void* buffer);
  herr_t WriteRaw(H5FD_mem_t type, hid_t dxpl, haddr_t addr, size_t size, const void* buffer);
  // With BufferMutex().
  herr_t BufferOrPut(H5FD_mem_t type, hid_t dxpl, haddr_t addr, size_t size, const void* buffer);
  // Writes of this file are not held.
  bool WritesThrough() const;
  bool InForkedChild() const;
  void BeginSwmr();
  // These are called with BufferMutex(). False, of a put: not all was put.
  bool GathersRaw(haddr_t addr) const;
  bool Put(uint64_t from, EqualBytes equal);
  // What lies at or beyond the end of the last cut.
  bool PutAppended();
  bool PutAll();
  bool PutOutsideCut();
  bool PutGathered();
  // At the bound on memory.
  bool MakeRoom();
  // Puts what was gathered where no more is to be. `*is_room`: `size` bytes more can be.
  bool MakeRoomToGather(size_t size, bool* is_room);
  // Forgets what is held beyond the new end of file, and puts what would make the file longer.
  bool CutOff(uint64_t size_bytes);
  // Tells the process how much is held here now.
  void Recount();
  // In a forked child: what the parent could not put before the fork.
  herr_t FailOfInherited();

  const Target target_;
  const unsigned fork_generation_;
  BarrierDetector detector_;
  BufferedBytes buffered_;
  uint64_t cut_end_;            // the local file's size at the last cut, or at the open
  size_t gathered_bytes_ = 0;   // of raw data, and its pieces, since the last PutAppended()
  uint64_t counted_bytes_ = 0;  // of the process's memory
  // Since the last cut the file may lead to what lies beyond its end, and a child may have written
  // there.
  bool put_outside_cut_ = false;
  bool swmr_ = false;
};

}  // namespace h5mirror::vfd

#endif  // H5MIRROR_CLIENT_VFD_PLUGIN_METADATA_BUFFER_BUFFERED_FILE_H_
