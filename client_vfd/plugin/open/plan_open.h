// How an open goes, decided before anything is done: a pure function of the request, the
// configuration and the facts. open_file.cc gathers the facts and does what the plan says.
//
//   request, config, rules     PlaceOf()     reader | remote | embedded | local
//   the same, the local file   PlanOpen()    refuse, or the same four
//   the same, once it is open  PlanLayers()  mirror, metadata buffer, look for an SWMR writer, ...
//
// Between the first two, an edit of the local file that was broken off is finished.
#ifndef H5MIRROR_CLIENT_VFD_PLUGIN_OPEN_PLAN_OPEN_H_
#define H5MIRROR_CLIENT_VFD_PLUGIN_OPEN_PLAN_OPEN_H_

#include <cstdint>
#include <optional>
#include <string>

#include "client_vfd/plugin/config/config.h"

namespace h5mirror::vfd {

// The access that HDF5 asks for, by the flags of the open (H5Fpublic.h).
struct OpenRequest {
  std::string name;          // as the program gave it
  bool writes = false;       // H5F_ACC_RDWR
  bool truncates = false;    // H5F_ACC_TRUNC
  bool makes_new = false;    // H5F_ACC_EXCL
  bool creates = false;      // H5F_ACC_CREAT
  bool writes_swmr = false;  // H5F_ACC_SWMR_WRITE
  bool reads_swmr = false;   // H5F_ACC_SWMR_READ
};

// The facts of the file. A question is asked only if the answer decides: some cost a
// lock, a lease or a look into a directory.
class OpenFacts {
 public:
  virtual ~OpenFacts() = default;
  // The rules of the configuration take the file.
  virtual bool IsTaken() = 0;
  // Its name on the server lies below the server's root.
  virtual bool LiesInServersRoot() = 0;

  // Of the local file.
  virtual bool Exists() = 0;
  virtual bool IsOpenHere() = 0;       // this process has it open already, through the driver
  virtual int WhyNotWritable() = 0;    // an errno value; 0: it is writable
  virtual bool IsLockedByOther() = 0;  // as far as this open is to respect locks
  // Why it may not be written; unset: nothing is in the way.
  virtual Problem SwmrWriterAtWork() = 0;
  virtual Problem HistoryBeside() = 0;
  virtual Problem EditBrokenOff() = 0;
};

// Which mode opens the file. kEmbedded: with its history beside it; kLocal: mirrored or not.
enum class Place { kReader, kRemote, kEmbedded, kLocal };
Place PlaceOf(const Config& config, OpenFacts& facts);

// Why an open fails.
struct Refusal {
  // kLock: in sec2's words for a lock that another program has, which h5py reads.
  enum class Form { kErrno, kLock };
  Form form = Form::kErrno;
  int error_number = 0;
  std::string text;
};

struct OpenPlan {
  std::optional<Refusal> refusal;
  Place place = Place::kLocal;
  // Of kEmbedded: the open makes the file, or empties it.
  bool makes = false;
  // Of kEmbedded: another open of this process has the file's lock.
  bool has_lock = false;
};

// `place` is PlaceOf()'s, but kLocal for a head that is only read.
OpenPlan PlanOpen(Place place, const OpenRequest& request, const Config& config, OpenFacts& facts);

// Of a local file that is open for writing, and locked where locks are wanted.
struct OpenedFacts {
  bool was_open_here = false;
  // As realpath(3) gives it; unset: it does not, or the file has no descriptor or no status.
  std::optional<std::string> real_path;
  // The same, and where that fails as far as it exists.
  std::string path;
  uint64_t size_bytes = 0;
};

// The layers between HDF5 and a file that is open for writing.
struct Layers {
  // The name on the server that the file is mirrored under; unset: it is not.
  std::optional<std::string> mirror_name;
  bool is_made = false;  // the file is new to its mirror
  bool buffers_metadata = false;
  bool looks_for_swmr_writer = false;  // before the first read
  bool marks_swmr = false;
  std::optional<std::string> why_left_out;  // set: no server gets it
};

// `host_name` as in MirrorName().
Layers PlanLayers(const OpenRequest& request, const Config& config, const OpenedFacts& facts,
                  const std::string& host_name);

// True: metadata of the file at `path` is held in memory. Never for an SWMR writer, which relies on
// the order of its writes from the first one on.
bool BuffersMetadata(const OpenRequest& request, const Config& config, const std::string& path);

// Whether the first read looks for an SWMR writer of the file. A process that has it open already
// has looked.
bool LooksForSwmrWriter(const OpenRequest& request, bool was_open_here);

}  // namespace h5mirror::vfd

#endif  // H5MIRROR_CLIENT_VFD_PLUGIN_OPEN_PLAN_OPEN_H_
