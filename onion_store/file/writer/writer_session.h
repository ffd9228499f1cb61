// The session of a file's writer, which a lease admits and fences.
//
//   kNone -- Lease(token) --> kLeased -- Begin() --> kWriting -- Note(error) --> kFailed
//     ^                          |                      |                           |
//     +------------ End() -------+----------------------+---------------------------+
//
// Lease() may also come in any other phase: the former session is fenced. A failed session can only
// end. Its bytes are in OpenWrites.
#ifndef H5MIRROR_ONION_STORE_FILE_WRITER_WRITER_SESSION_H_
#define H5MIRROR_ONION_STORE_FILE_WRITER_WRITER_SESSION_H_

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "onion_store/types.h"

namespace h5mirror::store {

enum class WriterPhase : uint8_t { kNone, kLeased, kWriting, kFailed };

// Not thread-safe: the file's state lock guards it. `name` is always the file's name, for errors.
class WriterSession {
 public:
  WriterPhase phase() const { return phase_; }
  // True: the session has begun, and has not ended.
  bool is_writing() const { return phase_ >= WriterPhase::kWriting; }

  // The lease went to `token`, which is above 0. The caller has ended the session before, if it was
  // writing.
  void Lease(Token token);
  // The session with the lease begins. CheckLease() must be OK, and is_writing() false.
  void Begin() { phase_ = WriterPhase::kWriting; }
  void End() { *this = WriterSession(); }

  // kAborted: `token` does not have the lease.
  absl::Status CheckLease(const std::string& name, Token token) const;
  // As CheckLease(); also checks that the session has begun. It may have failed.
  absl::Status CheckWriting(const std::string& name, Token token) const;
  // As CheckWriting(). If the session has failed, returns its error.
  absl::Status CheckCanWrite(const std::string& name, Token token) const;

  // Notes the result of a write of `token`, and returns it. A session that was fenced meanwhile
  // changes nothing.
  absl::Status Note(Token token, absl::Status status);
  // The session made a cut.
  void NoteCut(const Provenance& provenance);

  int64_t cut_count() const { return cut_count_; }
  // The newest provenance that came with a cut; empty: none came.
  const Provenance& provenance() const { return provenance_; }

 private:
  WriterPhase phase_ = WriterPhase::kNone;
  Token token_ = 0;
  int64_t cut_count_ = 0;
  Provenance provenance_;
  absl::Status error_;
};

}  // namespace h5mirror::store

#endif  // H5MIRROR_ONION_STORE_FILE_WRITER_WRITER_SESSION_H_
