#include "server/mirror/relation.h"

#include "base/cut_text.h"
#include "base/hex.h"
#include "base/human.h"
#include "base/remote_origin.h"
#include "base/strings.h"
#include "server/state/convert.h"

namespace h5mirror::server {
namespace {

bool FileExists(const store::FileInfo& info) { return info.last_cut != 0; }

bool SameOrigin(const v1::OpenSession& open, const store::FileInfo& info) {
  return open.origin().machine_id() == info.origin.machine_id &&
         open.origin().path() == info.origin.path;
}

bool SameFile(const v1::OpenSession& open, const store::FileInfo& info) {
  return open.file_id() == ToByteString(info.file_id);
}

bool IsOf(const store::BarrierId& barrier, const std::string& session_id) {
  return barrier.seq != 0 && session_id == ToByteString(barrier.session_id);
}

RelationDecision Diverged(std::string reason) {
  RelationDecision decision;
  decision.reason = std::move(reason);
  return decision;
}

RelationDecision New() {
  RelationDecision decision;
  decision.relation = v1::RELATION_NEW;
  return decision;
}

// MATCH, with the surviving cuts of the session that the client names.
RelationDecision Match(const std::string& session_id, const store::FileInfo& info) {
  RelationDecision decision;
  decision.relation = v1::RELATION_MATCH;
  if (IsOf(info.last_barrier, session_id)) decision.last_barrier_seq = info.last_barrier.seq;
  if (IsOf(info.durable_barrier, session_id)) {
    decision.durable_barrier_seq = info.durable_barrier.seq;
  }
  return decision;
}

// A record of another address: only a state that both sides know by more than its number.
RelationDecision DecideMoved(const v1::OpenSession& open, const store::FileInfo& info) {
  const v1::MovedBase& base = open.moved_base();
  const bool is_known = info.local.inode != 0 && FromProto(base.local()) == info.local;
  if (is_known && base.cut() == info.last_cut) return Match(open.session_id(), info);
  return Diverged(
      "the local file's record is of another server's address, and this one cannot tell whether it "
      "has the same; h5mirror rehome compares the two");
}

RelationDecision DecideContinue(const v1::OpenSession& open, const store::FileInfo& info) {
  if (!FileExists(info)) return Diverged("the local file has a record of one");
  if (!SameFile(open, info)) return Diverged("the local file is a mirror of another file");
  // The path of a file that was renamed is the new one from its next cut on.
  if (!SameOrigin(open, info) && !IsRenamed(open, info)) {
    return Diverged(StrCat("this one is ", open.origin().host(), ":", open.origin().path()));
  }
  if (open.has_moved_base()) return DecideMoved(open, info);
  if (open.has_base_barrier()) {
    const v1::BarrierId& base = open.base_barrier();
    if (IsOf(info.last_barrier, base.session_id()) && info.last_barrier.seq == base.seq()) {
      return Match(base.session_id(), info);
    }
    return Diverged("the local file's last close never arrived or was followed by others");
  }
  if (open.base_cut() == info.last_cut) return Match(open.session_id(), info);
  if (open.base_cut() < 0) {
    return Diverged("the local file was changed or not closed cleanly since they were equal");
  }
  return Diverged(StrCat("the local file was last equal at cut ", CutText(open.base_cut()),
                         ", this is ", CutText(info.last_cut)));
}

RelationDecision DecideResume(const v1::OpenSession& open, const store::FileInfo& info,
                              Began began) {
  // (A file that was created again has nothing of its predecessor.)
  if (IsOf(info.last_barrier, open.session_id()) ||
      (began != Began::kNewGeneration && IsOf(info.last_barrier, open.predecessor_session_id()))) {
    return Match(open.session_id(), info);
  }
  // Nothing of the session survived. Where it had begun a new generation it begins it again: to go
  // on from the old generation's head would mix the two. After a restart of the server only the
  // client knows, and says so by having no base. (With a base, cuts of it were durable: a rollback
  // or the like that has replaced them is not to be overruled.)
  const bool nothing_there = began == Began::kNewGeneration && !FileExists(info);
  if (open.base_cut() == 0 || nothing_there) {
    return !FileExists(info) || SameOrigin(open, info)
               ? New()
               : Diverged("nothing of this session had become durable");
  }
  // The client may come from long ago: cuts of these numbers may be another file's by now.
  if (FileExists(info) && !open.file_id().empty() && !SameFile(open, info)) {
    return Diverged("the local file is a mirror of another file");
  }
  const bool on_path = info.last_cut > open.base_cut() && info.last_cut <= open.base_cut_newest();
  if (open.base_cut() == info.last_cut || on_path) return Match(open.session_id(), info);
  return Diverged(StrCat("this session's last durable cut is ", CutText(open.base_cut()),
                         ", the file is at ", CutText(info.last_cut)));
}

// The client has compared its file with the newest cut, and says which one that was.
RelationDecision DecideResync(const v1::OpenSession& open, const store::FileInfo& info) {
  if (!FileExists(info)) return Diverged("the local file was compared with one");
  if (!open.file_id().empty() && !SameFile(open, info)) {
    return Diverged("the local file was compared with another file");
  }
  // A client that read the newest version knows its cut. Later cuts may have changed nothing.
  const bool read_version = info.last_is_version && open.base_cut() == info.newest_version.cut;
  if (open.base_cut() == info.last_cut || read_version) return Match(open.session_id(), info);
  return Diverged(StrCat("the local file was compared with cut ", CutText(open.base_cut()),
                         ", this is ", CutText(info.last_cut)));
}

}  // namespace

RelationDecision DecideRelation(const v1::OpenSession& open, const store::FileInfo& info,
                                Began began) {
  switch (open.intent()) {
    case v1::INTENT_CREATE:
      if (!FileExists(info) || SameOrigin(open, info)) return New();
      return Diverged(StrCat("this one is ", open.origin().host(), ":", open.origin().path()));
    case v1::INTENT_UPLOAD:
      return FileExists(info) ? Diverged("the local file has no record of it") : New();
    case v1::INTENT_REPLACE:
      return New();
    case v1::INTENT_RESUME:
      return DecideResume(open, info, began);
    case v1::INTENT_CONTINUE:
      return DecideContinue(open, info);
    case v1::INTENT_RESYNC:
      return DecideResync(open, info);
    default:
      return Diverged("the intent is unknown");
  }
}

bool TellsOfMirror(const v1::OpenSession& open, const store::FileInfo& info) {
  return FileExists(info) && open.intent() != v1::INTENT_RESYNC &&
         !IsRemoteOrigin(open.origin().path()) && (SameOrigin(open, info) || SameFile(open, info));
}

bool IsRenamed(const v1::OpenSession& open, const store::FileInfo& info) {
  return !open.renamed_from().empty() && FileExists(info) && SameFile(open, info) &&
         open.origin().machine_id() == info.origin.machine_id &&
         open.origin().path() != info.origin.path;
}

std::string DescribeHead(const store::FileInfo& info) {
  if (!FileExists(info)) return "the server has no such file";
  std::string text = "head is ";
  if (info.newest_version.version != 0) {
    StrAppend(&text, "version ", info.newest_version.version, " of ",
              HumanTime(info.newest_version.server_time));
    if (info.newest_version.cut != info.last_cut) StrAppend(&text, " and later cuts");
  } else {
    StrAppend(&text, "cut ", CutText(info.last_cut), ", with no version yet");
  }
  if (info.origin.path.empty()) return StrCat(text, ", found on the server");
  return StrCat(text, ", written from ", info.origin.host, ":", info.origin.path);
}

}  // namespace h5mirror::server
