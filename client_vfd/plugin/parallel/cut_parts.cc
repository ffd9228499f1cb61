#include "client_vfd/plugin/parallel/cut_parts.h"

#include <algorithm>
#include <cstring>
#include <iterator>
#include <map>
#include <utility>

namespace h5mirror::vfd {
namespace {

using Run = NotedPages::Run;

// Disjoint runs.
class Runs {
 public:
  void Add(Run run) {
    auto at = runs_.upper_bound(run.offset);
    if (at != runs_.begin() && std::prev(at)->second >= run.offset) --at;
    while (at != runs_.end() && at->first <= run.end) {
      run.offset = std::min(run.offset, at->first);
      run.end = std::max(run.end, at->second);
      at = runs_.erase(at);
    }
    runs_.emplace_hint(at, run.offset, run.end);
  }

  // The parts of the runs that `others` do not have, before `size_bytes`.
  std::vector<Run> Without(const Runs& others, uint64_t size_bytes) const {
    std::vector<Run> left;
    for (const auto& [offset, run_end] : runs_) {
      const uint64_t end = std::min(run_end, size_bytes);
      uint64_t from = offset;
      auto other = others.runs_.upper_bound(offset);
      if (other != others.runs_.begin()) --other;
      for (; from < end && other != others.runs_.end() && other->first < end; ++other) {
        if (other->first > from) left.push_back({from, other->first});
        from = std::max(from, other->second);
      }
      if (from < end) left.push_back({from, end});
    }
    return left;
  }

 private:
  std::map<uint64_t, uint64_t> runs_;  // offset -> end
};

uint64_t BytesOf(const std::vector<Run>& runs) {
  uint64_t bytes = 0;
  for (const Run& run : runs) bytes += run.end - run.offset;
  return bytes;
}

// A message of fixed-size words and texts.
class Writer {
 public:
  void Word(uint64_t word) { Bytes(&word, sizeof word); }
  void Bytes(const void* data, size_t size) { out_.append(static_cast<const char*>(data), size); }
  std::string Take() { return std::move(out_); }

 private:
  std::string out_;
};

class Reader {
 public:
  explicit Reader(std::string_view in) : in_(in) {}
  bool Bytes(void* out, size_t size) {
    if (in_.size() < size) return false;
    std::memcpy(out, in_.data(), size);
    in_.remove_prefix(size);
    return true;
  }
  bool Word(uint64_t* out) { return Bytes(out, sizeof *out); }
  // How many things of `size` bytes follow, as a word says.
  bool Count(size_t size, uint64_t* out) { return Word(out) && *out <= in_.size() / size; }
  bool is_at_end() const { return in_.empty(); }

 private:
  std::string_view in_;
};

bool ReadPart(Reader& in, CutPart* part) {
  uint64_t rank = 0, count = 0;
  if (!in.Word(&rank) || !in.Count(2 * sizeof(uint64_t), &count)) return false;
  part->rank = static_cast<int>(rank);
  part->runs.resize(count);
  return std::all_of(part->runs.begin(), part->runs.end(), [&](Run& run) {
    return in.Word(&run.offset) && in.Word(&run.end) && run.offset < run.end;
  });
}

}  // namespace

std::vector<int> SendersOf(const std::vector<std::string>& hosts) {
  std::vector<int> senders;
  for (const std::string& host : hosts) {
    senders.push_back(
        static_cast<int>(std::find(hosts.begin(), hosts.end(), host) - hosts.begin()));
  }
  return senders;
}

void LeaveToRank0(const std::vector<bool>& can_read, std::vector<int>* senders) {
  for (int& sender : *senders) {
    if (!can_read[static_cast<size_t>(sender)]) sender = 0;
  }
}

SplitCut SplitByNode(const std::vector<RankNotes>& notes, const std::vector<int>& senders,
                     uint64_t size_bytes, uint64_t part_bytes_min) {
  SplitCut split;
  Runs taken;
  std::map<int, Runs> by_sender;
  for (size_t rank = 0; rank < notes.size(); ++rank) {
    for (const Run& run : notes[rank].metadata) {
      split.own.metadata.push_back(run);
      taken.Add(run);
    }
    for (const Run& run : notes[rank].raw) {
      by_sender[senders[rank]].Add(run);
      if (senders[rank] != 0) continue;
      split.own.raw.push_back(run);
      taken.Add(run);
    }
  }
  by_sender.erase(0);
  for (const auto& [sender, runs] : by_sender) {
    std::vector<Run> left = runs.Without(taken, size_bytes);
    for (const Run& run : left) taken.Add(run);
    if (BytesOf(left) < part_bytes_min) {
      split.own.raw.insert(split.own.raw.end(), left.begin(), left.end());
    } else {
      split.parts.push_back({sender, std::move(left)});
    }
  }
  return split;
}

std::vector<H5mRange> RangesOf(const CutPart& part) {
  std::vector<H5mRange> ranges;
  ranges.reserve(part.runs.size());
  for (const Run& run : part.runs) ranges.push_back({run.offset, run.end - run.offset});
  return ranges;
}

std::string ToBytes(const PartPlan& plan) {
  Writer out;
  out.Bytes(&plan.ticket, sizeof plan.ticket);
  out.Word(plan.name.size());
  out.Bytes(plan.name.data(), plan.name.size());
  out.Word(plan.parts.size());
  for (const CutPart& part : plan.parts) {
    out.Word(static_cast<uint64_t>(part.rank));
    out.Word(part.runs.size());
    for (const Run& run : part.runs) {
      out.Word(run.offset);
      out.Word(run.end);
    }
  }
  return out.Take();
}

std::optional<PartPlan> PlanFromBytes(std::string_view bytes) {
  Reader in(bytes);
  PartPlan plan;
  uint64_t size = 0, count = 0;
  if (!in.Bytes(&plan.ticket, sizeof plan.ticket) || !in.Count(1, &size)) return std::nullopt;
  plan.name.resize(size);
  if (!in.Bytes(plan.name.data(), size)) return std::nullopt;
  if (!in.Count(2 * sizeof(uint64_t), &count)) return std::nullopt;
  plan.parts.resize(count);
  for (CutPart& part : plan.parts) {
    if (!ReadPart(in, &part)) return std::nullopt;
  }
  if (!in.is_at_end()) return std::nullopt;
  return plan;
}

}  // namespace h5mirror::vfd
