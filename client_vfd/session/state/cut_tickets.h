// The cuts of one session by ticket: which were sent, which the server has, which were lost.
//
//   kWaiting --Sent--> kSent --OnVisible--> kVisible --OnDurable--> kDurable
//       |                |                      |
//       +----------------+------- LoseAll ------+--> lost: nobody waits for it any longer
//
// A lost cut was given up with its stream. Its barrier may have reached the server all the same: a
// resume tells, and then the cut is acknowledged though it was lost.
//
// The last ticket of a closed file is the final one. If its cut is lost, the next one takes its
// place.
#ifndef H5MIRROR_CLIENT_VFD_SESSION_STATE_CUT_TICKETS_H_
#define H5MIRROR_CLIENT_VFD_SESSION_STATE_CUT_TICKETS_H_

#include <cstdint>
#include <map>
#include <optional>

#include "client_vfd/api/session_api.h"

namespace h5mirror::vfd {

// Pure, not thread-safe. Tickets count from 1, and so do the barriers' numbers on the wire (`seq`).
class CutTickets {
 public:
  // How far a cut has come with the server. A lost cut keeps its phase.
  enum class Phase { kWaiting, kSent, kVisible, kDurable };

  // The ticket of a cut that is closed now. Once sealed, it is the final one.
  uint64_t Next();
  // The file is closed: there is a final cut from here on.
  void Seal() { final_ = ++last_; }

  // The barrier of `ticket` goes out as number `seq`.
  void Sent(uint64_t ticket, uint64_t seq) { seqs_[ticket] = seq; }
  // Takes Sent() back: the barrier did not go out.
  void NotSent(uint64_t ticket) { seqs_.erase(ticket); }
  // All barriers up to `seq`, included, are visible.
  void OnVisible(uint64_t seq);
  void OnDurable(uint64_t seq);
  // All tickets given so far are lost with the stream.
  void LoseAll() { lost_ = last_; }
  // Drops the numbers of cuts that nobody asks for: the last 64 and the final one stay.
  void Forget();

  // Of a ticket that was sent and not forgotten; else kWaiting.
  Phase PhaseOf(uint64_t ticket) const;
  // True: the cut has come as far as `ack` asks. False before it was sent, even for H5M_ACK_NONE.
  bool Acked(uint64_t ticket, H5mAck ack) const;
  bool IsLost(uint64_t ticket) const { return ticket <= lost_; }
  // A barrier was sent, was not lost, and has no answer yet.
  bool IsOwed() const;
  // The newest ticket; 0: none was given.
  uint64_t last() const { return last_; }
  uint64_t durable_seq() const { return durable_seq_; }

  bool sealed() const { return final_ != 0; }
  bool IsFinal(uint64_t ticket) const { return sealed() && ticket == final_; }
  bool IsFinalAcked(H5mAck ack) const { return Acked(final_, ack); }
  // Only when sealed.
  bool IsFinalLost() const { return IsLost(final_); }
  // The final barrier went out on the stream that there is: nothing follows it there.
  bool IsFinalTaken() const { return FinalSeq() && !IsFinalLost(); }
  // The number of the final cut's barrier; unset: it was not sent, or the file is not closed.
  std::optional<uint64_t> FinalSeq() const;

 private:
  uint64_t last_ = 0;
  uint64_t lost_ = 0;
  uint64_t final_ = 0;
  std::map<uint64_t, uint64_t> seqs_;  // by ticket
  uint64_t visible_seq_ = 0;
  uint64_t durable_seq_ = 0;
};

}  // namespace h5mirror::vfd

#endif  // H5MIRROR_CLIENT_VFD_SESSION_STATE_CUT_TICKETS_H_
