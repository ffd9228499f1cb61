/* Preloaded into programs over MPICH with UCX, whose ranks spin while they wait for each other: a
 * rank that has found nothing to do for a while sleeps between two looks. Without that, a rank
 * burns its time slice in front of the one that it waits for, where processors are fewer than ranks
 * or busy. sched_yield() would not do: a niced rank is not given the processor again for long.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stddef.h>
#include <time.h>

/* Looks in vain before the first sleep: a partner that runs answers within some microseconds. */
static const unsigned kLooks = 100;
static const struct timespec kSleep = {0, 20000};

/* As in ucp/api/ucp.h, which is not installed with MPICH. */
unsigned ucp_worker_progress(void* worker);

unsigned ucp_worker_progress(void* worker) {
  static unsigned (*next)(void*);
  static _Thread_local unsigned in_vain;
  if (next == NULL) next = (unsigned (*)(void*))dlsym(RTLD_NEXT, "ucp_worker_progress");
  const unsigned events = next(worker);
  in_vain = events == 0 ? in_vain + 1 : 0;
  if (in_vain > kLooks) nanosleep(&kSleep, NULL);
  return events;
}
