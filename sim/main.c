#include "base/version.h"
#include <stdio.h>
int main(void)
{
    printf("drivesim %s\n", drivesim_version);
    return 2;
}
