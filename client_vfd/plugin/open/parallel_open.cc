#include "client_vfd/plugin/open/parallel_open.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <cstring>
#include <string>
#include <utility>

#include "client_vfd/plugin/config/real_path.h"
#include "client_vfd/plugin/host/h5_error.h"
#include "client_vfd/plugin/host/this_process.h"
#include "client_vfd/plugin/modes/left_out_bytes.h"
#include "client_vfd/plugin/modes/local_file.h"
#include "client_vfd/plugin/open/plan_open.h"
#include "client_vfd/plugin/parallel/mpi.h"
#include "client_vfd/plugin/parallel/parallel_file.h"

namespace h5mirror::vfd {
namespace {

// Rank 0's decision, as it is broadcast to the other ranks.
struct Decision {
  int32_t is_refused = 0;
  int32_t form = 0;  // Refusal::Form
  int32_t error_number = 0;
  std::array<char, 1024> text{};
};

Decision DecisionOf(const std::optional<Refusal>& refusal) {
  Decision decision;
  if (!refusal) return decision;
  decision.is_refused = 1;
  decision.form = static_cast<int32_t>(refusal->form);
  decision.error_number = refusal->error_number;
  const size_t size = std::min(refusal->text.size(), decision.text.size() - 1);
  std::memcpy(decision.text.data(), refusal->text.data(), size);
  return decision;
}

// True: the open goes on, on all ranks.
bool MayOpen(const OpenCall& call, FileFacts& facts, const Ranks& ranks,
             void (*look_ahead)(const OpenCall&)) {
  Decision decision;
  if (ranks.is_root()) {
    look_ahead(call);
    decision = DecisionOf(PlanOpen(Place::kLocal, call.request, *call.config, facts).refusal);
  }
  ranks.Broadcast(&decision, sizeof decision);
  if (decision.is_refused == 0) return true;
  decision.text.back() = '\0';
  if (decision.form == static_cast<int32_t>(Refusal::Form::kLock)) {
    PushOpenError(call.host, decision.text.data());
  } else {
    PushOpenErrno(call.host, call.request.name, decision.error_number, decision.text.data());
  }
  return false;
}

H5mStat ToStat(const struct stat& status) {
  const auto nanoseconds = [](const timespec& time) {
    return int64_t{time.tv_sec} * 1'000'000'000 + time.tv_nsec;
  };
  return H5mStat{status.st_ino, status.st_size, nanoseconds(status.st_mtim),
                 nanoseconds(status.st_ctim)};
}

// Of the local file, once all ranks have it open.
struct Opened {
  int fd = -1;  // to read it
  struct stat status {};
  std::optional<std::string> real_path;
};

Opened LookAt(const std::string& name) {
  Opened opened;
  opened.fd = open(name.c_str(), O_RDONLY | O_CLOEXEC);
  const bool has_status = opened.fd >= 0 && fstat(opened.fd, &opened.status) == 0;
  const std::unique_ptr<char, decltype(&std::free)> real(realpath(name.c_str(), nullptr),
                                                         std::free);
  if (has_status && real) opened.real_path = real.get();
  return opened;
}

Layers LayersOf(const OpenCall& call, const Opened& opened) {
  OpenedFacts facts;
  facts.real_path = opened.real_path;
  facts.path = RealPathOfMissing(call.request.name.c_str());
  facts.size_bytes = static_cast<uint64_t>(opened.status.st_size);
  return PlanLayers(call.request, *call.config, facts, HostName());
}

std::unique_ptr<LeftOutBytes> MakeLeftOut(const OpenCall& call, const Layers& layers,
                                          UnderFile& under) {
  LeftOutBytes::File file{RealPathOfMissing(call.request.name.c_str()), call.config->log,
                          layers.why_left_out.value_or("")};
  return std::make_unique<LeftOutBytes>(call.host, std::move(file), under, under,
                                        LeftOutBytes::Changes::kWrites);
}

std::unique_ptr<RootMirror> MakeRoot(const OpenCall& call, const struct stat* before,
                                     const Opened& opened, const Layers& layers, UnderFile& under) {
  const bool was_emptied = call.request.truncates && before != nullptr;
  MirrorTarget target;
  target.real_path = *opened.real_path;
  target.name = *layers.mirror_name;
  target.intent = layers.is_made ? H5M_CREATED : H5M_EXISTING;
  target.stat_at_open = ToStat(was_emptied ? *before : opened.status);
  target.mode_bits = opened.status.st_mode & 0777;
  target.is_written = true;
  return std::make_unique<RootMirror>(call.host, call.config, std::move(target), under, opened.fd,
                                      WantedLocking(call.host, call.fapl));
}

RootPtr LinkRootOf(const OpenCall& call) {
  if (call.root != nullptr) return call.root;
  auto root = std::make_shared<ReaderRoot>();
  root->config_text = call.config_text;
  return root;
}

FileKey KeyOf(const OpenCall& call) {
  struct stat status {};
  if (stat(call.request.name.c_str(), &status) != 0) return FileKey{&call.host, 0, 0};
  return FileKey{&call.host, status.st_dev, status.st_ino};
}

// As rank 0 tells the others.
enum class Sending : int32_t { kNone, kByRank0, kByNode };

// A limit of bandwidth is the file's, and a ticket is one server's.
Sending SendingOf(const Config& config, const RootMirror* root) {
  if (root == nullptr) return Sending::kNone;
  const bool by_node = config.parallel_senders == ParallelSenders::kNode &&
                       config.Servers().size() == 1 && config.bandwidth_bytes_per_second == 0;
  return by_node ? Sending::kByNode : Sending::kByRank0;
}

}  // namespace

std::unique_ptr<DriverFile> OpenParallel(const OpenCall& call, FileFacts& facts,
                                         void (*look_ahead)(const OpenCall&)) {
  std::string why;
  std::unique_ptr<Ranks> ranks = Ranks::Of(call.host, call.fapl, &why);
  if (ranks == nullptr) {
    PushOpenError(call.host, why);
    return nullptr;
  }
  if (!MayOpen(call, facts, *ranks, look_ahead)) return nullptr;
  const struct stat* const before = facts.before();
  auto under = OpenLocal(call.host, *call.config, call.request.name.c_str(), call.flags, call.fapl,
                         call.maxaddr);
  if (under == nullptr) return nullptr;
  std::unique_ptr<RootMirror> root;
  std::unique_ptr<LeftOutBytes> left_out;
  if (ranks->is_root() && call.request.writes) {
    const Opened opened = LookAt(call.request.name);
    const Layers layers = LayersOf(call, opened);
    if (layers.mirror_name) {
      root = MakeRoot(call, before, opened, layers, *under);
    } else {
      if (opened.fd >= 0) close(opened.fd);
      left_out = MakeLeftOut(call, layers, *under);
    }
  }
  Sending sending = SendingOf(*call.config, root.get());
  ranks->Broadcast(&sending, sizeof sending);
  const auto notes =
      sending != Sending::kNone ? ParallelFile::Notes::kKept : ParallelFile::Notes::kNone;
  auto senders = sending == Sending::kByNode
                     ? NodeSenders::Make(*ranks, call.config, call.request.name)
                     : nullptr;
  if (root != nullptr && senders != nullptr) root->AllowParts();
  auto file = std::make_unique<ParallelFile>(call.host, std::move(under), KeyOf(call),
                                             std::move(ranks), notes, LinkRootOf(call));
  file->SetRoot(std::move(root));
  file->SetSenders(std::move(senders));
  file->SetLeftOut(std::move(left_out));
  return file;
}

}  // namespace h5mirror::vfd
