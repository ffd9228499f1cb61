// The barrier that a file's next consistent flush makes: a tick as configured, or what a program
// has armed by H5FDh5mirror.h.
//
//   Arm()      the program arms a commit, or a tick whose result it wants; or the connector or
//              h5mirror.ticks() arms a tick, only if the file changed
//   Begin()    the flush
//   SetResult()  its barrier was acknowledged, or not
//   Finish()   the program has the result; the next flush makes a tick again
//
// Not thread-safe.
#ifndef H5MIRROR_CLIENT_VFD_PLUGIN_MODES_ARMED_BARRIER_H_
#define H5MIRROR_CLIENT_VFD_PLUGIN_MODES_ARMED_BARRIER_H_

#include <string>
#include <utility>

#include "client_vfd/api/session_api.h"
#include "client_vfd/plugin/config/config.h"

namespace h5mirror::vfd {

H5mAck ToApi(Ack ack);

class ArmedBarrier {
 public:
  struct Request {
    H5mBarrier kind;
    H5mAck ack;
    std::string comment;  // of a commit; else empty
  };

  void Arm(H5mBarrier kind, std::string comment) {
    kind_ = kind;
    comment_ = std::move(comment);
    is_done_ = false;
  }
  H5mBarrier kind() const { return kind_; }
  Request Begin(const Config& config);
  // 0: acknowledged as asked; 1: behind or off.
  void SetResult(int result) { result_ = result; }
  int result() const { return result_; }
  // The result, or 1 where no flush came.
  int Finish() {
    kind_ = H5M_TICK;
    comment_.clear();
    return is_done_ ? result_ : 1;
  }

 private:
  H5mBarrier kind_ = H5M_TICK;
  std::string comment_;
  int result_ = 1;
  bool is_done_ = false;
};

}  // namespace h5mirror::vfd

#endif  // H5MIRROR_CLIENT_VFD_PLUGIN_MODES_ARMED_BARRIER_H_
