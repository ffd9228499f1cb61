// Acks that wait for more than the store: a server of a cluster asks the registry first.
#ifndef H5MIRROR_SERVER_STATE_ACK_GATE_H_
#define H5MIRROR_SERVER_STATE_ACK_GATE_H_

#include <functional>
#include <utility>

#include "absl/status/status.h"
#include "onion_store/file.h"

namespace h5mirror::server {

// The second interface of files of a cluster's cells, beside store::File.
class AckGate {
 public:
  using Answer = std::function<void(const absl::Status& status)>;

  virtual ~AckGate() = default;
  // May wait for the registry. OK: the durable cuts that Info() has just named may be acked.
  // kUnavailable: they may never be acked here.
  virtual absl::Status BeforeAck() = 0;
  // The same without waiting: `answer` is called later by another thread, or by this call.
  virtual void BeforeAck(Answer answer) = 0;
};

// Any file may be asked (docs/design/049-cells.md, "Order of syncs"): OK at once for one that is in
// no cell.
inline absl::Status AwaitAck(store::File& file) {
  auto* const gate = dynamic_cast<AckGate*>(&file);
  return gate == nullptr ? absl::OkStatus() : gate->BeforeAck();
}
inline void AwaitAck(store::File& file, AckGate::Answer answer) {
  auto* const gate = dynamic_cast<AckGate*>(&file);
  if (gate == nullptr) return answer(absl::OkStatus());
  gate->BeforeAck(std::move(answer));
}

}  // namespace h5mirror::server

#endif  // H5MIRROR_SERVER_STATE_ACK_GATE_H_
