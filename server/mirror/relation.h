// Which side is right: how a client's local file stands to the server's file. Pure; the
// table is in docs/design/020-which-side-is-right.md.
#ifndef H5MIRROR_SERVER_MIRROR_RELATION_H_
#define H5MIRROR_SERVER_MIRROR_RELATION_H_

#include <cstdint>
#include <string>

#include "h5mirror/v1/mirror.pb.h"
#include "onion_store/types.h"

namespace h5mirror::server {

// How a session began, as far as the server remembers.
enum class Began { kUnknown, kNewGeneration };

struct RelationDecision {
  v1::Relation relation = v1::RELATION_DIVERGED;
  // INTENT_RESUME and base_barrier: the newest barrier of the named session that is a cut,
  // and of them the newest that is durable; 0 if none.
  uint64_t last_barrier_seq = 0;
  uint64_t durable_barrier_seq = 0;
  // DIVERGED: what does not fit, as half a sentence.
  std::string reason;
};

// `open` has been checked: ids are 16 bytes or empty, the intent is known. A file that has
// no cut is no file. An origin is the same when machine and path are; a host name may change.
// `began`: what the server remembers of the session that INTENT_RESUME names.
RelationDecision DecideRelation(const v1::OpenSession& open, const store::FileInfo& info,
                                Began began = Began::kUnknown);

// Whether a refusal of `open` means that the file and its local one are apart. Not where a
// stranger's open is refused that merely asks for the same name, not where the comparison of a
// resync is out of date, and not where there is no local file (mode=remote).
bool TellsOfMirror(const v1::OpenSession& open, const store::FileInfo& info);

// Whether `info`, of the file `open.renamed_from`, is the one that `open` says was renamed: the
// same file of the same machine, which was written under another path. A file that is written from
// the same path under two names was configured so.
bool IsRenamed(const v1::OpenSession& open, const store::FileInfo& info);

// "head is version 12 of 2026-11-03 14:00:00 UTC, written from node7:/data/run.h5", or
// "the server has no such file".
std::string DescribeHead(const store::FileInfo& info);

}  // namespace h5mirror::server

#endif  // H5MIRROR_SERVER_MIRROR_RELATION_H_
