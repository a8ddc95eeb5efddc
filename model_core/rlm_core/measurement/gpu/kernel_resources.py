"""A compiled Triton kernel -> the registers, memory and spills that it uses. Imports no torch.

NVIDIA kernels are assembled with ``ptxas -v``, whose report is read; AMD kernels carry their figures in their assembly.
"""

from __future__ import annotations

import re
import subprocess
from collections.abc import Mapping
from typing import Any

from rlm_core.folders import ScratchFolder

_TARGET = re.compile(r"^\s*\.target\s+(sm_(\d+)\w?)", re.MULTILINE)
_USED = re.compile(r"Used (\d+) registers")
_STACK = re.compile(r"(\d+) bytes stack frame, (\d+) bytes spill stores, (\d+) bytes spill loads")
_AMD = {
    "registers": r"\.vgpr_count:\s*(\d+)",
    "scalar_registers": r"\.sgpr_count:\s*(\d+)",
    "spilled_registers": r"\.vgpr_spill_count:\s*(\d+)",
    "stack": r"\.private_segment_fixed_size:\s*(\d+)",
}


def kernel_resources(kernel: Any) -> dict[str, int]:
    """Registers a thread, bytes of shared memory a block, of spills and stack a thread, of one compiled kernel.

    ``kernel`` is Triton's ``CompiledKernel``. Values that cannot be determined are left out.
    """
    metadata = kernel.metadata
    found = {"shared": int(metadata.shared), "warps": int(metadata.num_warps)}
    assembler = kernel.asm
    if "ptx" in assembler:
        found |= ptx_resources(assembler["ptx"])
    elif "amdgcn" in assembler:
        found |= amd_resources(assembler["amdgcn"])
    return found


def ptx_resources(ptx: str) -> dict[str, int]:
    """Return the resources that the installed Triton's ``ptxas -v`` reports for a PTX text; empty if it cannot run."""
    match = _TARGET.search(ptx)
    if match is None:
        return {}
    from triton.backends.nvidia.compiler import get_ptxas

    with ScratchFolder() as folder:
        source = folder / "kernel.ptx"
        source.write_text(ptx, encoding="utf-8")
        command = [get_ptxas(int(match[2])).path, "-v", f"--gpu-name={match[1]}", str(source), "-o", f"{source}.cubin"]
        try:
            report = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True).stderr
        except (OSError, subprocess.SubprocessError):
            return {}
    return read_report(report)


def read_report(report: str) -> dict[str, int]:
    """The figures of a report of ``ptxas -v``; of several functions the largest."""
    registers = [int(number) for number in _USED.findall(report)]
    frames = [tuple(map(int, numbers)) for numbers in _STACK.findall(report)]
    found = {"registers": max(registers)} if registers else {}
    if frames:
        stack, stores, loads = (max(column) for column in zip(*frames, strict=True))
        found |= {"stack": stack, "spill_stores": stores, "spill_loads": loads}
    return found


def amd_resources(text: str) -> dict[str, int]:
    """The figures in the metadata of AMD assembler text."""
    matches: Mapping[str, re.Match[str] | None] = {name: re.search(line, text) for name, line in _AMD.items()}
    return {name: int(match[1]) for name, match in matches.items() if match is not None}
