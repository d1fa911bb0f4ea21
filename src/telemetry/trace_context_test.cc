#include "telemetry/trace_context.h"

#include <gtest/gtest.h>
