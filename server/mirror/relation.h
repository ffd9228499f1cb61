// Decides how a client's local file stands to the server's file. Pure; the table is in
// docs/design/020-which-side-is-right.md.
#ifndef H5MIRROR_SERVER_MIRROR_RELATION_H_
#define H5MIRROR_SERVER_MIRROR_RELATION_H_

#include <cstdint>
#include <string>

#include "h5mirror/v1/mirror.pb.h"
#include "onion_store/types.h"

namespace h5mirror::server {

// How a session began, if the server remembers.
enum class Began { kUnknown, kNewGeneration };

struct RelationDecision {
  v1::Relation relation = v1::RELATION_DIVERGED;
  // For INTENT_RESUME and base_barrier: the newest barrier of the named session that is a cut, and
  // the newest one that is durable; 0: none.
  uint64_t last_barrier_seq = 0;
  uint64_t durable_barrier_seq = 0;
  // DIVERGED: the difference, as half a sentence.
  std::string reason;
};

// `open` must have passed CheckOpen(): ids are 16 bytes or empty, the intent is known. A file
// without a cut counts as missing. Origins are equal if machine and path are; a host name may
// change. `began`: of the session that INTENT_RESUME names.
RelationDecision DecideRelation(const v1::OpenSession& open, const store::FileInfo& info,
                                Began began = Began::kUnknown);

// True: a refusal of `open` means that the server's file and the local file have diverged. False
// for an open from another place under the same name, for a resync with an outdated comparison, and
// without a local file (mode=remote).
bool TellsOfMirror(const v1::OpenSession& open, const store::FileInfo& info);

// True: `info`, of the file `open.renamed_from`, is the file that `open` says was renamed: the same
// file of the same machine, written under another path. (One path with two names is a change of the
// configuration.)
bool IsRenamed(const v1::OpenSession& open, const store::FileInfo& info);

// "head is version 12 of 2026-11-03 14:00:00 UTC, written from node7:/data/run.h5", or
// "the server has no such file".
std::string DescribeHead(const store::FileInfo& info);

}  // namespace h5mirror::server

#endif  // H5MIRROR_SERVER_MIRROR_RELATION_H_
