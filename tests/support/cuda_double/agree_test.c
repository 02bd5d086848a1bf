/* SPDX-License-Identifier: Apache-2.0 */
/* Do the double's headers and the toolkit's say the same? */
#include <stdio.h>
#include <string.h>

typedef struct agree_fact {
    const char *name;
    long long value;
} agree_fact;

extern const agree_fact agree_double[];
extern const agree_fact agree_toolkit[];

int main(void)
{
    int wrong = 0;
    int count = 0;
    for (; agree_double[count].name != NULL; count++) {
        const agree_fact *ours = &agree_double[count];
        const agree_fact *theirs = &agree_toolkit[count];
        if (theirs->name == NULL || strcmp(ours->name, theirs->name) != 0 || ours->value != theirs->value) {
            printf("%s: %lld in the double, %lld in the toolkit\n", ours->name, ours->value, theirs->value);
            wrong++;
        }
    }
    printf("%d facts, %d wrong\n", count, wrong);
    return wrong == 0 && count > 100 ? 0 : 1;
}
