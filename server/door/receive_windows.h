// Bounds the bytes that clients may send unasked. All connections share one budget.
//
// Without probing, gRPC 1.51 lets a connection send 64 KiB beyond the message that is being read.
// That is enough on a near network, but on a far one it means one message for each round trip. With
// probing, gRPC doubles a connection's window as long as the measured delay asks for it. On a busy
// server that delay comes from the queue of all other connections. So all windows grow until gRPC's
// memory quota is full. Then gRPC sends connections away (GOAWAY) and resets streams. gRPC has no
// setting that bounds a window, but a hook for its own tests at the place where it chooses a probed
// window.
#ifndef H5MIRROR_SERVER_DOOR_RECEIVE_WINDOWS_H_
#define H5MIRROR_SERVER_DOOR_RECEIVE_WINDOWS_H_

#include <cstdint>

namespace h5mirror::server {

// A connection's window starts here and doubles with each measurement of its delay. Several frames:
// with a quarter of one, the first 256 MiB over 1 ms took a fifth longer.
inline constexpr uint32_t kFirstWindowBytes = 4 << 20;
inline constexpr uint32_t kWindowBytesMin = 64 << 10;
inline constexpr uint32_t kWindowBytesMax = 16 << 20;

// The window after one of `now_bytes`, where `session_count` sessions share `budget_bytes`: at most
// an equal share, within the limits above. A power of two, or the share.
uint32_t NextWindowBytes(uint32_t now_bytes, uint64_t budget_bytes, int session_count);

// From now on probed windows of this process's connections share `budget_bytes`. False: this gRPC
// has no such hook, and windows must not be probed. Any thread; lasts as long as the process.
bool BoundProbedWindows(uint64_t budget_bytes);

// How many sessions share the budget now. Any thread.
void ShareProbedWindows(int session_count);

}  // namespace h5mirror::server

#endif  // H5MIRROR_SERVER_DOOR_RECEIVE_WINDOWS_H_
