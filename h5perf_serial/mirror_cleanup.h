// What mirrored runs leave on servers, and its removal.
#ifndef H5MIRROR_H5PERF_SERIAL_MIRROR_CLEANUP_H_
#define H5MIRROR_H5PERF_SERIAL_MIRROR_CLEANUP_H_

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "h5perf_serial/driver.h"

namespace h5mirror::perf {

// Each iteration makes the data file anew, and a server keeps what was there before as versions.
// Only a server's administrator can give their space back. Not thread-safe.
class MirrorCleanup {
 public:
  // Before the data files are removed: remembers which mirrors they have.
  void Note(const Driver& driver, const std::string& base);
  // Of each mirror: makes the file an empty one, drops the versions before that, and removes it
  // (`h5mirror prune` and `rm`). Returns a sentence for each that stays.
  std::vector<std::string> Run(const std::string& base);

 private:
  // By server and name there: the driver that wrote it.
  std::map<std::pair<std::string, std::string>, Driver> mirrors_;
};

}  // namespace h5mirror::perf

#endif  // H5MIRROR_H5PERF_SERIAL_MIRROR_CLEANUP_H_
