/* SPDX-License-Identifier: Apache-2.0 */
/* headrace audit. */
#include "cli.h"

int cmd_audit(const cli_args *args)
{
    (void)args;
    return cli_fail(CLI_UNUSABLE, "audit", "this build has no audit");
}
