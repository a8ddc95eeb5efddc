"""How fast the full model answers at the size of the published RLM (181 M parameters), and against 64 samples.

    python tools/experiments/gpu/full_model_speed.py --out full_model.json [--size tiny] [--steps 200] [--texts 8192]

There are no published weights here: a checkpoint of their layout with random weights is read as ``rlm-lsp model add``
does, trained for some steps on made-up costs of the functions that the installed Python brings (so that its
distributions are as uneven as those of a trained model), and asked about them. Needs torch, transformers, tokenizers.
"""

from __future__ import annotations

import argparse
import ast
import json
import random
import sys
import sysconfig
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch

ROOT = Path(__file__).parents[3]
sys.path[:0] = [str(ROOT), str(ROOT / "model_core"), str(ROOT / "server")]

import rlm_core.training.full.predictor as predictor_module  # noqa: E402
import tokenizers  # noqa: E402
from rlm_core.inference.model_store import ModelOrigin  # noqa: E402
from rlm_core.training.full import published, store  # noqa: E402
from rlm_core.training.full.decoding import quantiles, sample  # noqa: E402
from rlm_core.training.full.encoders.base import pad  # noqa: E402
from rlm_core.training.full.predictor import TorchPredictor  # noqa: E402
from rlm_core.training.full.sequences import Slot  # noqa: E402
from rlm_core.training.full.spaces import APPS  # noqa: E402
from rlm_core.types import LEVELS, CodeText, Query  # noqa: E402

from tests.rlm_core.training.full import published_checkpoints  # noqa: E402

_PIECES = 32_000
_SAMPLES = 64


def main() -> None:
    """Run all parts; each is written as soon as it is known."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--size", choices=["tiny", "full"], default="full")
    parser.add_argument("--steps", type=int, default=200)
    parser.add_argument("--texts", type=int, default=8192)
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    found: dict[str, Any] = {}

    began = time.perf_counter()

    def keep(name: str, value: Any) -> None:
        found[name] = value
        print(f"{time.perf_counter() - began:5.0f} s  {name}: {json.dumps(value)}", flush=True)
        arguments.out.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")

    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    keep("device", torch.cuda.get_device_name() if device.type == "cuda" else f"cpu, {torch.get_num_threads()} threads")
    texts = functions(arguments.texts, arguments.seed)
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        reference = checkpoint(folder / "layout", arguments.size, texts)
        model = published.read(folder / "layout").to(device)
        lengths = [len(ids) for ids in model.encoder.tokenize([APPS.reading(text) for text in texts]).ids]
        keep("texts", {"count": len(texts), "tokens": np.percentile(lengths, [10, 50, 90, 99]).tolist()})
        keep("parameters", sum(weight.numel() for weight in model.parameters()))
        keep("logits_differ_by_tokens", equality(model.double(), reference.double(), texts[:16], device))
        model.float(), reference.float()
        costs = made_up_costs(lengths, arguments.seed)
        keep("training", trained(model, texts, costs, arguments.steps, device))
        published.save(model.cpu(), folder / "model", "speed", (APPS,), ModelOrigin("random"))
        speeds(folder / "model", texts, costs, device, keep)
        model.to(device)
        against_samples(model, reference, texts, device, keep)


def functions(count: int, seed: int) -> list[str]:
    """Distinct functions of the standard library and the packages that are installed."""
    found: set[str] = set()
    roots = [Path(sysconfig.get_paths()[name]) for name in ("stdlib", "purelib")]
    paths = sorted(path for root in roots for path in root.glob("*/*.py"))
    random.Random(seed).shuffle(paths)
    for path in paths:
        try:
            text = path.read_text(encoding="utf-8")
            tree = ast.parse(text)
        except (OSError, ValueError, SyntaxError):
            continue
        for node in ast.walk(tree):
            if isinstance(node, ast.FunctionDef) and (part := ast.get_source_segment(text, node)):
                found.add(part)
        if len(found) > 3 * count:
            break
    ordered = sorted(found)
    random.Random(seed).shuffle(ordered)
    return ordered[:count]


def checkpoint(folder: Path, size: published_checkpoints.Size, texts: list[str]) -> Any:
    """Write a checkpoint of the layout whose tokenizer knows these texts; transformers' own model of it."""
    reference = published_checkpoints.reference(size)
    published_checkpoints.write_checkpoint(folder, size, reference)
    rows = published_checkpoints.SIZES[size]["vocab_size"]
    tokenizer = tokenizers.Tokenizer(tokenizers.models.BPE())
    tokenizer.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False)
    trainer = tokenizers.trainers.BpeTrainer(
        vocab_size=min(_PIECES, rows),
        special_tokens=["<pad>", "<eos>", "<bos>", "<unk>"],
        initial_alphabet=tokenizers.pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    tokenizer.train_from_iterator(texts[:4096], trainer)
    (folder / "encoder_tokenizer" / "tokenizer.json").write_text(tokenizer.to_str(), encoding="utf-8")
    return reference


def made_up_costs(lengths: list[int], seed: int) -> np.ndarray:
    """Bytes that grow with the text, with a spread of a factor of two."""
    noise = np.random.default_rng(seed).normal(0, 0.7, len(lengths))
    return 1e4 * np.asarray(lengths) * np.exp(noise)


def trained(model: Any, texts: list[str], costs: np.ndarray, steps: int, device: torch.device) -> dict[str, float]:
    """Train in place; tokens per second of a plain loop, and the loss."""
    batch = 64 if device.type == "cuda" else 4
    ids = [own[:512] for own in model.encoder.tokenize([APPS.reading(text) for text in texts]).ids]
    tokens = torch.from_numpy(model.config.numbers.encode_many(costs.tolist())).to(device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-4, fused=device.type == "cuda")
    order = np.random.default_rng(1).integers(0, len(texts), (steps, batch))
    losses, seen = [], 0
    model.train()
    now(device)
    began = time.perf_counter()
    for step, rows in enumerate(order):
        for group in optimizer.param_groups:
            group["lr"] = 3e-4 * min((step + 1) / 20, 1) * (1 - step / steps)
        padded, mask = pad([ids[row] for row in rows], model.encoder.pad_id)
        with torch.autocast(device.type, torch.bfloat16):
            scores = model(padded.to(device), mask.to(device), None, tokens[rows][:, None, None], constrained=False)
        loss = -scores.sum(-1).mean()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        losses.append(loss.detach())
        seen += int(mask.sum())
    seconds = now(device) - began
    model.eval()
    return {
        "steps": steps,
        "first_loss": round(float(losses[0]), 3),
        "last_loss": round(float(torch.stack(losses[-10:]).mean()), 3),
        "tokens_per_second": round(seen / seconds),
    }


def equality(model: Any, reference: Any, texts: list[str], device: torch.device) -> dict[int, float]:
    """The largest difference from the logits of transformers, by tokens of the text."""
    reference = reference.to(device)
    found: dict[int, float] = {}
    with torch.no_grad():
        for text in texts:
            memory = model.encode([text])
            tokens = torch.tensor([model.config.numbers.encode(123.4)], device=device)
            ours = model.logits(model.remember(memory), None, tokens[:, None, None])[0, 0, 0]
            ids = torch.from_numpy(model.encoder.tokenize([text]).ids[0])[None].to(device)
            start = torch.cat([tokens.new_zeros(1, 1), tokens[:, :-1]], 1)
            theirs = reference(
                input_ids=ids,
                attention_mask=torch.ones_like(ids),
                decoder_input_ids=start,
                decoder_attention_mask=torch.ones_like(start),
            ).logits[0]
            found[ids.shape[1]] = float((ours - theirs).abs().max())
    return found


def speeds(
    directory: Path, texts: list[str], costs: np.ndarray, device: torch.device, keep: Callable[[str, Any], None]
) -> None:
    """Predictions a second through the predictor, texts in, calibrated numbers out; nothing comes from its cache."""
    codes = [CodeText(text, "python", "program") for text in texts]
    queries = [(Query("memory"),)] * len(codes)
    predictor = TorchPredictor(directory, str(device), cache_bytes=1)
    predictor.predict(codes[:512], queries[:512])
    for chunk in (1024,) if device.type == "cuda" else (64,):
        predictor_module._CHUNK[device.type] = chunk
        if device.type == "cuda":
            torch.cuda.reset_peak_memory_stats()
        runs = []
        for _ in range(2):
            began = now(device)
            answers = predictor.predict(codes, queries)
            runs.append(len(codes) / (now(device) - began))
        peak = torch.cuda.max_memory_allocated() / 2**30 if device.type == "cuda" else 0.0
        keep(
            f"predictions_per_second_chunk_{chunk}", {"runs": [round(run) for run in runs], "peak_gib": round(peak, 2)}
        )
    medians = np.array([line[0].median or 0.0 for line in answers])
    inside = np.mean(
        [line[0].bands[0].low <= cost <= line[0].bands[0].high for line, cost in zip(answers, costs, strict=True)]
    )
    ranks = np.corrcoef(medians.argsort().argsort(), costs.argsort().argsort())[0, 1]
    keep("sanity", {"spearman": round(float(ranks), 3), "inside_80": round(float(inside), 3)})
    one = []
    for index in range(512, 544 if device.type == "cuda" else 516):
        began = now(device)
        predictor.predict(codes[index : index + 1], queries[index : index + 1])
        one.append(now(device) - began)
    keep("seconds_for_one_text", {"median": float(np.median(one)), "worst": float(np.max(one))})


def against_samples(
    model: Any, reference: Any, texts: list[str], device: torch.device, keep: Callable[[str, Any], None]
) -> None:
    """The seconds of quantiles at 17 levels, and of 64 samples in three ways, for one text at a time and for many."""
    chosen = sorted(texts[: 1024 if device.type == "cuda" else 4], key=len)
    one = chosen[len(chosen) // 2 :][: 8 if device.type == "cuda" else 1]
    slots = [[[Slot()]]]

    def ours(batch: list[str], measure: Callable[[Any], Any]) -> float:
        with store.fast_products(device), store.autocast(device):
            memories = model.encode(batch)
        with store.fast_products(device):
            began = now(device)
            measure(memories)
            return (now(device) - began) / len(batch)

    def all_quantiles(memories: Any) -> None:
        quantiles(model, memories, slots * len(memories), LEVELS, resolution=0.01)

    def all_samples(memories: Any) -> None:
        sample(model, memories, slots * len(memories), _SAMPLES, torch.Generator(device).manual_seed(0))

    found: dict[str, float] = {}
    for name, batch in (("one", one), ("many", chosen)):
        for kind, measure in (("quantiles", all_quantiles), ("our_samples", all_samples)):
            parts = [batch] if name == "many" else [[text] for text in batch]
            for part in parts[:2]:
                ours(part, measure)
            found[f"{kind}_{name}"] = float(np.median([ours(part, measure) for part in parts]))
    keep("decoding_seconds_per_text", found)
    reference = reference.to(device).eval()
    for name, loop in (("python_constraint", True), ("tensor_constraint", False)):
        for size in (1, 8) if device.type == "cuda" else (1,):
            part = one[:size]
            generate(model, reference, part, loop, device)
            seconds = [generate(model, reference, part, loop, device) for _ in range(3)]
            keep(f"generate_64_{name}_batch_{size}_seconds_per_text", round(float(np.median(seconds)) / size, 5))
    encode = []
    for _ in range(3):
        began = now(device)
        with store.autocast(device):
            model.encode(chosen)
        encode.append((now(device) - began) / len(chosen))
    keep("encoding_seconds_per_text_many", float(np.median(encode)))


def generate(model: Any, reference: Any, texts: list[str], loop: bool, device: torch.device) -> float:
    """Seconds of 64 samples as the model's card draws them, with transformers; ``loop``: its mask row by row."""
    from transformers import LogitsProcessor, LogitsProcessorList

    signs, digits = [1, 2], list(range(3, 13))

    class Constraint(LogitsProcessor):  # type: ignore[misc]
        def __call__(self, input_ids: torch.Tensor, scores: torch.Tensor) -> torch.Tensor:
            allowed = signs if input_ids.shape[1] < 3 else digits
            if not loop:
                mask = torch.full_like(scores[:1], float("-inf"))
                mask[:, allowed] = 0
                return scores + mask
            for row in range(len(scores)):
                allowed = signs if len(input_ids[row].tolist()) < 3 else digits
                mask = torch.full_like(scores[row], float("-inf"))
                mask[allowed] = 0
                scores[row] = scores[row] + mask
            return scores

    ids, mask = pad(model.encoder.tokenize(texts).ids, 0)
    began = now(device)
    with torch.no_grad(), torch.autocast(device.type, torch.float16, enabled=device.type == "cuda"):
        reference.generate(
            input_ids=ids.to(device),
            attention_mask=mask.long().to(device),
            do_sample=True,
            top_p=0.95,
            num_return_sequences=_SAMPLES,
            min_new_tokens=9,
            max_new_tokens=9,
            decoder_start_token_id=0,
            pad_token_id=0,
            eos_token_id=None,
            logits_processor=LogitsProcessorList([Constraint()]),
        )
    return now(device) - began


def now(device: torch.device) -> float:
    """The clock, once the device has done everything."""
    if device.type == "cuda":
        torch.cuda.synchronize()
    return time.perf_counter()


if __name__ == "__main__":
    main()
