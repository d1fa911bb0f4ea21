#include <gtest/gtest.h>

#include "telemetry/trace_context.h"
