// The registry in the omap of one RADOS object.
#ifndef H5MIRROR_CLUSTER_RADOS_RADOS_REGISTRY_H_
#define H5MIRROR_CLUSTER_RADOS_RADOS_REGISTRY_H_

#include "cluster/rados/connection.h"
#include "cluster/registry.h"

namespace h5mirror::cluster {

// Each change is one operation of the object: its comparisons and its texts. An OSD orders the
// operations of an object, and a name that is not there compares as an empty text.
//
// Thread-safe.
class RadosRegistry final : public Registry {
 public:
  // `connection` must outlive this.
  explicit RadosRegistry(const Connection& connection) : connection_(connection) {}

  // Makes the object where there is none. Errors: as RadosApi::open.
  absl::Status Prepare();

  absl::StatusOr<RegistryView> ReadAll() override;
  absl::StatusOr<RegistryView> Read(absl::Span<const std::string> names) override;
  absl::Status CompareAndSet(absl::Span<const Expectation> expected,
                             absl::Span<const NewText> changes) override;

 private:
  // kAborted: the object changed between two pages.
  absl::StatusOr<RegistryView> ReadPages();
  // As the errors of a registry.
  absl::Status Translate(int result) const;

  const Connection& connection_;
};

}  // namespace h5mirror::cluster

#endif  // H5MIRROR_CLUSTER_RADOS_RADOS_REGISTRY_H_
