// The readers' part of the module's C face: see client_vfd/api/session_api.h.
#ifndef H5MIRROR_CLIENT_VFD_SESSION_READER_MODULE_H_
#define H5MIRROR_CLIENT_VFD_SESSION_READER_MODULE_H_

#include "client_vfd/api/session_api.h"

namespace h5mirror::vfd {

H5mReader* ReaderOpen(const H5mReaderOpen* open, H5mReaderInfo* info, char* error,
                      size_t error_size);
int ReaderRead(H5mReader* reader, uint64_t offset, void* out, size_t size, int raw, char* error,
               size_t error_size);
void ReaderClose(H5mReader* reader);
int WaitForCut(const H5mWait* wait, int64_t* cut, char* error, size_t error_size);

}  // namespace h5mirror::vfd

#endif  // H5MIRROR_CLIENT_VFD_SESSION_READER_MODULE_H_
