"""A PyTorch module -> the Triton kernels that ``torch.compile`` writes for it, without a GPU or with one.

Without one the module is exported on meta tensors, its graph is moved to ``cuda`` with inputs that hold nothing, and
inductor lowers it for a target: it asks for a card's figures, which :mod:`targets` has, and its output is taken before
anything would be compiled or loaded. Checked with torch 2.13; modules that draw random numbers are refused.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NoReturn

import torch
import triton
from torch._dynamo import device_interface
from torch._guards import TracingContext, tracing
from torch._inductor import config
from torch._inductor.compile_fx import compile_fx_inner
from torch._inductor.decomposition import select_decomp_table
from torch._inductor.fx_passes.joint_graph import joint_graph_passes
from torch._inductor.fx_passes.post_grad import view_to_reshape
from torch._inductor.graph import GraphLowering
from torch._inductor.virtualized import V
from torch._subclasses.fake_tensor import FakeTensor, FakeTensorMode
from torch.fx.passes.fake_tensor_prop import FakeTensorProp

from rlm_core.errors import DataError
from rlm_core.files import atomic_write

from .ahead_of_time import Driver, device_properties
from .bench_rows import row_key
from .bench_spec import DTYPES
from .runner_process import Channel, import_file
from .targets import Target, target_named

_DEVICE = torch.device("cuda", 0)


class _WrittenError(Exception):
    """Not an error: inductor has written its code, and what follows is not wanted."""


def written_kernels(module: torch.nn.Module, inputs: list[Any], target: Target) -> str:
    """The Python code that inductor writes for a module on meta tensors, for a target.

    Raises:
        DataError: inductor cannot lower the module without its GPU.
    """
    with torch.no_grad():
        program = torch.export.export(module.eval(), tuple(inputs), strict=False)
        graph = program.run_decompositions(select_decomp_table()).graph_module
    mode = FakeTensorMode()
    for node in graph.graph.nodes:
        if node.kwargs.get("device") is not None:
            node.update_kwarg("device", _DEVICE)
        if "rand" in str(node.target):
            raise DataError("draws random numbers, which cannot be lowered without a GPU")
    graph.recompile()
    arguments = [_elsewhere(mode, node.meta["val"]) for node in graph.graph.nodes if node.op == "placeholder"]
    code: list[str] = []

    def taken(text: str) -> NoReturn:
        code.append(text)
        raise _WrittenError

    save: Any = GraphLowering.save_output_code
    with _with_card(target), tracing(TracingContext(mode)), V.set_fake_mode(mode), torch.no_grad():
        try:
            GraphLowering.save_output_code = staticmethod(taken)
            with mode:
                view_to_reshape(graph)
                FakeTensorProp(graph, mode).propagate_dont_convert_inputs(*arguments)
                compile_fx_inner(joint_graph_passes(graph), arguments)
        except Exception as error:
            # Passes that compute on the card fail in many ways where there is none.
            if not code:
                raise DataError(f"cannot be lowered without a GPU ({' '.join(str(error).split())[:200]})") from None
        finally:
            GraphLowering.save_output_code = staticmethod(save)
    if not code:
        raise DataError("inductor wrote no code for it")
    return code[0]


def kernels_in(code: str) -> dict[str, str]:
    """The Triton kernels in a text that inductor wrote, each as a separate file, by name."""
    found: dict[str, str] = {}
    for node in ast.walk(ast.parse(code)):
        match node:
            case ast.Call(
                func=ast.Attribute(attr="triton"),
                args=[ast.Constant(value=str(name)), ast.Constant(value=str(source)), *_],
            ):
                found[name] = re.sub(r"\A\n+", "", source)
    return found


@contextmanager
def _with_card(target: Target) -> Iterator[None]:
    """Within the block inductor finds a target's card wherever it asks for one."""
    properties = device_properties(target)
    known = {name: found for name, found in device_interface.get_registered_device_interfaces()}  # noqa: C416
    base = device_interface.CudaInterface

    class Worker(base.Worker):  # type: ignore[misc, name-defined, unused-ignore]
        current_device = staticmethod(lambda: 0)
        set_device = staticmethod(lambda device: None)
        get_device_properties = staticmethod(lambda device=None: properties)

    interface = type(
        "Card",
        (base,),
        {
            "Worker": Worker,
            "is_available": staticmethod(lambda: True),
            "device_count": staticmethod(lambda: 1),
            "current_device": staticmethod(lambda: 0),
            "synchronize": staticmethod(lambda device=None: None),
            "get_device_properties": staticmethod(lambda device=None: properties),
            "get_compute_capability": staticmethod(lambda device=None: target.arch),
            "get_raw_stream": staticmethod(lambda device: 0),
            "is_bf16_supported": staticmethod(lambda including_emulation=False: True),
            "is_triton_capable": staticmethod(lambda device=None: True),
            "raise_if_triton_unavailable": staticmethod(lambda device=None: None),
        },
    )
    triton.runtime.driver.set_active(Driver(target))
    ask = torch.cuda.get_device_properties
    settings = {
        "compile_threads": 1,
        "force_disable_caches": True,
        "triton.unique_kernel_names": True,
        # With it a kernel's file says how to call it.
        "benchmark_kernel": True,
        # These would compute on the card.
        "joint_graph_constant_folding": False,
        "shape_padding": False,
    }
    try:
        for name in ("cuda", "cuda:0"):
            device_interface.register_interface_for_device(name, interface)
        setattr(torch.cuda, "get_device_properties", lambda device=None: properties)  # noqa: B010 (of another type)
        with config.patch(settings):
            yield
    finally:
        torch.cuda.get_device_properties = ask
        for name in ("cuda", "cuda:0"):
            device_interface.register_interface_for_device(name, known.get(name, base))


def _elsewhere(mode: FakeTensorMode, value: Any) -> Any:
    """A tensor of the same form on the pretended GPU, without contents."""
    if not isinstance(value, torch.Tensor):
        return value
    empty = torch.empty_strided(value.shape, value.stride(), dtype=value.dtype, device="meta")
    return FakeTensor(mode, empty, _DEVICE)


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
    path.parent.mkdir(parents=True, exist_ok=True)
    with atomic_write(path) as partial:
        partial.write_text(text, encoding="utf-8")
