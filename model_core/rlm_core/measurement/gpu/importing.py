"""Imports the user's file as a module: under its package's name where it stands in one, so relative imports work."""

from __future__ import annotations

import importlib
import importlib.util
import sys
import zlib
from pathlib import Path
from types import ModuleType


def import_file(path: Path) -> ModuleType:
    """The module of a Python file; its code runs.

    Raises:
        ImportError: the file cannot be imported as a module; and whatever its own code raises.
    """
    path = path.resolve()
    root, names = path.parent, [path.stem]
    while (root / "__init__.py").is_file() and root.name.isidentifier():
        names.insert(0, root.name)
        root = root.parent
    sys.path.insert(0, str(root))
    if len(names) > 1:
        return importlib.import_module(".".join(names))
    # Two files of one name may be imported one after the other, and neither is to shadow a library.
    name = f"{path.stem.replace('.', '_')}_{zlib.crc32(str(path).encode()):08x}"
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise ImportError(f"{path}: is not a Python file")
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module
