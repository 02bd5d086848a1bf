/* SPDX-License-Identifier: Apache-2.0 */
/* All of the model: what readers, rules, replay and renderers share. */
#ifndef HR_TRACE_MODEL_MODEL_H
#define HR_TRACE_MODEL_MODEL_H

#include "trace/model/call.h"
#include "trace/model/finding.h"
#include "trace/model/graph.h"
#include "trace/model/interval.h"
#include "trace/model/report.h"
#include "trace/model/trace.h"

#endif
