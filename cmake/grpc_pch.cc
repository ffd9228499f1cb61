// Carries the precompiled gRPC headers; see H5mTargets.cmake.
