/* SPDX-License-Identifier: Apache-2.0 */
/* All of Headrace's runtime interface. The trace library's is in headrace/trace.h. */
#ifndef HEADRACE_H
#define HEADRACE_H

#include <headrace/bench.h>
#include <headrace/copy.h>
#include <headrace/device.h>
#include <headrace/dtype.h>
#include <headrace/io.h>
#include <headrace/memory.h>
#include <headrace/observe.h>
#include <headrace/op.h>
#include <headrace/pipeline.h>
#include <headrace/status.h>
#include <headrace/stream.h>
#include <headrace/version.h>

#endif
