// The registry of a cluster: a small map from names to texts that changes by compare-and-set only
// (docs/design/049-cells.md). Forms: cluster/testing/memory_registry.h, cluster/file_registry.h,
// and one in RADOS, cluster/rados_api.h.
#ifndef H5MIRROR_CLUSTER_REGISTRY_H_
#define H5MIRROR_CLUSTER_REGISTRY_H_

#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"

namespace h5mirror::cluster {

// Names and texts, in the order of the names' bytes. No text is empty.
using RegistryView = std::map<std::string, std::string>;

// The text of a name at which a change may happen. Unset: there is no such name.
struct Expectation {
  std::string name;
  std::optional<std::string> text;
};

// The text that a name gets, not empty.
struct NewText {
  std::string name;
  std::string text;
};

// Thread-safe. Each call is linearizable: it happens at one moment between its begin and its end.
// A call may block for as long as the registry is away.
//
// Errors of all calls: kUnavailable  the registry is away; safe to repeat, but see CompareAndSet().
//                      kInternal     this client is fenced off, or the registry is broken: never
//                                    again from this process.
//                      kDataLoss     the registry cannot be read.
class Registry {
 public:
  virtual ~Registry() = default;

  // The whole of it, as of one moment.
  virtual absl::StatusOr<RegistryView> ReadAll() = 0;

  // Those of `names` that are there, as of one moment.
  virtual absl::StatusOr<RegistryView> Read(absl::Span<const std::string> names) = 0;

  // Sets all of `changes`, if all of `expected` hold; else nothing.
  // Errors: kAborted          one of them does not hold; nothing has changed.
  //         kInvalidArgument  an empty name or text, or a name twice in a list.
  //         kUnavailable      unknown: it may have happened, or may happen later.
  virtual absl::Status CompareAndSet(absl::Span<const Expectation> expected,
                                     absl::Span<const NewText> changes) = 0;
};

// kInvalidArgument as CompareAndSet(); for forms of the registry.
absl::Status CheckChange(absl::Span<const Expectation> expected, absl::Span<const NewText> changes);

// The text of `name` in `view`; unset where there is none.
std::optional<std::string> TextOf(const RegistryView& view, const std::string& name);

// Whether `view` is as `expected` says; for forms that keep it in memory.
bool Holds(const RegistryView& view, absl::Span<const Expectation> expected);

}  // namespace h5mirror::cluster

#endif  // H5MIRROR_CLUSTER_REGISTRY_H_
