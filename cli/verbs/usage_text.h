// A caller's use of its limits and quotas, as people and programs read it.
#ifndef H5MIRROR_CLI_VERBS_USAGE_TEXT_H_
#define H5MIRROR_CLI_VERBS_USAGE_TEXT_H_

#include <string>
#include <vector>

#include "cli/output/json.h"
#include "h5mirror/v1/server.pb.h"

namespace h5mirror::tools {

// "sessions 9 of 10"; an amount of bytes as a size.
std::string AmountText(const v1::Amount& amount);

// The amounts of which nine tenths or more are used, as AmountText(); those of a directory with it.
std::vector<std::string> NearlyUsedUp(const v1::Usage& usage);

// The directory, for people.
std::string PlaceText(const v1::SpaceUse& space);

// "token anna", "192.0.2.7".
std::string CallerText(const v1::CallerUse& caller);

Json UsageToJson(const v1::Usage& usage);

}  // namespace h5mirror::tools

#endif  // H5MIRROR_CLI_VERBS_USAGE_TEXT_H_
