"""Networks of AI Hub: their labels, what is exported already, and stand-ins for packages that are not needed."""

from __future__ import annotations

import gzip
import importlib
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from rlm_core.errors import DataError

from tools.networks import __main__ as command
from tools.networks.hub_graphs import StandIns, is_exported
from tools.networks.labels import HUB, HubNetwork, read_hub

NET = HubNetwork("net", "resnet/18", 11.7, "torchvision")


@pytest.fixture
def stand_ins(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    before = set(sys.modules)
    monkeypatch.setattr(sys, "meta_path", [*sys.meta_path, StandIns()])
    yield
    for name in set(sys.modules) - before:
        del sys.modules[name]


def test_the_networks_of_the_label_file(tmp_path: Path) -> None:
    with gzip.open(tmp_path / HUB, "wt") as file:
        file.write("model,group,params_m,text_source\nnet,resnet/18,11.7,torchvision\nother,detr,,git-clone\n")
    assert read_hub(tmp_path) == [NET, HubNetwork("other", "detr", 0.0, "git-clone")]
    with pytest.raises(DataError, match="cannot be read as networks of AI Hub"):
        read_hub(tmp_path / "missing")


def test_a_network_is_exported_whole_or_in_parts(tmp_path: Path) -> None:
    assert not is_exported(NET, tmp_path)
    (tmp_path / "net+Encoder.txt").write_text("in", encoding="utf-8")
    assert is_exported(NET, tmp_path)
    assert not is_exported(HubNetwork("ne", "", 0, ""), tmp_path)


@pytest.mark.usefixtures("stand_ins")
def test_a_package_that_is_not_needed_has_every_name() -> None:
    package = importlib.import_module("mmdet.models.heads")
    head = package.Head[int](3)
    assert list(package.Head) == []
    assert head.anything(1) is not None

    @package.register_module()
    class Net:
        pass

    assert Net.__name__ == "Net"
    with pytest.raises(ModuleNotFoundError):
        importlib.import_module("a_package_that_nobody_has")


@pytest.mark.usefixtures("stand_ins")
def test_an_installed_package_is_used() -> None:
    assert StandIns().find_spec("json") is None
    assert importlib.import_module("json").loads("1") == 1


def test_a_network_that_cannot_be_built_is_one_line_and_the_next_one_follows(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    rows = ["net,resnet/18,11.7,torchvision", "other,detr,,git-clone", "last,vit,5,timm"]
    with gzip.open(tmp_path / HUB, "wt") as file:
        file.write("\n".join(["model,group,params_m,text_source", *rows]))
    command.main(["export-hub", "--labels", str(tmp_path), "--graphs", str(tmp_path / "graphs")])
    lines = [line for line in capfd.readouterr().err.splitlines() if "cannot be exported" in line]
    assert [line.partition(":")[0] for line in lines] == ["net", "last"]
