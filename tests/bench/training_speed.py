"""How fast full models train here, and how much of the device's matrix peak that is: which size pays.

    python tests/bench/training_speed.py --data functions.parquet --config configs/full.toml [--config C.toml] [--out F]

Of each configuration some steps of the real loop run on real batches: text tokens per second, the floating-point
operations of forward and backward passes (counted by PyTorch, attention and padding too) a second, and their share of
the peak, the fastest product of square matrices in the precision of the training. Validation, checkpoints and the
reading of batches are left out. Each batch is read once before the clock starts, which also compiles what is to be
compiled; with ``--compile`` each configuration is timed as it is and with compiled layers.
"""

from __future__ import annotations

import argparse
import gc
import json
import tempfile
import time
from dataclasses import replace
from pathlib import Path

import torch
from rlm_core.training.corpus import Corpus, load_corpus
from rlm_core.training.full.model_fit import FullTrainer, bfloat16
from rlm_core.training.full.train import _new_model, _tokenizer
from rlm_core.training.full.training_config import FullTrainConfig, load_config
from rlm_core.training.full.training_data import examples
from torch.utils.flop_counter import FlopCounterMode

_SQUARE = {"cuda": 8192, "cpu": 2048}


def main() -> None:
    """Time all configurations, print a line each."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, nargs="+", required=True)
    parser.add_argument("--config", type=Path, action="append", required=True)
    parser.add_argument("--steps", type=int, default=12)
    parser.add_argument("--compile", action="store_true")
    parser.add_argument("--out", type=Path)
    arguments = parser.parse_args()
    corpus = load_corpus(arguments.data, ("train", "val"))
    found = []
    for path in arguments.config:
        settings = load_config(path)
        with tempfile.TemporaryDirectory() as scratch:
            for way in (False, True) if arguments.compile else (settings.train.compile,):
                chosen = replace(settings, train=replace(settings.train, compile=way))
                found.append({"config": path.name, **timed(corpus, chosen, arguments.steps, Path(scratch))})
                print(json.dumps(found[-1]), flush=True)
                if arguments.out:
                    arguments.out.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")


def timed(corpus: Corpus, settings: FullTrainConfig, steps: int, scratch: Path) -> dict[str, float | str]:
    """The figures of one configuration."""
    gc.collect()  # the model before
    if torch.cuda.is_available():
        torch.cuda.empty_cache()
    torch.manual_seed(settings.train.seed)
    began = time.perf_counter()
    model = _new_model(corpus, settings, _tokenizer(corpus, settings, scratch, resume=True))
    data = examples(corpus, model, settings.train.callees)
    loop = FullTrainer(model, data, settings.train, scratch)
    items = loop.items(0)[:steps]
    batches = [loop.load(item) for item in items]
    loop.module.train()
    for batch in batches:
        loop.take_step(batch)
    prepared = _now(loop.device) - began
    began = _now(loop.device)
    for batch in batches:
        loop.take_step(batch)
    seconds = _now(loop.device) - began
    tokens = sum(map(loop.tokens_of, items))
    read = sum(part.ids.numel() for batch in batches for part in batch)
    for optimizer in loop.optimizers:
        optimizer.zero_grad(set_to_none=True)
    if torch.cuda.is_available():
        torch.cuda.empty_cache()
    # Compiled layers hide their operations from the counter.
    with torch.compiler.set_stance("force_eager"), FlopCounterMode(display=False) as counter:
        for batch in batches:
            loop.take_step(batch)
    half = bfloat16(settings.train.precision, loop.device)
    best = peak(loop.device, torch.bfloat16 if half else torch.float32)
    speed = counter.get_total_flops() / seconds
    return {
        "device": torch.cuda.get_device_name() if loop.device.type == "cuda" else f"{torch.get_num_threads()} threads",
        "precision": "bfloat16" if half else "float32",
        "compile": settings.train.compile,
        "parameters": sum(weight.numel() for weight in model.parameters()),
        "tokens_per_batch": settings.train.tokens_per_batch,
        "steps": len(items),
        "preparation_seconds": round(prepared, 1),
        "milliseconds_per_step": round(1e3 * seconds / len(items), 2),
        "padding": round(1 - tokens / read, 3),
        "tokens_per_second": round(tokens / seconds),
        "tflops": round(speed / 1e12, 3),
        "peak_tflops": round(best / 1e12, 3),
        "share_of_peak": round(speed / best, 3),
    }


def peak(device: torch.device, precision: torch.dtype) -> float:
    """Operations a second of the fastest of ten products of square matrices."""
    size = _SQUARE[device.type]
    left, right = (torch.randn(size, size, device=device, dtype=precision) for _ in range(2))
    fastest = float("inf")
    for _ in range(10):
        began = _now(device)
        left @ right
        fastest = min(fastest, _now(device) - began)
    return 2 * size**3 / fastest


def _now(device: torch.device) -> float:
    if device.type == "cuda":
        torch.cuda.synchronize()
    return time.perf_counter()


if __name__ == "__main__":
    main()
