"""NAS label files -> rows: SI units, devices and batches, groups, and every reason to leave a value out."""

from __future__ import annotations

import gzip
import sys
from pathlib import Path
from typing import Any

import pytest
from rlm_core.errors import DataError
from rlm_core.source.onnx_graph.parse import parse
from rlm_core.source.onnx_graph.render import render
from rlm_core.training.datasets.schema import read_rows, write_rows
from rlm_core.training.datasets.splits import split_of

from tools.nas.__main__ import main
from tools.nas.builder import NasBuilder
from tools.nas.labels import FILES

pytestmark = pytest.mark.extras

LIVE = "|nor_conv_1x1~0|+|none~0|none~1|+|none~0|skip_connect~1|none~2|"
ALIKE = "|none~0|+|nor_conv_1x1~0|none~1|+|none~0|none~1|skip_connect~2|"
DEAD = "|nor_conv_3x3~0|+|none~0|none~1|+|none~0|none~1|skip_connect~2|"
LATENCY = f"""arch_index,arch_str,1080ti_1,1080ti_256,essential_ph_1,pixel3
0,{LIVE},10.5,17.25,9,3.5
7,{ALIKE},10.5,17.25,9,0
9,{DEAD},10.5,17.25,9,0.004
"""
ACCURACY = f"""arch_index,arch_str,cifar10_test_200ep,cifar100_test_200ep,imagenet16_120_test_200ep,cifar10_val_12ep,\
cifar10_test_12ep,cifar100_val_12ep,cifar100_test_12ep,imagenet16_120_val_12ep,imagenet16_120_test_12ep
0,{LIVE},85.5,52.5,26.5,63.5,69.5,31.5,31.0,18.5,17.0
"""
MNASNET = """result_id,block_e,block_k,block_l,block_se,val_top1,\
latency_vck190_ms,latency_zcu102_ms,throughput_a100_img_per_s
3,6 4 6 6 6 1 1,3 5 3 5 5 3 3,1 1 1 1 1 1 1,0 0 0 0 0 0 1,59.5,3.5,,7034.9
"""
OTHERS = {
    "nasbench101_20k.csv.gz": """module_hash,adjacency,ops,params,val_acc_4ep,val_acc_12ep,val_acc_36ep,val_acc_108ep
abc,010;001;000,input maxpool3x3 output,0,0.25,0.5,0.75,0.875
""",
    "nasbench101_sample100.csv.gz": """id,adjacency,ops,params,val_accuracy_4,test_accuracy_4,val_accuracy_12,\
test_accuracy_12,val_accuracy_36,test_accuracy_36,val_accuracy_108,test_accuracy_108
5,010;001;000,input maxpool3x3 output,0,0.2,0.3,0.4,0.5,0.6,0.7,0.8,0.9
""",
    "nasbenchmacro_cifar10_accuracy.csv.gz": "arch,mean_acc,params,flops\n00000000,45.5,387882,7713280\n",
    "fbnet_latency.csv.gz": "arch_index,arch_str,op_idx,gold_6226,gold_6240\n1," + "skip " * 22 + ",8,111.5,30.5\n",
    "ofa_latency.csv.gz": """arch_index,resolution,depth,kernel,expand,titan_xp_32
0,132,2 2 2 2 2,3 3 3 3 3 3 3 3 3 3 3 3 3 3 3 3 3 3 3 3,3 3 3 3 3 3 3 3 3 3 3 3 3 3 3 3 3 3 3 3,28.5
""",
    "hat_transformer_latency.csv.gz": """task,device,encoder_embed_dim,encoder_layer_num,encoder_ffn_embed_dim_avg,\
encoder_self_attention_heads_avg,decoder_embed_dim,decoder_layer_num,decoder_ffn_embed_dim_avg,\
decoder_self_attention_heads_avg,decoder_ende_attention_heads_avg,decoder_arbitrary_ende_attn_avg,latency_ms
wmt14ende,cpu_raspberrypi,512,6,512,2,512,1,512,4,8,1,3070.5
""",
}


def write(folder: Path, name: str, text: str) -> Path:
    with gzip.open(folder / name, "wt", encoding="utf-8") as file:
        file.write(text)
    return folder


def build(folder: Path, **options: Any) -> tuple[list[dict[str, Any]], NasBuilder]:
    builder = NasBuilder(folder, workers=1, **options)
    return list(builder.rows()), builder


def test_a_latency_column_is_a_device_and_a_batch_in_seconds(tmp_path: Path) -> None:
    rows, _ = build(write(tmp_path, "nasbench201_latency.csv.gz", LATENCY))
    first = {row["id"]: row for row in rows if row["id"].startswith("nas/nasbench201/0/")}
    assert {name: (row["device"], row["workload"], row["value"]) for name, row in first.items()} == {
        "nas/nasbench201/0/latency/nvidia-gtx-1080-ti/1": ("nvidia-gtx-1080-ti", {"batch": "1"}, pytest.approx(0.0105)),
        "nas/nasbench201/0/latency/nvidia-gtx-1080-ti/256": (
            "nvidia-gtx-1080-ti",
            {"batch": "256"},
            pytest.approx(0.01725),
        ),
        "nas/nasbench201/0/latency/essential-ph-1/1": ("essential-ph-1", {"batch": "1"}, pytest.approx(0.009)),
        "nas/nasbench201/0/latency/pixel-3/1": ("pixel-3", {"batch": "1"}, pytest.approx(0.0035)),
    }


def test_what_is_not_physical_is_left_out_and_counted(tmp_path: Path) -> None:
    rows, builder = build(write(tmp_path, "nasbench201_latency.csv.gz", LATENCY))
    assert len(rows) == 4 + 3 + 3
    missing = builder.report().left_out
    assert missing["network without a path, pruned away before it was measured"] == 1
    assert missing["no latency in the column"] == 1
    assert missing["label file not in the folder"] == len(FILES) - 1


def test_networks_that_compute_the_same_share_a_group_and_its_split(tmp_path: Path) -> None:
    rows, _ = build(write(tmp_path, "nasbench201_latency.csv.gz", LATENCY))
    groups = [{row["group"] for row in rows if row["id"].split("/")[2] == index} for index in ("0", "7", "9")]
    assert groups[0] == groups[1] != groups[2]
    assert all(row["split"] == split_of(row["group"]) and row["family"] == row["group"] for row in rows)
    forced, _ = build(tmp_path, split="test")
    assert {row["split"] for row in forced} == {"test"}


def test_accuracy_is_a_fraction_with_data_set_epochs_and_subset(tmp_path: Path) -> None:
    rows, _ = build(write(tmp_path, "nasbench201_accuracy.csv.gz", ACCURACY))
    assert len(rows) == 9
    values = {row["id"].removeprefix("nas/nasbench201/0/accuracy/"): row for row in rows}
    last = values["imagenet16-120/12/test"]
    assert (last["metric"], last["device"], last["value"]) == ("accuracy", None, pytest.approx(0.17))
    assert last["workload"] == {"dataset": "imagenet16-120", "epochs": "12", "subset": "test"}
    assert values["cifar10/200/test"]["value"] == pytest.approx(0.855)


def test_one_text_serves_all_queries_of_an_architecture(tmp_path: Path) -> None:
    write(tmp_path, "nasbench201_accuracy.csv.gz", ACCURACY)
    rows, builder = build(write(tmp_path, "nasbench201_latency.csv.gz", LATENCY))
    assert len({row["text"] for row in rows if "/nasbench201/0/" in row["id"]}) == 1
    assert builder.report().units == 2  # LIVE and ALIKE are the same graph
    text = rows[0]["text"]
    assert render(parse(text)) == text


def test_throughput_is_not_read_and_gaps_are_counted(tmp_path: Path) -> None:
    rows, builder = build(write(tmp_path, "accelnasbench_mnasnet.csv.gz", MNASNET))
    assert [(row["metric"], row["device"], row["value"]) for row in rows] == [
        ("accuracy", None, pytest.approx(0.595)),
        ("latency", "xilinx-vck190", pytest.approx(0.0035)),
    ]
    assert builder.report().left_out["no latency in the column"] == 1


def test_every_label_file_is_read_and_its_rows_fit_the_schema(tmp_path: Path) -> None:
    labels = OTHERS | {
        "nasbench201_latency.csv.gz": LATENCY,
        "nasbench201_accuracy.csv.gz": ACCURACY,
        "accelnasbench_mnasnet.csv.gz": MNASNET,
    }
    assert set(labels) == set(FILES)
    for name, text in labels.items():
        write(tmp_path, name, text)
    progress: list[tuple[int, int]] = []
    builder = NasBuilder(tmp_path, workers=2)
    assert write_rows(builder.rows(lambda done, total: progress.append((done, total))), tmp_path / "nas.parquet") == 38
    assert progress[-1] == (11, 11)
    rows = {row["id"]: row for row in read_rows([tmp_path / "nas.parquet"])}
    assert len(rows) == builder.report().rows == 38
    assert {(row["language"], row["basis"], row["held_out"]) for row in rows.values()} == {
        ("onnx", "network", "architecture")
    }
    assert rows["nas/ofa/0/latency/nvidia-titan-xp/32"]["workload"] == {"batch": "32"}
    assert rows["nas/fbnet/1/latency/intel-xeon-gold-6226/1"]["workload"] == {"batch": "1", "setup": "slow"}
    assert rows["nas/hat/0/latency/raspberry-pi-4/1"]["workload"] == {"batch": "1", "beam": "5", "steps": "30"}
    assert (
        rows["nas/nasbench101/abc/accuracy/cifar10/4/val"]["group"]
        == rows["nas/nasbench101-sample/5/accuracy/cifar10/4/test"]["group"]
    )


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("arch_index,1080ti_1\n0,1.5\n", "arch_str"),
        (LATENCY.replace("pixel3", "toaster"), "toaster"),
        (LATENCY.replace("10.5", "fast"), "fast"),
        (LATENCY.replace("skip_connect", "hop"), "hop"),
    ],
)
def test_a_broken_file_gets_one_clear_line(tmp_path: Path, text: str, message: str) -> None:
    write(tmp_path, "nasbench201_latency.csv.gz", text)
    with pytest.raises(DataError, match=message) as error:
        NasBuilder(tmp_path)
    assert len(str(error.value).splitlines()) == 1


def test_a_folder_without_labels_is_refused(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="none of the label files"):
        NasBuilder(tmp_path)
    (tmp_path / "ofa_latency.csv.gz").write_text("not gzip")
    with pytest.raises(DataError, match="cannot be read"):
        NasBuilder(tmp_path)


def test_the_command_builds_the_data_set(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    write(tmp_path, "nasbench201_latency.csv.gz", LATENCY)
    out = tmp_path / "nas.parquet"
    monkeypatch.setattr(sys, "argv", ["nas", "--labels", str(tmp_path), "--out", str(out), "--split", "test"])
    main()
    rows = list(read_rows([out]))
    assert {row["split"] for row in rows} == {"test"}
    first, *left_out = capsys.readouterr().out.splitlines()
    assert first.startswith(f"{out}: {len(rows)} rows of ")
    assert any("label file not in the folder; for example nasbench201_accuracy.csv.gz" in line for line in left_out)
