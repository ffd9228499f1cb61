// What a client may claim about its local file at the attach; docs/ARCHITECTURE.md, "Which side is
// right". Pure.
#ifndef H5MIRROR_CLIENT_VFD_SESSION_RELATION_H_
#define H5MIRROR_CLIENT_VFD_SESSION_RELATION_H_

#include <cstdint>
#include <optional>
#include <string>

#include "base/hex.h"
#include "base/local_record.h"

namespace h5mirror::vfd {

enum class Claim { kContinue, kCreate, kUpload };

struct Relation {
  Claim claim = Claim::kUpload;
  std::string file_id;  // 16 bytes, or empty
  // For kContinue. -1: the local file is known to differ; the server answers DIVERGED.
  int64_t base_cut = 0;
  // Instead of base_cut: the barrier that was sent and never answered.
  Bytes16 base_session{};
  uint64_t base_seq = 0;
};

struct LocalFacts {
  bool created = false;  // by this open, or emptied by it
  FileStat stat_at_open;
  std::string server;
  std::string name;
};

// `record`: what was remembered of the file's mirror, if anything.
Relation RelationOf(const LocalFacts& facts, const std::optional<LocalRecord>& record);

}  // namespace h5mirror::vfd

#endif  // H5MIRROR_CLIENT_VFD_SESSION_RELATION_H_
