"""The graphs of networks of Qualcomm AI Hub: exported from the package qai-hub-models without weights.

Needs qai-hub-models of the version that the labels name, with torch and, for some networks, timm, torchvision or
transformers. Packages that networks import for data, training or drawing are replaced by stand-ins, weights are neither
fetched nor read, and networks of transformers are built from configurations (:mod:`.hub_configurations`). A network
that needs the source of another repository is left out. One network per process: what is replaced stays replaced.
"""

from __future__ import annotations

import importlib
import importlib.abc
import importlib.machinery
import os
import sys
import types
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

from rlm_core.errors import DataError
from rlm_core.files import atomic_write
from rlm_core.source.onnx_graph.graph import words
from rlm_core.source.onnx_graph.reader import from_model
from rlm_core.source.onnx_graph.render import render

from .graphs import has_parameters, to_onnx, without_initialisation
from .hub_configurations import configuration
from .labels import HubNetwork

HUB_VERSION = "0.47.0"
_STAND_INS = frozenset(
    words(
        """
        IPython aimet_common aimet_onnx aimet_torch audio2numpy backoff boto3 botocore coremltools cv2 datasets
        deprecation diffusers easyocr evaluate fiftyone fvcore gdown h5py ipywidgets jiwer librosa loguru matplotlib
        mmcv mmdet mmengine mmpose nltk numba nuscenes numpydoc object_detection_metrics onnxsim pandas podm psutil
        pyarrow pycocotools pyquaternion resampy s3transfer samplerate scipy seaborn semver shapely skimage sklearn
        sounddevice soundfile soxr tensorboard tflite thop torchaudio torchmetrics ultralytics
        """
    )
)


def export_hub(network: HubNetwork, folder: Path) -> None:
    """Write the text of each part of a network to a folder, ``NAME.txt`` or ``NAME+PART.txt``.

    Raises:
        DataError: it cannot be built or exported, or has another number of parameters than the label says.
    """
    try:
        replace_packages()
        texts = dict(_texts(network.name))
    except (Exception, SystemExit) as error:  # of a package's code, which asks for input or exits
        problem = f"{type(error).__name__}: {str(error)[:200]}"
        raise DataError(f"{network.name}: cannot be exported ({problem})") from None
    if network.parameters and len(texts) == 1 and not has_parameters(next(iter(texts.values())), network.parameters):
        raise DataError(f"{network.name}: has not the {network.parameters:g} million parameters of the label")
    folder.mkdir(parents=True, exist_ok=True)
    for part, text in texts.items():
        with atomic_write(folder / f"{network.name}{part and f'+{part}'}.txt") as partial:
            partial.write_text(text, encoding="utf-8")


def is_exported(network: HubNetwork, folder: Path) -> bool:
    """Return whether a folder has the graph of a network, or of a part of it."""
    return (folder / f"{network.name}.txt").is_file() or any(folder.glob(f"{network.name}+*.txt"))


def _texts(name: str) -> Iterator[tuple[str, str]]:
    import torch

    module = importlib.import_module(f"qai_hub_models.models.{name}")
    with without_initialisation():
        model = module.Model.from_pretrained()
    parts = getattr(model, "components", None) or {"": model}
    for part, network in parts.items() if isinstance(parts, dict) else enumerate(parts):
        inputs = []
        for entry in network.get_input_spec().values():
            shape, dtype = (entry.shape, entry.dtype) if hasattr(entry, "shape") else entry[:2]
            inputs.append(torch.ones(*shape, dtype=getattr(torch, dtype)))
        yield str(part), render(from_model(to_onnx(network.eval(), inputs)))


def replace_packages() -> None:
    """Put stand-ins in the place of packages, and leave out what reads weights."""
    if any(isinstance(finder, StandIns) for finder in sys.meta_path):
        return
    os.environ |= {"HF_HUB_OFFLINE": "1", "TRANSFORMERS_OFFLINE": "1"}
    sys.meta_path.append(StandIns())
    import torch

    keys = torch.nn.modules.module._IncompatibleKeys([], [])
    torch.nn.Module.load_state_dict = lambda *_, **__: keys  # type: ignore[method-assign]
    torch.load = torch.hub.load_state_dict_from_url = lambda *_, **__: _EveryKey()  # type: ignore[assignment]
    loaders: Any = importlib.import_module("qai_hub_models.utils.asset_loaders")
    loaders.CachedWebAsset.fetch = lambda *_, **__: Path("missing")
    loaders.load_torch = lambda *_, **__: _EveryKey()
    with suppress(ImportError):
        weights = importlib.import_module("torchvision.models._api").WeightsEnum
        weights.get_state_dict = lambda *_, **__: {}
    with suppress(ImportError):
        timm: Any = importlib.import_module("timm")
        create = timm.create_model
        timm.create_model = lambda name, pretrained=False, **options: create(name, pretrained=False, **options)
    with suppress(ImportError):
        _replace_loading(importlib.import_module("transformers"))


def _replace_loading(transformers: Any) -> None:
    def built(cls: Any, name: object, /, *_: object, **options: object) -> Any:
        found = configuration(str(name))
        for key in options:
            if hasattr(found, key):
                setattr(found, key, options[key])
        found._attn_implementation = "eager" if options.get("attn_implementation") == "eager" else None
        return (cls._from_config(found) if hasattr(cls, "_from_config") else cls(found)).eval()

    transformers.PreTrainedModel.from_pretrained = classmethod(built)
    factory = importlib.import_module("transformers.models.auto.auto_factory")
    factory._BaseAutoModelClass.from_pretrained = classmethod(
        lambda cls, name, *_, **__: cls.from_config(configuration(str(name))).eval()
    )
    for holder in (transformers.PretrainedConfig, transformers.AutoConfig):
        holder.from_pretrained = classmethod(lambda cls, name, *_, **__: configuration(str(name)))
    for holder in (transformers.PreTrainedTokenizerBase, transformers.AutoTokenizer):
        holder.from_pretrained = classmethod(lambda *_, **__: _StandIn())


class _EveryKey(dict[str, Any]):
    """Weights that are not there: every name leads to more of them."""

    def __missing__(self, key: str) -> _EveryKey:
        return _EveryKey()

    def __contains__(self, key: object) -> bool:
        return True


class _StandInType(type):
    def __getattr__(cls, name: str) -> _StandInType:
        return _named(name)

    def __getitem__(cls, key: object) -> _StandInType:
        return cls

    def __or__(cls, other: object) -> _StandInType:
        return cls

    def __ror__(cls, other: object) -> _StandInType:
        return cls

    def __iter__(cls) -> Iterator[Any]:
        return iter(())


class _StandIn(metaclass=_StandInType):
    """A class, function or object of a package that is not needed: it has every attribute and can be called."""

    def __init__(self, *_: object, **__: object) -> None:
        pass

    def __call__(self, *arguments: Any, **_: object) -> Any:
        return arguments[0] if len(arguments) == 1 and callable(arguments[0]) else _StandIn()

    def __getattr__(self, name: str) -> Any:
        return _named(name)


def _named(name: str) -> _StandInType:
    if name.startswith("__"):
        raise AttributeError(name)
    return _StandInType(name, (_StandIn,), {})


class _Package(types.ModuleType):
    __version__ = "99.0.0"

    def __getattr__(self, name: str) -> Any:
        return _named(name)


class StandIns(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Finds stand-ins after everything else, so that an installed package is used."""

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> importlib.machinery.ModuleSpec | None:
        """The specification of a package that is not needed."""
        if name.partition(".")[0] not in _STAND_INS:
            return None
        return importlib.machinery.ModuleSpec(name, self, is_package=True)

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> types.ModuleType:
        """A package that has every name."""
        module = _Package(spec.name)
        module.__path__ = []
        return module

    def exec_module(self, module: types.ModuleType) -> None:
        """Nothing: a stand-in has no code."""
