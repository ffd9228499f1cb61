// A user of the sender thread's completion queue: a stream, or a question.
#ifndef H5MIRROR_CLIENT_VFD_SESSION_QUEUE_USER_H_
#define H5MIRROR_CLIENT_VFD_SESSION_QUEUE_USER_H_

namespace h5mirror::vfd {

// The sender thread's own.
class QueueUser {
 public:
  // The tag of an operation in the queue. `op` is the user's own.
  struct Tag {
    QueueUser* user;
    int op;
  };

  virtual ~QueueUser() = default;
  // Handles a completion. True: this user has ended and may be destroyed.
  virtual bool Handle(int op, bool ok) = 0;
  // Cancels the operations in flight; their completions follow.
  virtual void Cancel() = 0;
  // The sender thread is about to end, as before a fork: ends the operations politely.
  virtual void Leave() = 0;
};

}  // namespace h5mirror::vfd

#endif  // H5MIRROR_CLIENT_VFD_SESSION_QUEUE_USER_H_
