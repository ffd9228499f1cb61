// h5mirror usage: the callers' use of their limits and quotas.
#include <memory>
#include <string>

#include "base/status_macros.h"
#include "base/strings.h"
#include "cli/verbs/usage_text.h"
#include "cli/verbs/verbs.h"

namespace h5mirror::tools {
namespace {

constexpr char kNoPlace[] = "-";  // of amounts without a directory

struct Options {
  bool all = false;
};

template <typename Amounts>
void AddRows(const std::string& whose, const std::string& place, const std::string& table,
             const Amounts& amounts, Table& rows) {
  for (const v1::Amount& amount : amounts) {
    v1::Amount limit = amount;
    limit.set_used(amount.limit());
    limit.clear_limit();
    v1::Amount used = amount;
    used.clear_limit();
    const auto number = [](const v1::Amount& each) {
      return AmountText(each).substr(each.what().size() + 1);
    };
    rows.AddRow({whose, place, amount.what(), number(used),
                 amount.has_limit() ? number(limit) : "-",
                 place == kNoPlace ? StrCat(amount.refused()) : "-", table});
  }
}

absl::StatusOr<int> RunUsage(Context& context, const Options& options) {
  H5M_ASSIGN_OR_RETURN(rpc::Client * client, context.Connect());
  v1::GetUsageRequest request;
  request.set_all(options.all);
  Table rows({{"CALLER", Align::kLeft},
              {"PLACE", Align::kLeft, Narrow::kClip},
              {"WHAT", Align::kLeft},
              {"USED", Align::kRight},
              {"LIMIT", Align::kRight},
              {"REFUSED", Align::kRight, Narrow::kLeaveOut},
              {"TABLE", Align::kLeft, Narrow::kLeaveOut}});
  Json usages = Json::array();
  bool is_counted = false;
  do {
    H5M_ASSIGN_OR_RETURN(const v1::GetUsageResponse page, client->GetUsage(request));
    for (const v1::Usage& usage : page.usages()) {
      if (context.json()) {
        usages.push_back(UsageToJson(usage));
        continue;
      }
      const v1::CallerUse& caller = usage.caller();
      const std::string whose = usage.has_caller() ? CallerText(caller) : "-";
      AddRows(whose, kNoPlace, caller.table().empty() ? "-" : caller.table(), caller.amounts(),
              rows);
      for (const v1::SpaceUse& space : usage.spaces()) {
        AddRows(whose, PlaceText(space), space.table(), space.amounts(), rows);
      }
    }
    is_counted = is_counted || !rows.empty();
    if (!rows.empty()) context.Print(rows);
    request.set_page_token(page.next_page_token());
  } while (!request.page_token().empty());
  if (context.json()) {
    context.Print(Json{{"server", client->options().server}, {"usages", std::move(usages)}});
  } else if (!is_counted) {
    context.Say("this server has neither limits nor quotas for you");
  }
  return kExitOk;
}

}  // namespace

void AddUsage(CLI::App& app, Context& context, Action& action) {
  auto options = std::make_shared<Options>();
  CLI::App* verb = app.add_subcommand("usage", "Show your use of the server's limits and quotas");
  verb->add_flag("--all", options->all, "the use of all callers; needs the right operate");
  OnVerb(*verb, context, action, options, RunUsage);
}

}  // namespace h5mirror::tools
