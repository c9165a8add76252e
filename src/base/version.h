#ifndef BASE_VERSION_H
#define BASE_VERSION_H
/* The version as `git describe` told it when this was built. Layer 0. */
extern const char drivesim_version[];
#endif
