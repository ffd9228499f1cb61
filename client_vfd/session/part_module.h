// The C face of parts of a cut: part_ticket, end_part and send_part of session_api.h.
#ifndef H5MIRROR_CLIENT_VFD_SESSION_PART_MODULE_H_
#define H5MIRROR_CLIENT_VFD_SESSION_PART_MODULE_H_

#include <cstddef>

#include "client_vfd/api/session_api.h"

namespace h5mirror::vfd {

int TicketForPart(H5mSession* session, H5mPartTicket* ticket);
int EndPart(H5mSession* session, const H5mPartTicket* ticket, const H5mRange* ranges,
            size_t range_count, int is_sent);
int SendPart(const H5mPart* part, char* error, size_t error_size);

}  // namespace h5mirror::vfd

#endif  // H5MIRROR_CLIENT_VFD_SESSION_PART_MODULE_H_
