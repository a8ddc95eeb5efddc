"""Labels of networks -> rows: what is measured, what is blind, and which graph belongs to a label."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest
from rlm_core.errors import DataError
from rlm_core.source.onnx_graph.costs import costs, total
from rlm_core.source.onnx_graph.parse import parse

from tools.networks import __main__ as command
from tools.networks.builder import NetworkBuilder
from tools.networks.graphs import FUSED, is_fused_elsewhere, text_of
from tools.networks.labels import TIMM, LabelledNetwork, is_blind, read_timm

PLAIN = "in a 1x3x32x32\nb=·Conv3x3 6400 bias\na·Conv1x1 6400 bias·Add b"
REPARAMETERISED = "in a 1x3x32x32\n·Conv3x3 6400 bias"
FIELDS = "model_now,group,mode,img_size,batch,latency_s,params_m,gmacs,macts_m,device,dtype,layout,backend,pytorch,line"


def millions(text: str) -> float:
    return total(costs(parse(text))).parameters / 1e6


@pytest.fixture
def labels(tmp_path: Path) -> Path:
    lines = [
        f"net,vit,infer,32,8,0.5,{millions(PLAIN):.4f},0.1,,nvidia-rtx-3090,amp-fp16,nchw,eager,2.4.0,3",
        f"net,vit,infer,32,8,0.25,{millions(REPARAMETERISED):.4f},0.1,1.5,nvidia-rtx-3090,amp-fp16,nchw,eager,2.9.1,4",
        "other,swin,infer,32,8,0.25,99,0.1,1.5,nvidia-rtx-3090,amp-fp16,nchw,eager,2.9.1,5",
        ",gone,infer,32,8,0.25,99,0.1,1.5,nvidia-rtx-3090,amp-fp16,nchw,eager,2.9.1,6",
    ]
    with gzip.open(tmp_path / TIMM, "wt") as file:
        file.write("\n".join([FIELDS, *lines]))
    return tmp_path


@pytest.fixture
def graphs(tmp_path: Path) -> Path:
    folder = tmp_path / "graphs"
    folder.mkdir()
    (folder / "net@32.txt").write_text(PLAIN, encoding="utf-8")
    (folder / f"net@32{FUSED}.txt").write_text(REPARAMETERISED, encoding="utf-8")
    (folder / "other@32.txt").write_text(PLAIN, encoding="utf-8")
    return folder


def test_a_label_is_read_with_its_setting(labels: Path) -> None:
    first, *others = read_timm(labels)
    assert len(others) == 2
    assert (first.network.file, first.seconds, first.counts) == ("net@32", 0.5, (0.1, 0))
    assert first.workload == {
        "batch": "8",
        "mode": "infer",
        "dtype": "amp-fp16",
        "layout": "nchw",
        "backend": "eager",
        "runtime": "pytorch-2.4.0",
    }


def test_a_graph_belongs_to_a_label_with_its_number_of_parameters(labels: Path, graphs: Path) -> None:
    builder = NetworkBuilder(labels, graphs)
    rows = list(builder.rows())
    assert [row["text"] for row in rows] == [PLAIN, REPARAMETERISED]
    assert {row["split"] for row in rows} == {"test" if is_blind("vit") else "train"}
    assert builder.report().left_out == {"no graph with this number of parameters": 1}


def test_a_network_is_fused_where_its_label_has_fewer_parameters(graphs: Path) -> None:
    fused = LabelledNetwork("net", 32, millions(REPARAMETERISED))
    assert not is_fused_elsewhere(fused, graphs)
    (graphs / f"net@32{FUSED}.txt").unlink()
    assert is_fused_elsewhere(fused, graphs)
    assert text_of(fused, graphs) is None
    assert not is_fused_elsewhere(LabelledNetwork("net", 32, millions(PLAIN)), graphs)


def test_about_a_fifth_of_groups_is_blind() -> None:
    assert 0.15 < sum(is_blind(f"group{number}") for number in range(1000)) / 1000 < 0.25


def test_labels_that_cannot_be_read_are_refused(tmp_path: Path, graphs: Path) -> None:
    with pytest.raises(DataError, match="labels of networks"):
        read_timm(graphs)
    with gzip.open(tmp_path / TIMM, "wt") as file:
        file.write("model_now,group\nnet,vit\n")
    with pytest.raises(DataError, match="labels of networks"):
        read_timm(tmp_path)


def test_the_command_builds_a_data_set(labels: Path, graphs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    command.main(["build", "--labels", str(labels), "--graphs", str(graphs), "--out", str(labels / "rows.parquet")])
    assert "2 rows of 2 units" in capsys.readouterr().out
