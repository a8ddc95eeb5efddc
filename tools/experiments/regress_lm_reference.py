"""Our decoding of regress-lm models against google-deepmind/regress-lm itself: the same probabilities, how much faster.

Needs a checkout and what it imports (``pip install ordered-set absl-py transformers``):

    python -m tools.experiments.regress_lm_reference --reference PATH compare
    python -m tools.experiments.regress_lm_reference --reference PATH speed --numbers ieee --tokens 300 --inputs 1
    python -m tools.experiments.regress_lm_reference --reference PATH record tests/rlm_core/training/full/data

``compare`` converts freshly seeded models and compares log-probabilities and number tokens. ``speed`` takes one model,
512 wide with 2 + 2 layers or (``--encoder t5gemma-s``) T5Gemma's small encoder and 2 layers, through its 64 samples and
through our quantiles; each part runs alone, so that a slow machine can take them one by one. ``record`` writes the tiny
models and values that the unit tests read. Weights are random.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
import tempfile
import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import safetensors.torch
import torch
from rlm_core.training.full import decoding, sequences
from rlm_core.training.full.model import FullModel
from rlm_core.training.full.numbers import NumberFormat
from rlm_core.training.full.regress_lm import SPECIAL, convert, ieee, p10

TEXTS = (
    "def add(a, b):\n    return a + b\n",
    "for i in range(10):\n    total += i * i\n",
    "while queue:\n    node = queue.pop()\n    seen.add(node)\n",
    "hello",
)
LEVELS = (0.1, 0.5, 0.9)
SAMPLES = 64
_IEEE_VALUES = (0.0, 1.0, 0.3, -123.4, 12345.0, 9.9996e5, 1.234e-9, 1.234e-10, -5e-11, 3e12, 1.001, 2.5e-4)
_P10_VALUES = (*_IEEE_VALUES, 1.1e-8, 0.4e-8, -0.4e-8, 4.999e13, 123450.0, 1234.5, 0.00099995)


@dataclass(frozen=True)
class Case:
    """A model to compare: regress-lm's tokenizer class, its settings, and ours."""

    tokenizer: str
    settings: dict[str, Any]
    numbers: NumberFormat
    values: tuple[float | str, ...]
    special: bool = False
    separator: bool = False
    objectives: int = 1
    encoder: str = "vanilla"


# The encoder of google/t5gemma-s-s-prefixlm, with the few pieces of the test's tokenizer: looking one up costs nothing.
_T5GEMMA_S = {
    "hidden_size": 512,
    "intermediate_size": 1024,
    "num_hidden_layers": 8,
    "num_attention_heads": 8,
    "num_key_value_heads": 8,
    "head_dim": 64,
    "sliding_window": 4096,
    "max_position_embeddings": 8192,
    "layer_types": ["sliding_attention", "full_attention"] * 4,
}
_SPECIAL_VALUES = (math.nan, math.inf, -math.inf, "INVALID")
CASES = {
    "ieee": Case("IEEEFloatTokenizer", {}, ieee(), _IEEE_VALUES),
    "ieee_special": Case(
        "IEEEFloatTokenizer",
        {"num_exponent_digits": 2, "num_mantissa_digits": 3},
        ieee(exponent_digits=2, mantissa_digits=3, special=SPECIAL, separator=True),
        (*_IEEE_VALUES, *_SPECIAL_VALUES),
        special=True,
        separator=True,
        objectives=2,
    ),
    "p10": Case("P10Tokenizer", {}, p10(), _P10_VALUES),
    "p10_special": Case(
        "P10Tokenizer",
        {"num_digits": 2, "exponent_range": 3},
        p10(2, 3, special=SPECIAL),
        (*_P10_VALUES, *_SPECIAL_VALUES),
        special=True,
        objectives=3,
    ),
    "t5gemma": Case("IEEEFloatTokenizer", {}, ieee(), _IEEE_VALUES, encoder="t5gemma"),
}


def main() -> None:
    """Run one part."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--reference", type=Path, required=True, help="a checkout of google-deepmind/regress-lm")
    parts = parser.add_subparsers(dest="part", required=True)
    parts.add_parser("compare")
    parts.add_parser("record").add_argument("folder", type=Path)
    speed = parts.add_parser("speed")
    speed.add_argument("--numbers", choices=("ieee", "p10"), default="ieee")
    speed.add_argument("--encoder", choices=("vanilla", "t5gemma-s"), default="vanilla")
    speed.add_argument("--tokens", type=int, default=300, help="real tokens of an input, at most 2048")
    speed.add_argument("--inputs", type=int, default=1)
    speed.add_argument("--precision", choices=("float32", "bfloat16"), default="float32", help="of our encoder")
    speed.add_argument("--tolerance", type=float, default=0.0, help="probability that P10 may leave out")
    speed.add_argument("--ours", type=int, default=3, help="repetitions of our model; the fastest counts")
    speed.add_argument("--theirs", type=int, default=1, help="repetitions of regress-lm (0: none)")
    speed.add_argument("--device", default="cpu")
    args = parser.parse_args()
    sys.path[:0] = [str(args.reference), str(Path(__file__).parents[2])]  # theirs, and the tests' tiny T5Gemma
    with tempfile.TemporaryDirectory() as scratch:
        if args.part == "compare":
            _compare(Path(scratch))
        elif args.part == "record":
            _record(Path(scratch), args.folder)
        else:
            _speed(Path(scratch), args)


def _vocabulary(scratch: Path, size: int) -> tuple[Any, Path]:
    """A SentencePiece vocabulary of the texts above, theirs and the file."""
    from regress_lm import vocabs  # type: ignore[import-not-found]

    corpus = scratch / "corpus.txt"
    corpus.write_text("\n".join(TEXTS) * 20, encoding="utf-8")
    prefix = scratch / "tokenizer"
    options = {"minloglevel": "2", "normalization_rule_name": "identity"}
    return vocabs.SentencePieceVocab.from_corpus(corpus, size, prefix, options), prefix.with_suffix(".model")


def _reference(case: Case, vocabulary: Any, width: int, length: int, extra: dict[str, Any]) -> Any:
    """A regress-lm model with seeded weights whose probabilities are far from uniform."""
    from regress_lm import tokenizers, vocabs
    from regress_lm.pytorch import encoders  # type: ignore[import-not-found]
    from regress_lm.pytorch import model as models

    tokenizer = getattr(tokenizers, case.tokenizer)(**case.settings)
    if case.special:
        tokenizer = tokenizers.AddSpecialValues(tokenizer)
    if case.separator:
        tokenizer = tokenizers.AppendPadTokenizer(tokenizer)
    torch.manual_seed(7)
    architecture: dict[str, Any] = {"d_model": width, "num_encoder_layers": 2, "num_decoder_layers": 2}
    if extra:
        architecture |= {"encoder_type": encoders.EncoderType.T5GEMMA, "additional_encoder_kwargs": extra}
    config = models.PyTorchModelConfig(
        encoder_vocab=vocabulary,
        decoder_vocab=vocabs.DecoderVocab(tokenizer),
        max_input_len=length,
        max_num_objs=case.objectives,
        architecture_kwargs=architecture,
    )
    model = config.make_model().eval()
    with torch.no_grad():
        model.encoder_decoder.generator.weight.mul_(4)
    return model


def _pair(
    case: Case,
    scratch: Path,
    width: int,
    length: int,
    precision: str = "float32",
    sizes: Mapping[str, Any] | None = None,
) -> tuple[Any, FullModel, Path]:
    """A regress-lm model, the same model as ours, and the tokenizer or the T5Gemma folder (with ``sizes``)."""
    from regress_lm import vocabs

    path = scratch / "checkpoint.pt"
    if case.encoder == "vanilla":
        vocabulary, tokenizer = _vocabulary(scratch, 320)
        theirs = _reference(case, vocabulary, width, length, {})
        torch.save({"model_state": theirs.state_dict(), "global_step": 1}, path)
        return theirs, convert(path, case.numbers, tokenizer, max_tokens=length, precision=precision), tokenizer
    from rlm_core.training.full.encoders.pretrained import T5GemmaSettings
    from rlm_core.training.full.encoders.t5gemma import T5GemmaEncoder

    from tests.rlm_core.training.full.encoders import checkpoints as encoders_checkpoints

    base = encoders_checkpoints.write(encoders_checkpoints.first(**sizes or {}), scratch / "t5gemma")
    extra = {"model_name": str(base), "attn_implementation": "eager"}
    theirs = _reference(case, vocabs.HuggingFaceVocab(str(base)), 0, length, extra)
    with torch.no_grad():  # as if its encoder had been trained too
        for weight in theirs.encoder_decoder.encoder.parameters():
            weight.add_(0.02 * torch.randn_like(weight))
    torch.save({"model_state": theirs.state_dict(), "global_step": 1}, path)
    encoder = T5GemmaEncoder(
        T5GemmaSettings(str(base), mode="full", max_tokens=length, precision=precision, regress_lm=True)
    )
    return theirs, convert(path, case.numbers, encoder=encoder), base


def _examples(case: Case, theirs: Any) -> list[tuple[str, list[float | str], float]]:
    """Texts, values, and the log-probability that regress-lm gives them."""
    from regress_lm import core

    values = list(case.values)
    chosen = [
        (
            TEXTS[index % len(TEXTS)],
            [values[(index + shift) % len(values)] for shift in range(1 + index % case.objectives)],
        )
        for index in range(len(values))
    ]
    batch = theirs.converter.convert_examples([core.Example(x=text, y=own) for text, own in chosen])
    with torch.no_grad():
        scores = theirs.log_prob(batch).tolist()
    return [(text, own, score) for (text, own), score in zip(chosen, scores, strict=True)]


def _compare(scratch: Path) -> None:
    for name, case in CASES.items():
        folder = scratch / name
        folder.mkdir()
        theirs, ours, _ = _pair(case, folder, 64, 128)
        worst = 0.0
        for text, values, score in _examples(case, theirs):
            question = [[[sequences.Slot(value=value) for value in values]]]
            found = decoding.log_prob(ours, ours.encode([text]), question, constrained=False)[0][0].sum()
            worst = max(worst, abs(float(found) - score))
        random = np.random.default_rng(0)
        numbers = random.choice([-1, 1], 20_000) * 10 ** random.uniform(-12, 14, 20_000)
        vocabulary = theirs.cfg.decoder_vocab
        other = sum(list(case.numbers.encode(value)) != vocabulary.to_token_ids(value) for value in numbers.tolist())
        print(f"{name}: log-probabilities differ by at most {worst:.1e}; {other} of 20,000 values have other tokens")


def _record(scratch: Path, folder: Path) -> None:
    cases = {}
    for name, case in CASES.items():
        own = scratch / name
        own.mkdir()
        theirs, _, tokenizer = _pair(case, own, 16, 128)
        state = {key: tensor.contiguous() for key, tensor in theirs.state_dict().items()}
        safetensors.torch.save_file(state, folder / f"{name}.safetensors")
        cases[name] = {
            "numbers": case.numbers.to_json(),
            "examples": [
                {"text": text, "values": [str(value) for value in values], "log_prob": score}
                for text, values, score in _examples(case, theirs)
            ],
            "tokens": {str(value): theirs.cfg.decoder_vocab.to_token_ids([value]) for value in case.values},
        }
        if case.encoder == "vanilla":
            (folder / "tokenizer.model").write_bytes(tokenizer.read_bytes())
    (folder / "regress_lm.json").write_text(json.dumps(cases, indent=1) + "\n", encoding="utf-8")


def _speed(scratch: Path, args: argparse.Namespace) -> None:
    from regress_lm import core

    case, sizes = CASES[args.numbers], None
    if args.encoder == "t5gemma-s":
        case, sizes = replace(case, encoder="t5gemma"), _T5GEMMA_S
    theirs, ours, _ = _pair(case, scratch, 512, 2048, args.precision, sizes)
    theirs, ours = theirs.to(args.device), ours.to(args.device)
    # Inputs that differ: equal ones would be encoded once.
    texts = [f"{number}\n{_text(ours, args.tokens)}" for number in range(args.inputs)]
    questions = [[[sequences.Slot()]]] * args.inputs
    own = []
    for _ in range(args.ours):
        started = _clocks()
        memories = ours.encode(texts)
        encoded = _clocks()
        decoding.quantiles(ours, memories, questions, LEVELS, args.tolerance)
        own.append((*(_clocks() - started), *(encoded - started)))
    wall, busy, encoding, encoding_busy = np.array(own).min(0)
    print(
        f"{args.encoder}, {args.numbers}, {args.tokens} tokens, {args.inputs} inputs, {args.precision},"
        f" {torch.get_num_threads()} threads: ours {wall:.3f} s, CPU {busy:.3f} s"
        f" (encoding {encoding:.3f} s, CPU {encoding_busy:.3f} s)",
        flush=True,
    )
    if args.theirs:
        inputs = theirs.converter.convert_inputs([core.ExampleInput(x=text) for text in texts])
        other = []
        for _ in range(args.theirs):
            started = _clocks()
            theirs.decode(inputs, SAMPLES)
            other.append(_clocks() - started)
        slow, slow_busy = np.array(other).min(0)
        print(
            f"regress-lm, {SAMPLES} samples: {slow:.2f} s, CPU {slow_busy:.2f} s: {slow / wall:.0f} times as long,"
            f" {slow_busy / busy:.0f} times the CPU time"
        )


def _clocks() -> npt.NDArray[np.float64]:
    """Seconds of the wall, and of all threads of this process: on a busy machine the second says more."""
    if torch.cuda.is_available():
        torch.cuda.synchronize()
    return np.array([time.perf_counter(), time.process_time()])


def _text(model: FullModel, tokens: int) -> str:
    """A text of that many tokens."""
    text = TEXTS[0] * tokens
    low, high = 1, len(text)
    while low < high:
        middle = (low + high) // 2
        count = model.encoder.tokenize([text[:middle]])
        low, high = (low, middle) if len(count.ids[0]) + count.cropped[0] >= tokens else (middle + 1, high)
    return text[:low]


if __name__ == "__main__":
    main()
