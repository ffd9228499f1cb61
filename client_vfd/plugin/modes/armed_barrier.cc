#include "client_vfd/plugin/modes/armed_barrier.h"

namespace h5mirror::vfd {

H5mAck ToApi(Ack ack) {
  return ack == Ack::kNone      ? H5M_ACK_NONE
         : ack == Ack::kApplied ? H5M_ACK_APPLIED
                                : H5M_ACK_DURABLE;
}

ArmedBarrier::Request ArmedBarrier::Begin(const Config& config) {
  is_done_ = true;
  // The program has not asked for this one, and is promised nothing by it.
  if (kind_ == H5M_TICK_IF_CHANGED) return {kind_, H5M_ACK_NONE, ""};
  H5mBarrier kind = kind_;
  if (kind == H5M_TICK && config.flush == FlushKind::kSync) kind = H5M_SYNC;
  H5mAck ack = ToApi(kind == H5M_COMMIT ? config.ack_commit : config.ack_tick);
  if (kind == H5M_SYNC) ack = H5M_ACK_DURABLE;
  // Waiting for a tick to become durable by itself could take the server's `durable_every`.
  if (kind == H5M_TICK && ack == H5M_ACK_DURABLE) kind = H5M_SYNC;
  if (kind != H5M_COMMIT) return {kind, ack, ""};
  return {kind, ack, comment_.empty() ? config.comment : comment_};
}

}  // namespace h5mirror::vfd
