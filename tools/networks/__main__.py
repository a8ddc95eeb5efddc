"""``python -m tools.networks``: labels of real networks -> their graphs, and a data set in Parquet."""

from __future__ import annotations

import argparse
import hashlib
import sys
from collections.abc import Sequence
from multiprocessing import get_context
from pathlib import Path

from rlm_core.errors import RlmError

from tools.data_set import build

from .builder import NetworkBuilder
from .energy import EnergyBuilder
from .graphs import export, import_onnx, is_fused_elsewhere
from .hub_graphs import export_hub, is_exported
from .labels import HubNetwork, LabelledNetwork, NetworkLabel, read_hub, read_timm


def main(arguments: Sequence[str] | None = None) -> None:
    """Run one of the commands."""
    parser = argparse.ArgumentParser(prog="python -m tools.networks", description=__doc__.splitlines()[0])
    commands = parser.add_subparsers(dest="command", required=True)
    for name, text in (
        ("export", "write the graphs of labelled networks to a folder; continues where it stopped"),
        ("export-hub", "the same for networks of Qualcomm AI Hub whose package can build them"),
        ("import", "write the graphs of .onnx files named NAME@SIZE.onnx to the folder"),
        ("build", "write the rows of networks whose graphs are in the folder"),
        ("build-energy", "write the rows of cells whose energy was measured; their graphs are built"),
    ):
        command = commands.add_parser(name, help=text)
        if name != "build-energy":
            command.add_argument("--graphs", type=Path, required=True, help="folder of the graphs")
        if name == "import":
            command.add_argument("files", type=Path, nargs="+", metavar="FILE.onnx")
        else:
            command.add_argument("--labels", type=Path, required=True, help="folder with the label files")
        if name in ("export", "export-hub", "build-energy"):
            command.add_argument("--most", type=int, default=None, help="number of networks (default: all)")
        if name.startswith("build"):
            command.add_argument("--out", type=Path, required=True, help="Parquet file to write")
    chosen = parser.parse_args(arguments)
    if chosen.command == "build":
        build(lambda: NetworkBuilder(chosen.labels, chosen.graphs), chosen.out)
    elif chosen.command == "build-energy":
        build(lambda: EnergyBuilder(chosen.labels, chosen.most), chosen.out)
    elif chosen.command == "import":
        _import(chosen.files, chosen.graphs)
    elif chosen.command == "export-hub":
        _export_hub(read_hub(chosen.labels), chosen.graphs, chosen.most)
    else:
        _export(read_timm(chosen.labels), chosen.graphs, chosen.most)


def _export(labels: Sequence[NetworkLabel], graphs: Path, most: int | None) -> None:
    networks = list(dict.fromkeys(label.network for label in labels))
    # In an order by hash, so that any number of them is a sample.
    networks.sort(key=lambda network: hashlib.sha256(network.file.encode()).digest())
    for network in networks[:most]:
        try:
            _export_one(network, graphs)
        except RlmError as error:
            print(error, file=sys.stderr)


def _export_one(network: LabelledNetwork, graphs: Path) -> None:
    if not (graphs / f"{network.file}.txt").is_file():
        export(network, graphs)
    if is_fused_elsewhere(network, graphs):
        export(network, graphs, fused=True)


def _export_hub(networks: Sequence[HubNetwork], graphs: Path, most: int | None) -> None:
    waiting = [network for network in networks if network.source != "git-clone" and not is_exported(network, graphs)]
    context = get_context("spawn")
    for network in waiting[:most]:
        # What a package does to the process, such as a patch of torch or a crash, ends with it.
        process = context.Process(target=_export_one_of_hub, args=(network, graphs))
        process.start()
        process.join()


def _export_one_of_hub(network: HubNetwork, graphs: Path) -> None:
    try:
        export_hub(network, graphs)
    except RlmError as error:
        print(error, file=sys.stderr)


def _import(files: Sequence[Path], graphs: Path) -> None:
    graphs.mkdir(parents=True, exist_ok=True)
    for path in files:
        try:
            if not (graphs / f"{path.stem}.txt").is_file():
                import_onnx(path, graphs)
        except RlmError as error:
            print(error, file=sys.stderr)


if __name__ == "__main__":
    main()
