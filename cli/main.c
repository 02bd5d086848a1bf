/* SPDX-License-Identifier: Apache-2.0 */
#include <headrace/headrace.h>

#include <stdio.h>

int main(void)
{
    printf("headrace %s\n", hr_version());
    return 0;
}
