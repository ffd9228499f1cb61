// Carries a set of precompiled headers; see H5mPrecompiled.cmake.
