// Finds in the sequence of driver callbacks the moments at which HDF5's bytes are consistent.
//
//   H5Fflush                   truncate(closing=0) .. flush(closing=0), writes between allowed
//   H5Dflush and the like      flush(0) alone: no cut, a copy taken there can be corrupt
//   H5Fflush in SWMR-write     flush(0) alone is a cut
//   clean close                truncate(1), flush(1), truncate(1), superblock write, close
//
// After a failed write, truncate or flush the sequence in progress is no such moment: HDF5 goes on
// into the close callback after a failed flush. Not thread-safe: HDF5 calls a file's driver from
// one thread at a time.
#ifndef H5MIRROR_CLIENT_VFD_PLUGIN_WRITES_BARRIER_DETECTOR_H_
#define H5MIRROR_CLIENT_VFD_PLUGIN_WRITES_BARRIER_DETECTOR_H_

namespace h5mirror::vfd {

enum class Outcome { kOk, kFailed };
enum class Phase { kOpen, kClosing };
enum class Moment { kNone, kFlush, kClose };

// Of a callback's result, and of its `closing` flag.
constexpr Outcome OutcomeOf(int result) { return result < 0 ? Outcome::kFailed : Outcome::kOk; }
constexpr Phase PhaseOf(bool closing) { return closing ? Phase::kClosing : Phase::kOpen; }

class BarrierDetector {
 public:
  void OnWrite(Outcome outcome);
  void OnTruncate(Phase phase, Outcome outcome);
  // kFlush: the bytes are consistent now.
  Moment OnFlush(Phase phase, Outcome outcome);
  // kClose: this close is a clean one.
  Moment OnClose() const;
  // A superblock was written with or without the SWMR-write flag, or the file was opened for SWMR.
  void SetSwmr(bool writing) { swmr_ = writing; }
  bool swmr() const { return swmr_; }

 private:
  enum class Closing { kNo, kTruncated, kFlushed, kReady };

  void Fail();

  bool truncated_ = false;  // a truncate(0) since the last flush(0)
  bool failed_ = false;     // a call failed since the last consistent flush
  bool swmr_ = false;
  Closing closing_ = Closing::kNo;
};

}  // namespace h5mirror::vfd

#endif  // H5MIRROR_CLIENT_VFD_PLUGIN_WRITES_BARRIER_DETECTOR_H_
