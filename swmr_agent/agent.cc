#include "swmr_agent/agent.h"

#include <unistd.h>

#include <utility>

#include "absl/time/clock.h"
#include "base/human.h"
#include "base/strings.h"

namespace h5mirror::agent {
namespace {

// Each has a thread and a stream.
constexpr size_t kFilesMax = 256;

}  // namespace

Agent::Agent(const Config& config)
    : config_(config),
      rights_(clock_,
              [](Upstream& server, const v1::CheckReaderRequest& request) {
                return server.CheckReader(request);
              }),
      pool_(std::make_shared<BlockPool>(config.cache_bytes)) {
  for (const rpc::ClientOptions& options : config_.servers) {
    servers_.push_back(std::make_unique<Upstream>(options));
  }
  for (const std::string& name : config_.publish_files) {
    published_.emplace(name, std::make_unique<PublishedFile>(config_.publish_directory, name));
  }
  OnTimer();
}

Agent::~Agent() {
  for (auto& [name, published] : published_) published->Stop();
  std::vector<FilePtr> files;
  absl::MutexLock lock(&mutex_);
  for (auto& [key, file] : files_) files.push_back(std::move(file));
  files_.clear();
  closer_.Take(std::move(files));
}

absl::StatusOr<Upstream*> Agent::FindServer(const std::string& target) {
  for (const auto& server : servers_) {
    if (server->Has(target)) return server.get();
  }
  return absl::FailedPreconditionError(
      StrCat("h5mirror-agent is not set up for ", target.empty() ? "no server" : target,
             ": name it with --server, or in [[server]] of its configuration"));
}

bool Agent::IsTrusted(uid_t user) const {
  return config_.users == Config::Users::kAll || user == 0 || user == geteuid();
}

absl::Status Agent::CheckReader(Upstream& server, uid_t user, const std::string& name) {
  return IsTrusted(user) ? absl::OkStatus() : rights_.Check(server, user, name);
}

absl::Status Agent::LookAtReader(const Upstream& server, uid_t user, const std::string& name) {
  return IsTrusted(user) ? absl::OkStatus() : rights_.Look(server, user, name);
}

Agent::FilePtr Agent::Find(const Upstream& server, const std::string& name) {
  absl::MutexLock lock(&mutex_);
  const auto found = files_.find({&server, name});
  return found == files_.end() ? nullptr : found->second;
}

Agent::FilePtr Agent::Start(Upstream& server, const std::string& name) {
  const auto published = published_.find(name);
  const bool is_published = &server == servers_.front().get() && published != published_.end();
  return std::make_shared<FollowedFile>(
      server, name, pool_, FollowedFile::Subscription{config_.cache_bytes / 4, config_.tick_len},
      is_published ? published->second.get() : nullptr);
}

Agent::FilePtr Agent::Follow(Upstream& server, const std::string& name) {
  absl::MutexLock lock(&mutex_);
  FilePtr& file = files_[{&server, name}];
  if (file != nullptr && file->ended().ok()) return file;
  if (file == nullptr && files_.size() > kFilesMax) {
    files_.erase({&server, name});
    return nullptr;
  }
  closer_.Take({std::move(file)});
  file = Start(server, name);
  return file;
}

void Agent::OnTimer() {
  std::vector<FilePtr> unused;
  {
    absl::MutexLock lock(&mutex_);
    for (auto at = files_.begin(); at != files_.end();) {
      const bool is_published = published_.contains(at->first.second);
      const bool is_idle = absl::Now() - at->second->last_use() > config_.idle;
      if (!at->second->ended().ok() || (is_idle && !is_published)) {
        unused.push_back(std::move(at->second));
        at = files_.erase(at);
      } else {
        ++at;
      }
    }
  }
  closer_.Take(std::move(unused));
  for (const auto& [name, published] : published_) {
    static_cast<void>(Follow(*servers_.front(), name));
  }
}

std::string Agent::Summary() {
  FollowedFile::Count all;
  size_t files;
  {
    absl::MutexLock lock(&mutex_);
    files = files_.size();
    for (const auto& [key, file] : files_) {
      const FollowedFile::Count count = file->count();
      all.cuts += count.cuts;
      all.readers += count.readers;
      all.cuts_seen += count.cuts_seen;
    }
  }
  const BlockPool::Count pool = pool_->count();
  const uint64_t looks = pool.hits + pool.misses;
  return StrCat("follows ", files, " files, ", all.cuts_seen, " cuts came, ", all.cuts, " kept, ",
                all.readers, " opens; cache ", HumanBytes(pool.used_bytes), " of ",
                HumanBytes(config_.cache_bytes), " and ", HumanBytes(pool.reserved_bytes),
                " to map, ", looks == 0 ? 100 : 100 * pool.hits / looks, "% hits");
}

}  // namespace h5mirror::agent
