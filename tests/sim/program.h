// A simulated program opens, writes, flushes and closes its files, in the way that HDF5 calls the
// plugin (client_vfd/plugin/modes/mirrored_file.cc).
#ifndef H5MIRROR_TESTS_SIM_PROGRAM_H_
#define H5MIRROR_TESTS_SIM_PROGRAM_H_

#include <memory>
#include <string>
#include <vector>

#include "client_vfd/session/session.h"
#include "tests/sim/local_file.h"
#include "tests/sim/process.h"

namespace h5mirror::sim {

// How the programs of one simulation are configured.
struct Settings {
  absl::Duration timeout = absl::Seconds(3);
  absl::Duration linger = absl::ZeroDuration();
  absl::Duration outage_wait = absl::ZeroDuration();
  H5mAck ack_commit = H5M_ACK_DURABLE;
  uint64_t window_bytes = uint64_t{64} << 20;
  uint64_t bandwidth_bytes_per_second = 0;
  absl::Duration version_every = absl::ZeroDuration();
  absl::Duration version_min_interval = absl::ZeroDuration();
  bool checksum = false;
  uint64_t write_bytes_max = 3000;
  uint64_t file_bytes_max = 12000;
  // Some opens end without a consistent close.
  bool unclean_closes = false;
  // Some programs know nothing of the plugin.
  bool plain_writers = false;
};

// The kind of an open.
enum class Visiting : uint8_t { kAny, kExisting, kCreated };

class Program {
 public:
  Program(Process& process, const Settings& settings) : process_(process), settings_(settings) {}

  // In a fiber of the process. Opens random files one after the other, then ends in order.
  void Run(int opens);
  // One open that changes the file and closes it cleanly.
  void Visit(LocalFile& file, Visiting kind);
  // The process was killed: notes what may be lost with it.
  void NoteKill();

 private:
  // One open of a file that was changed.
  struct Open {
    std::shared_ptr<LocalFile> file;
    std::shared_ptr<vfd::Session> session;
    bool noted = false;   // a map beside the file names what the server may lack
    bool closed = false;  // Close() has returned
  };

  bool Lock(LocalFile& file);
  Open Begin(LocalFile& file, bool created);
  void Change(Open& open);
  void WritePlainly(LocalFile& file);
  void Write(Open& open);
  void Truncate(Open& open);
  void Flush(Open& open);
  void Close(Open& open, bool cleanly);
  int64_t TimeNs();
  void Pause();
  std::string RandomBytes(uint64_t size);

  Process& process_;
  const Settings settings_;
  std::vector<Open> opens_;
};

}  // namespace h5mirror::sim

#endif  // H5MIRROR_TESTS_SIM_PROGRAM_H_
