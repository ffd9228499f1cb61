#include "client_vfd/plugin/metadata_buffer/buffer_put.h"

#include <algorithm>
#include <iterator>
#include <string_view>

namespace h5mirror::vfd {
namespace {

// After so many writes in a row of which less than half was in the file already, a put compares no
// more: reading what it replaces would double its system calls for nothing.
constexpr int kFutileCompares = 16;

// The part of `run` between the first and the last byte that the file has otherwise.
BufferedBytes::Run DifferingPart(BufferedBytes::Run run, LocalBytes& file, Scratch& local) {
  if (run.end() > file.LocalSizeBytes()) return run;
  // Bytes that cannot be read for the comparison are written.
  if (!file.ReadLocal(run.offset, run.bytes.size(), local.data())) return run;
  const std::string_view there(local.data(), run.bytes.size());
  const auto first = std::mismatch(run.bytes.begin(), run.bytes.end(), there.begin()).first;
  const auto head = static_cast<size_t>(first - run.bytes.begin());
  if (head == run.bytes.size()) return {run.end(), {}};
  const auto last = std::mismatch(run.bytes.rbegin(), run.bytes.rend(), there.rbegin()).first;
  const auto tail = static_cast<size_t>(last - run.bytes.rbegin());
  return {run.offset + head, run.bytes.substr(head, run.bytes.size() - head - tail)};
}

}  // namespace

bool PutBuffered(uint64_t from, uint64_t to, EqualBytes equal, BufferedBytes& buffered,
                 LocalBytes& file, PutBuffers& buffers) {
  int futile = equal == EqualBytes::kSkip ? 0 : kFutileCompares;
  while (const auto run = buffered.NextRun(from, to, file.BlankFrom(), buffers.run)) {
    const bool compares = futile < kFutileCompares;
    const BufferedBytes::Run differing = compares ? DifferingPart(*run, file, buffers.local) : *run;
    if (compares) futile = differing.bytes.size() > run->bytes.size() / 2 ? futile + 1 : 0;
    if (!differing.bytes.empty() &&
        !file.WriteLocal(differing.offset, differing.bytes.size(), differing.bytes.data())) {
      return false;
    }
    from = run->end();
    buffered.Drop({run->offset, run->bytes.size()});
  }
  return true;
}

}  // namespace h5mirror::vfd
