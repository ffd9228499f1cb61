#include "client_vfd/session/state/mirror_base.h"

#include <algorithm>
#include <utility>

namespace h5mirror::vfd {

void MirrorBase::Claim(Relation relation) {
  relation_ = std::move(relation);
  base_cut_ = FirstBase(relation_);
}

void MirrorBase::SetLevel(int64_t cut, int64_t version) {
  cut_ = cut;
  version_ = version;
}

void MirrorBase::TakeUp(const DirtyMap& map) {
  took_up_map_ = true;
  relation_ = RelationOfMap(map, relation_);
  base_cut_ = map.base_cut;
  if (map.claim != DirtyMap::Claim::kResume) return;
  followed_session_ = map.session_id;
  cut_seen_ = map.cut_newest;
  heritage_ = Heritage::kSends;
}

void MirrorBase::Follow(const Bytes16& session, int64_t base_cut, int64_t cut_seen) {
  followed_session_ = session;
  base_cut_ = base_cut;
  cut_seen_ = cut_seen;
  heritage_ = Heritage::kFollows;
}

void MirrorBase::Inherit(Relation relation, int64_t base_cut, int64_t cut_seen, int from,
                         Heritage heritage) {
  relation_ = std::move(relation);
  base_cut_ = base_cut;
  cut_seen_ = cut_seen;
  inherited_from_ = from;
  heritage_ = heritage;
}

void MirrorBase::SendAgain() {
  if (heritage_ == Heritage::kFollows) heritage_ = Heritage::kFollowsAgain;
}

void MirrorBase::BeginAsNewFile() {
  relation_ = Relation{};
  base_cut_ = cut_ = version_ = 0;
}

bool MirrorBase::HasLostGeneration(int64_t last_cut) const {
  // A number is never given twice.
  return relation_.claim == vfd::Claim::kReplace && base_cut_ == 0 && last_cut < cut_seen_ &&
         !begins_again_;
}

void MirrorBase::OnNew() {
  base_cut_ = 0;
  cut_seen_ = 0;
}

bool MirrorBase::OnTaken(int64_t last_cut, int64_t durable_cut) {
  // Should the server lose it again, what it held is among the changes that came with the open;
  // where it is durable, they are needed no more.
  const bool is_safe = follows_cut() && durable_cut == last_cut;
  if (is_safe) {
    inherited_from_ = 0;
    heritage_ = sends_inherited() ? Heritage::kSends : Heritage::kOwn;
  }
  if (!follows_cut()) base_cut_ = last_cut;
  return is_safe;
}

void MirrorBase::OnVisible(int64_t cut) { cut_seen_ = std::max(cut_seen_, cut); }

void MirrorBase::OnDurable(int64_t cut, int64_t version) {
  base_cut_ = cut_ = cut;
  inherited_from_ = 0;
  heritage_ = Heritage::kOwn;
  took_up_map_ = false;
  OnVisible(cut);
  if (version != 0) version_ = version;
}

StreamClaim MirrorBase::NextClaim(uint64_t last_seq, bool ever_opened) const {
  return StreamClaimOf(relation_,
                       {last_seq, ever_opened, base_cut_, sends_inherited(), begins_again_});
}

StreamClaim MirrorBase::ClaimIfLost(uint64_t last_seq, bool ever_opened) const {
  return StreamClaimOf(relation_,
                       {last_seq, ever_opened, base_cut_, heritage_ != Heritage::kOwn, false});
}

}  // namespace h5mirror::vfd
