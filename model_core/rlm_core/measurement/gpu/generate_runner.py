"""Writes training kernels in the child process: each module of a batch -> the Triton of ``torch.compile`` as files.

With a GPU the module is compiled on it, else for a target (:mod:`inductor`). A row names the files that were written.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch

from .bench_spec import DTYPES
from .channel import Channel
from .importing import import_file
from .inductor import kernels_in, written_kernels
from .rows import row_key
from .targets import Target, target_named


def run(options: Mapping[str, Any], channel: Channel) -> None:
    """Work through ``options["modules"]``, writing below ``options["folder"]``."""
    on_gpu, target = options["device"] == "cuda", target_named(options["target"])
    device = torch.cuda.get_device_name(0) if on_gpu else target.name
    folder = Path(options["folder"])
    for name, dtype in options["modules"]:
        path = folder / name
        about = {"path": str(path), "device": device, "mode": "generate", "case": {"dtype": dtype}}
        key = row_key(module=path.read_text(encoding="utf-8"), **about, torch=torch.__version__)
        if not channel.wanted(key):
            continue
        channel.begin({"key": key, **about})
        try:
            module = import_file(path)
            code = _compiled(module, dtype) if on_gpu else _lowered(module, dtype, target)
            kernels = {f"{path.stem}_{dtype}_{name}": text for name, text in kernels_in(code).items()}
            for stem, text in kernels.items():
                _write(folder.parent / "kernels" / f"{stem}.py", text)
        except Exception as error:
            channel.failed(error)
            continue
        channel.row({"status": "ok", "kernels": sorted(kernels), "machine": {"torch": torch.__version__}})


def _lowered(module: Any, dtype: str, target: Target) -> str:
    with torch.device("meta"):
        model, inputs = _built(module, dtype)
    return written_kernels(model, inputs, target)


def _compiled(module: Any, dtype: str) -> str:
    from torch._inductor import config
    from torch._inductor.utils import run_and_get_code

    with torch.device("cuda"):
        model, inputs = _built(module, dtype)
    torch._dynamo.reset()
    with torch.no_grad(), config.patch({"benchmark_kernel": True, "triton.unique_kernel_names": True}):
        _, codes = run_and_get_code(torch.compile(model), *inputs)
    return "\n".join(codes)


def _built(module: Any, dtype: str) -> tuple[torch.nn.Module, list[Any]]:
    wanted = getattr(torch, DTYPES[dtype])
    model = module.Model(*module.get_init_inputs()).eval().to(wanted)
    inputs = [value.to(wanted) if value.is_floating_point() else value for value in module.get_inputs()]
    return model, inputs


def _write(path: Path, text: str) -> None:
    """The file is there whole or not at all."""
    path.parent.mkdir(parents=True, exist_ok=True)
    file, name = tempfile.mkstemp(dir=path.parent, prefix=".", suffix=".part")
    try:
        with os.fdopen(file, "w", encoding="utf-8") as stream:
            stream.write(text)
        Path(name).replace(path)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise
