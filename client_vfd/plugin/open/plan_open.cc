#include "client_vfd/plugin/open/plan_open.h"

#include <cerrno>
#include <cstring>
#include <utility>

#include "client_vfd/plugin/config/name_rules.h"

namespace h5mirror::vfd {
namespace {

OpenPlan Refuse(int error_number, std::string text) {
  OpenPlan plan;
  plan.refusal = Refusal{Refusal::Form::kErrno, error_number, std::move(text)};
  return plan;
}

OpenPlan RefuseForLock() {
  OpenPlan plan = Refuse(EAGAIN, "unable to lock file, errno = " + std::to_string(EAGAIN) +
                                     ", error message = '" + std::strerror(EAGAIN) + "'");
  plan.refusal->form = Refusal::Form::kLock;
  return plan;
}

OpenPlan Go(Place place) {
  OpenPlan plan;
  plan.place = place;
  return plan;
}

OpenPlan PlanReader(const OpenRequest& request) {
  if (request.writes || request.truncates || request.creates) {
    return Refuse(EROFS,
                  "mode=reader reads versions on the server and changes none; open it with mode "
                  "\"r\", or leave it out by root=, include= or exclude=");
  }
  return Go(Place::kReader);
}

Problem ProblemOfRemote(const Config& config, OpenFacts& facts) {
  if (config.IsEmbedded()) {
    return "mode=remote needs a server; with server=embedded the files are local";
  }
  if (config.Servers().size() > 1) {
    return "mode=remote writes to one server, and server= names " +
           std::to_string(config.Servers().size());
  }
  if (config.under != UnderDriver::kSec2) return "mode=remote does no local I/O: leave out under=";
  if (!config.version.empty()) {
    return "mode=remote opens the newest cut: read version=" + config.version + " with mode=reader";
  }
  if (!facts.LiesInServersRoot()) return "it lies outside of the server's root";
  return std::nullopt;
}

OpenPlan PlanRemote(const Config& config, OpenFacts& facts) {
  if (const Problem problem = ProblemOfRemote(config, facts)) return Refuse(EINVAL, *problem);
  return Go(Place::kRemote);
}

OpenPlan PlanEmbedded(const OpenRequest& request, const Config& config, OpenFacts& facts) {
  const bool exists = facts.Exists();
  const bool ours = exists && facts.IsOpenHere();
  if (exists && !ours && !request.truncates) {
    if (const Problem problem = facts.SwmrWriterAtWork()) return Refuse(EAGAIN, *problem);
  }
  if (config.under != UnderDriver::kSec2) {
    return Refuse(EINVAL, "server=embedded does its own I/O: leave out under=");
  }
  if (exists && request.makes_new) return Refuse(EEXIST, std::strerror(EEXIST));
  const int why_not = exists ? facts.WhyNotWritable() : 0;
  if (why_not != 0) return Refuse(why_not, std::strerror(why_not));
  OpenPlan plan = Go(Place::kEmbedded);
  plan.makes = request.truncates || (!exists && request.creates);
  plan.has_lock = ours;
  return plan;
}

// Whether writes to such a file are to go to a server.
bool Mirrors(const Config& config) { return config.mode == Mode::kMirror && !config.IsEmbedded(); }

OpenPlan PlanLocal(const OpenRequest& request, const Config& config, OpenFacts& facts) {
  if (!facts.Exists()) return Go(Place::kLocal);
  const bool mirrors = request.writes && Mirrors(config) && facts.IsTaken();
  if (mirrors) {
    if (const Problem problem = facts.HistoryBeside()) return Refuse(EPERM, *problem);
  }
  if (facts.IsOpenHere()) return Go(Place::kLocal);
  if (mirrors && !request.truncates) {
    if (const Problem problem = facts.EditBrokenOff()) return Refuse(EPERM, *problem);
  }
  // The open empties the file before it could take the lock.
  if (request.truncates && facts.IsLockedByOther()) return RefuseForLock();
  return Go(Place::kLocal);
}

}  // namespace

Place PlaceOf(const Config& config, OpenFacts& facts) {
  if (config.mode == Mode::kReader && facts.IsTaken()) return Place::kReader;
  if (config.mode == Mode::kRemote && facts.IsTaken()) return Place::kRemote;
  const bool is_embedded = config.IsEmbedded() && config.mode == Mode::kMirror;
  return is_embedded && facts.IsTaken() ? Place::kEmbedded : Place::kLocal;
}

OpenPlan PlanOpen(Place place, const OpenRequest& request, const Config& config, OpenFacts& facts) {
  switch (place) {
    case Place::kReader:
      return PlanReader(request);
    case Place::kRemote:
      return PlanRemote(config, facts);
    case Place::kEmbedded:
      return PlanEmbedded(request, config, facts);
    case Place::kLocal:
      break;
  }
  return PlanLocal(request, config, facts);
}

bool BuffersMetadata(const OpenRequest& request, const Config& config, const std::string& path) {
  return config.metadata == MetadataPlace::kMemory && config.mode != Mode::kReader &&
         !config.IsEmbedded() && request.writes && !request.writes_swmr &&
         PathUnderRoot(config, path);
}

bool LooksForSwmrWriter(const OpenRequest& request, bool was_open_here) {
  return request.writes && !request.truncates && !was_open_here;
}

Layers PlanLayers(const OpenRequest& request, const Config& config, const OpenedFacts& facts,
                  const std::string& host_name) {
  Layers layers;
  if (Mirrors(config) && facts.real_path) {
    layers.mirror_name = MirrorName(config, *facts.real_path, host_name);
  }
  layers.is_made = request.truncates || facts.size_bytes == 0;
  layers.buffers_metadata = BuffersMetadata(request, config, facts.path);
  layers.looks_for_swmr_writer = LooksForSwmrWriter(request, facts.was_open_here);
  layers.marks_swmr = request.writes_swmr;
  if (!layers.mirror_name) {
    const std::string why = WhyLeftOut(config, facts.path);
    layers.why_left_out = why.empty() ? "its path or its descriptor cannot be looked at" : why;
  }
  return layers;
}

}  // namespace h5mirror::vfd
