"""Reads the weights of a regress-lm checkpoint (``.pt``) in a child process with limits of time and memory.

A ``.pt`` file is a pickle. PyTorch reads it with ``weights_only=True``, which runs no code from it, but a damaged file
can still end the process, or ask for more memory than there is. So a child reads it and writes its weights as
safetensors into a temporary folder, from which they are loaded. ``python -m rlm_core.training.full.checkpoint_reader
FILE FOLDER BYTES SECONDS`` is the child.
"""

from __future__ import annotations

import os
import pickle
import re
import stat
import subprocess
import sys
import tempfile
import zipfile
from contextlib import suppress
from pathlib import Path

import safetensors
import safetensors.torch
import torch
from torch import Tensor

from rlm_core.errors import ModelError
from rlm_core.processes import end_group, exit_reason

# PyTorch starts within seconds; a busy machine may need ten times as long.
_SECONDS = 120.0
_BYTES_PER_SECOND = 20e6  # of a slow disk
# The file is mapped, its weights are copied and then written: three times its size, and what small files need.
_MEMORY_BYTES = 4 * 2**30
_COPIES = 3
_REFUSED = 3
_WEIGHTS = "weights.safetensors"
_ADVICE = "give a checkpoint that regress-lm's Trainer.save_checkpoint wrote"
_PREFIX = re.compile(r"^.*?encoder_decoder\.")
_BUFFERS = re.compile(r"(rotary_pos_emb\.inv_freq|decoder_positional_encoding\.pe)$")
_MESSAGE_CHARACTERS = 200


def read_checkpoint(path: Path) -> dict[str, Tensor]:
    """Return the weights of a checkpoint by regress-lm's names, ``encoder.`` and decoder.

    Buffers that are computed are left out; ``places`` is the length of the decoder's table of positions.

    Raises:
        ModelError: the file cannot be read, holds more than tensors and plain values, is not such a checkpoint, or
            needs too much time or memory.
    """
    try:
        status = path.stat()
    except OSError as error:
        raise ModelError(f"{path}: cannot be read ({error.strerror}); {_ADVICE}") from None
    if not stat.S_ISREG(status.st_mode):
        raise ModelError(f"{path}: cannot be read (not a file); {_ADVICE}")
    seconds = _SECONDS + status.st_size / _BYTES_PER_SECOND
    memory = _MEMORY_BYTES + _COPIES * status.st_size
    with tempfile.TemporaryDirectory(prefix="rlm-checkpoint-", ignore_cleanup_errors=True) as folder:
        _run_child(path, Path(folder), memory, seconds)
        try:
            return safetensors.torch.load_file(Path(folder) / _WEIGHTS)
        except (OSError, safetensors.SafetensorError) as error:
            raise ModelError(f"{folder}: the weights of {path} cannot be read back ({error}); try again") from None


def _run_child(path: Path, folder: Path, memory: int, seconds: float) -> None:
    command = [sys.executable, "-P", "-m", __name__, str(path), str(folder), str(memory), str(int(seconds) + 1)]
    environment = {**os.environ, "PYTHONIOENCODING": "utf-8:backslashreplace", "OMP_NUM_THREADS": "1"}
    try:
        process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env=environment,
            start_new_session=True,
        )
    except OSError as error:
        raise ModelError(f"{path}: no process can be started to read it ({error.strerror}); try again") from None
    try:
        output, _ = process.communicate(timeout=seconds)
    except subprocess.TimeoutExpired:
        raise ModelError(f"{path}: cannot be read within {seconds:.0f} s; save its model_state alone") from None
    finally:
        if process.poll() is None:
            end_group(process)
    if process.returncode == _REFUSED:
        raise ModelError(" ".join(output.decode("utf-8", "replace").split()))
    if process.returncode != 0:
        how = exit_reason(process.returncode)
        raise ModelError(f"{path}: the process that reads it fails ({how}); {_ADVICE}")


def _main(path: Path, folder: Path, memory: int, seconds: int) -> int:
    _limit(memory, seconds)
    try:
        weights = _weights(path)
        safetensors.torch.save_file(weights, folder / _WEIGHTS)
    except ModelError as error:
        print(error)
    except MemoryError:
        print(_too_large(path, memory))
    except (OSError, safetensors.SafetensorError) as error:
        print(f"{folder}: cannot be written ({error}); free some space there, or set TMPDIR to another folder")
    except Exception as error:  # the library raises whatever it likes for types that it does not know
        print(f"{path}: its weights cannot be saved ({type(error).__name__}); {_ADVICE}")
    else:
        return 0
    return _REFUSED


def _limit(memory: int, seconds: int) -> None:
    """Limit what this process may still allocate, and its computing time should the parent be killed."""
    if sys.platform == "win32":
        return
    import resource

    used = 0
    with suppress(OSError):  # only Linux has the file
        used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    for kind, wanted in ((resource.RLIMIT_AS, used + memory), (resource.RLIMIT_CPU, seconds)):
        _, most = resource.getrlimit(kind)
        with suppress(OSError, ValueError):  # macOS has no limit of the address space
            resource.setrlimit(kind, (wanted if most == resource.RLIM_INFINITY else min(wanted, most), most))


def _weights(path: Path) -> dict[str, Tensor]:
    """The weights of an EncoderDecoder in a file, contiguous and without shared memory."""
    try:
        data = torch.load(path, map_location="cpu", weights_only=True, mmap=zipfile.is_zipfile(path))
        state = data.get("model_state", data) if isinstance(data, dict) else {}
        tensors = {name: weight for name, weight in state.items() if isinstance(weight, Tensor)}
        found = {
            _PREFIX.sub("", name): weight
            for name, weight in tensors.items()
            if _PREFIX.match(name) and not _BUFFERS.search(name)
        }
        # Adding sinusoids is part of the decoder; their table says how long it was.
        places = [weight for name, weight in tensors.items() if name.endswith("decoder_positional_encoding.pe")]
        if "tgt_tok_emb.weight" not in found or not places:
            raise ModelError(f"{path}: has no weights of an EncoderDecoder under `model_state`; {_ADVICE}")
        return {**_separate(found), "places": torch.tensor(places[0].shape[1])}
    except (ModelError, MemoryError):
        raise
    except OSError as error:
        raise ModelError(f"{path}: cannot be read ({error.strerror or error}); {_ADVICE}") from None
    except Exception as error:  # a damaged file makes the library raise nearly anything
        message = " ".join(str(error).split())
        if isinstance(error, pickle.UnpicklingError) and re.search(r"GLOBAL |Unsupported (global|class)", message):
            raise ModelError(
                f"{path}: holds more than weights, which is never loaded; save its model_state alone"
            ) from None
        if "allocate memory" in message or "not enough memory" in message:
            raise MemoryError from None
        # What the library says of a pickle is how to load it with its code.
        sentence = "" if isinstance(error, pickle.UnpicklingError) else message.partition(". ")[0]
        reason = f" ({sentence[:_MESSAGE_CHARACTERS]})" if sentence else ""
        raise ModelError(f"{path}: not a PyTorch file, or damaged{reason}; {_ADVICE}") from None


def _separate(weights: dict[str, Tensor]) -> dict[str, Tensor]:
    """Contiguous weights; those that share memory, such as tied embeddings, are copied."""
    separate: dict[str, Tensor] = {}
    known: set[int] = set()
    for name, weight in weights.items():
        storage = weight.untyped_storage().data_ptr()
        own = weight.detach()
        separate[name] = own.clone(memory_format=torch.contiguous_format) if storage in known else own.contiguous()
        known.add(storage)
    return separate


def _too_large(path: Path, memory: int) -> str:
    return f"{path}: needs more than {memory / 2**30:.1f} GiB of memory to be read; save its model_state alone"


if __name__ == "__main__":
    sys.exit(_main(Path(sys.argv[1]), Path(sys.argv[2]), int(sys.argv[3]), int(sys.argv[4])))
