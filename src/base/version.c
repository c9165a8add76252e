#include "base/version.h"
const char drivesim_version[] = DRIVESIM_VERSION;
