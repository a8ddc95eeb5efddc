"""Switches off the usage reports that our libraries send to their makers.

``rlm_core`` imports this module before anything else, so the variables are set before one of these libraries is
imported, and the processes that this one starts inherit them. They override what the user has set: without that, "there
is no telemetry" would depend on the machine.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from types import MappingProxyType

VARIABLES: Mapping[str, str] = MappingProxyType(
    {
        # From 1.29 on, onnxruntime writes a device id and contacts its maker on all systems but Windows, also after
        # `disable_telemetry_events`.
        "ORT_DISABLE_TELEMETRY": "1",
        # huggingface_hub, and transformers through it.
        "HF_HUB_DISABLE_TELEMETRY": "1",
        "RAY_USAGE_STATS_ENABLED": "0",
    }
)

os.environ |= VARIABLES
