"""Devices that the model was not trained on, from 10 to 100 measurements each, with frozen weights.

``measurements`` reads what was measured, ``build`` asks the model about it and fits, ``fit`` is the method on plain
matrices, ``store`` keeps adapters as JSON, ``predictor`` answers queries on adapted devices.
"""

from __future__ import annotations

from .build import Adaptation, RefusedRow, adapt, suggest
from .fit import MIN_MEASUREMENTS, DeviceFit, choose, fit_device
from .measurements import Measurement, read_measurements
from .predictor import AdaptedPredictor, UserCorrections, with_corrections
from .store import Adapter, adapter_path, check_name, read_adapters, write_adapters

__all__ = [
    "MIN_MEASUREMENTS",
    "Adaptation",
    "AdaptedPredictor",
    "Adapter",
    "DeviceFit",
    "Measurement",
    "RefusedRow",
    "UserCorrections",
    "adapt",
    "adapter_path",
    "check_name",
    "choose",
    "fit_device",
    "read_adapters",
    "read_measurements",
    "suggest",
    "with_corrections",
    "write_adapters",
]
