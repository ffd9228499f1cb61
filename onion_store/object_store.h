// The store's view of an archive: immutable objects under names, far away and slow. archive/ has
// its forms; docs/design/050-archive.md says why and when it is used.
#ifndef H5MIRROR_ONION_STORE_OBJECT_STORE_H_
#define H5MIRROR_ONION_STORE_OBJECT_STORE_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "absl/types/span.h"

namespace h5mirror::store {

// The bytes of an object that is put. They may be read more than once, by one thread at a time.
class ObjectSource {
 public:
  virtual ~ObjectSource() = default;
  virtual uint64_t size_bytes() const = 0;
  // Fills `out` with the bytes [offset, offset + out.size()), which end at size_bytes() or before.
  virtual absl::Status Read(uint64_t offset, absl::Span<char> out) = 0;
};

struct ObjectInfo {
  std::string name;
  uint64_t size_bytes = 0;
  bool operator==(const ObjectInfo&) const = default;
};

// A part of a list.
struct ObjectPage {
  std::vector<ObjectInfo> objects;  // in byte order of their names
  // Where the next part begins, to be passed to List(); empty: this is the last part.
  std::string next;
};

// Thread-safe, except for calls that change the same object: the caller makes these one after the
// other. Every call waits for a disk or a network, so no caller holds a lock meanwhile.
//
// `timeout` bounds a call with all its tries. Each call may be repeated.
//
// Errors that every call may give; messages name the archive and the object, and have no secrets:
//   kUnavailable         it does not answer, or is busy; safe to retry
//   kDeadlineExceeded    `timeout` has passed; safe to retry
//   kUnauthenticated     it does not know the caller
//   kPermissionDenied    the caller has no right to this
//   kFailedPrecondition  it cannot be used as it is set up: the bucket does not exist, ...
//   kInvalidArgument     `name` is not valid (CheckObjectName), or the archive refuses the call
class ObjectStore {
 public:
  virtual ~ObjectStore() = default;

  // For messages: "s3://bucket/prefix", "/mnt/archive".
  virtual std::string Describe() const = 0;

  // Puts an object: all of it, durably, or nothing. Never replaces an object.
  // Errors: kAlreadyExists     an object has that name. An earlier try, whose answer was lost, may
  //                            have put it: the caller compares.
  //         kResourceExhausted the archive is full.
  //         those of `source`.
  virtual absl::Status Put(std::string_view name, ObjectSource& source, absl::Duration timeout) = 0;

  // Fills `out` with the bytes [offset, offset + out.size()) of an object; `out` is not empty.
  // Errors: kNotFound  there is no such object.
  //         kDataLoss  it ends before.
  virtual absl::Status Get(std::string_view name, uint64_t offset, absl::Span<char> out,
                           absl::Duration timeout) = 0;

  // kNotFound: there is no such object.
  virtual absl::StatusOr<ObjectInfo> Head(std::string_view name, absl::Duration timeout) = 0;

  // The objects whose names begin with `prefix`, at most `limit` (1..1000) of them, from the
  // beginning (`next` empty) or from ObjectPage::next on. Objects that are put or deleted between
  // two parts may be listed or not.
  virtual absl::StatusOr<ObjectPage> List(std::string_view prefix, std::string_view next,
                                          size_t limit, absl::Duration timeout) = 0;

  // OK also if there is no such object.
  virtual absl::Status Delete(std::string_view name, absl::Duration timeout) = 0;
};

inline constexpr size_t kObjectNameBytesMax = 512;
inline constexpr size_t kObjectListMax = 1000;

// OK: `name` may name an object. It has 1..512 bytes, ASCII letters, digits, '.', '_', '-' and '/'.
// No part between two '/' is empty, "." or "..", or ends in ".new". kInvalidArgument quotes it.
absl::Status CheckObjectName(std::string_view name);

}  // namespace h5mirror::store

#endif  // H5MIRROR_ONION_STORE_OBJECT_STORE_H_
