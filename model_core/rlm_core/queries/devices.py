"""The table of devices: names as labels and users write them -> a canonical id, kind and data-sheet figures.

Figures are the makers' public ones: peak memory bandwidth, peak FP32 of the plain units, peak dense FP16 of the matrix
units with FP32 sums (half of the FP16-sum figure on GeForce cards), multiprocessors (SM, CU or Xe core). None means
unknown. A card of two dies that programs see as two devices (MI250) is listed as one die.

A basis whose features describe a GPU by its data sheet also predicts for GPUs that were not in the training data:
unseen code is ranked nearly as well on a GPU that was left out of training as with its rows (docs/gpu.md). That was
measured among the training GPUs, so a data sheet far from theirs is refused.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from typing import Literal

DeviceKind = Literal["gpu", "cpu", "phone", "accelerator"]


@dataclass(frozen=True, slots=True)
class Device:
    """A device: bytes/s, operations/s, bytes; ``aliases`` are other spellings (case and punctuation do not count)."""

    id: str
    name: str
    kind: DeviceKind
    aliases: tuple[str, ...] = ()
    memory_bandwidth: float | None = None
    fp32_flops: float | None = None
    fp16_flops: float | None = None
    memory: float | None = None
    multiprocessors: int | None = None
    year: int | None = None


# id | title | GB/s | FP32 TFLOP/s | FP16 TFLOP/s | GiB | multiprocessors | year | aliases, separated by commas
_GPUS = """
nvidia-gtx-1080|NVIDIA GeForce GTX 1080|320|8.9|-|8|20|2016|
nvidia-gtx-1080-ti|NVIDIA GeForce GTX 1080 Ti|484|11.3|-|11|28|2017|1080ti
nvidia-gtx-1660-ti|NVIDIA GeForce GTX 1660 Ti|288|5.4|-|6|24|2019|1660ti
nvidia-titan-x|NVIDIA TITAN X|480|11|-|12|28|2016|titanx
nvidia-titan-xp|NVIDIA TITAN Xp|547.6|12.1|-|12|30|2017|titanxp,gpu_titanxp
nvidia-titan-v|NVIDIA TITAN V|653|14.9|110|12|80|2017|
nvidia-titan-rtx|NVIDIA TITAN RTX|672|16.3|130.5|24|72|2018|titan_rtx
nvidia-p40|NVIDIA Tesla P40|346|11.8|-|24|30|2016|
nvidia-p100|NVIDIA Tesla P100|732|10.6|-|16|56|2016|Tesla P100-SXM2-16GB,Tesla P100-PCIE-16GB
nvidia-v100|NVIDIA Tesla V100|900|15.7|125|16|80|2017|Tesla V100-SXM2-16GB
nvidia-v100-sxm2-32gb|NVIDIA Tesla V100-SXM2-32GB|900|15.7|125|32|80|2018|
nvidia-v100-pcie|NVIDIA Tesla V100-PCIE-16GB|900|14|112|16|80|2017|V100-PCIE-32GB,V100 PCIe
nvidia-t4|NVIDIA Tesla T4|320|8.1|65|16|40|2018|
nvidia-rtx-2060|NVIDIA GeForce RTX 2060|336|6.5|25.8|6|30|2019|
nvidia-rtx-2070|NVIDIA GeForce RTX 2070|448|7.5|29.9|8|36|2018|
nvidia-rtx-2080|NVIDIA GeForce RTX 2080|448|10.1|40.3|8|46|2018|
nvidia-rtx-2080-ti|NVIDIA GeForce RTX 2080 Ti|616|13.4|53.8|11|68|2018|2080ti
nvidia-rtx-3050|NVIDIA GeForce RTX 3050|224|9.1|18.2|8|20|2022|
nvidia-rtx-3060|NVIDIA GeForce RTX 3060|360|12.7|25.6|12|28|2021|
nvidia-rtx-3060-ti|NVIDIA GeForce RTX 3060 Ti|448|16.2|32.4|8|38|2020|
nvidia-rtx-3070|NVIDIA GeForce RTX 3070|448|20.3|40.6|8|46|2020|
nvidia-rtx-3070-ti|NVIDIA GeForce RTX 3070 Ti|608|21.7|43.5|8|48|2021|
nvidia-rtx-3080|NVIDIA GeForce RTX 3080|760|29.8|59.5|10|68|2020|
nvidia-rtx-3080-ti|NVIDIA GeForce RTX 3080 Ti|912|34.1|68.2|12|80|2021|
nvidia-rtx-3090|NVIDIA GeForce RTX 3090|936|35.6|71|24|82|2020|3090
nvidia-rtx-3090-ti|NVIDIA GeForce RTX 3090 Ti|1008|40|80|24|84|2022|3090ti
nvidia-rtx-4060|NVIDIA GeForce RTX 4060|272|15.1|30.2|8|24|2023|
nvidia-rtx-4060-ti|NVIDIA GeForce RTX 4060 Ti|288|22.1|44.1|8|34|2023|
nvidia-rtx-4070|NVIDIA GeForce RTX 4070|504|29.1|58.3|12|46|2023|
nvidia-rtx-4070-super|NVIDIA GeForce RTX 4070 SUPER|504|35.5|70.9|12|56|2024|
nvidia-rtx-4070-ti|NVIDIA GeForce RTX 4070 Ti|504|40.1|80.2|12|60|2023|
nvidia-rtx-4070-ti-super|NVIDIA GeForce RTX 4070 Ti SUPER|672|44.1|88.2|16|66|2024|
nvidia-rtx-4080|NVIDIA GeForce RTX 4080|717|48.7|97.5|16|76|2022|
nvidia-rtx-4080-super|NVIDIA GeForce RTX 4080 SUPER|736|52.2|104.4|16|80|2024|
nvidia-rtx-4090|NVIDIA GeForce RTX 4090|1008|82.6|165.2|24|128|2022|4090
nvidia-rtx-5050|NVIDIA GeForce RTX 5050|320|13.2|26.3|8|20|2025|
nvidia-rtx-5060|NVIDIA GeForce RTX 5060|448|19.2|38.4|8|30|2025|
nvidia-rtx-5060-ti|NVIDIA GeForce RTX 5060 Ti|448|23.7|47.4|16|36|2025|
nvidia-rtx-5070|NVIDIA GeForce RTX 5070|672|30.9|61.7|12|48|2025|
nvidia-rtx-5070-ti|NVIDIA GeForce RTX 5070 Ti|896|43.9|87.9|16|70|2025|
nvidia-rtx-5080|NVIDIA GeForce RTX 5080|960|56.3|112.6|16|84|2025|
nvidia-rtx-5090|NVIDIA GeForce RTX 5090|1792|104.8|209.5|32|170|2025|5090
nvidia-rtx-5090-laptop|NVIDIA GeForce RTX 5090 Laptop GPU|896|31.8|63.5|24|82|2025|
nvidia-a2|NVIDIA A2|200|4.5|18|16|10|2021|
nvidia-a10|NVIDIA A10|600|31.2|125|24|72|2021|
nvidia-a10g|NVIDIA A10G|600|31.5|70|24|80|2021|
nvidia-a30|NVIDIA A30|933|10.3|165|24|56|2021|
nvidia-a40|NVIDIA A40|696|37.4|149.7|48|84|2020|
nvidia-rtx-a2000|NVIDIA RTX A2000|288|8|32|6|26|2021|NVIDIA RTX A2000 12GB,A2000
nvidia-rtx-a4000|NVIDIA RTX A4000|448|19.2|76.7|16|48|2021|A4000
nvidia-rtx-a4500|NVIDIA RTX A4500|640|23.7|94.6|20|56|2021|A4500
nvidia-rtx-a5000|NVIDIA RTX A5000|768|27.8|111.1|24|64|2021|A5000
nvidia-rtx-a5500|NVIDIA RTX A5500|768|34.1|136.4|24|80|2022|A5500
nvidia-rtx-a6000|NVIDIA RTX A6000|768|38.7|154.8|48|84|2020|A6000
nvidia-rtx-5000-ada|NVIDIA RTX 5000 Ada Generation|576|65.3|261.1|32|100|2023|RTX 5000 Ada
nvidia-rtx-6000-ada|NVIDIA RTX 6000 Ada Generation|960|91.1|364.2|48|142|2022|RTX 6000 Ada
nvidia-rtx-pro-6000|NVIDIA RTX PRO 6000 Blackwell Workstation Edition|1792|125|503.8|96|188|2025|RTX PRO 6000
nvidia-a100-pcie-40gb|NVIDIA A100-PCIE-40GB|1555|19.5|312|40|108|2020|A100 40GB PCIe
nvidia-a100-pcie-80gb|NVIDIA A100 80GB PCIe|1935|19.5|312|80|108|2021|A100-PCIE-80GB
nvidia-a100-sxm4-40gb|NVIDIA A100-SXM4-40GB|1555|19.5|312|40|108|2020|A100 40GB,A100-40GB SXM
nvidia-a100-sxm4-80gb|NVIDIA A100-SXM4-80GB|2039|19.5|312|80|108|2020|A100 80GB,A100,A100 SXM,nvidia-a100-80gb
nvidia-a800|NVIDIA A800-SXM4-80GB|2039|19.5|312|80|108|2022|
nvidia-l4|NVIDIA L4|300|30.3|121|24|58|2023|
nvidia-l40|NVIDIA L40|864|90.5|181|48|142|2022|
nvidia-l40s|NVIDIA L40S|864|91.6|362|48|142|2023|
nvidia-h20|NVIDIA H20|4000|44|148|96|78|2023|
nvidia-h100-pcie|NVIDIA H100 PCIe|2039|51.2|756|80|114|2022|
nvidia-h100-nvl|NVIDIA H100 NVL|3938|60.3|835.5|94|132|2023|
nvidia-h100-sxm|NVIDIA H100 80GB HBM3|3352|66.9|989.4|80|132|2022|H100,H100 SXM5,H100 SXM5 80GB,H100 80GB
nvidia-h800|NVIDIA H800|3352|66.9|989.4|80|132|2023|
nvidia-gh200|NVIDIA GH200 480GB|4000|66.9|989.4|96|132|2023|GH200 96GB HBM3
nvidia-h200|NVIDIA H200|4800|66.9|989.4|141|132|2024|H200 SXM
nvidia-h200-nvl|NVIDIA H200 NVL|4800|60|835.5|141|132|2024|
nvidia-b200|NVIDIA B200|8000|75|2250|180|148|2024|
nvidia-gb200|NVIDIA GB200|8000|80|2500|186|148|2024|
nvidia-b300|NVIDIA B300 SXM6 AC|8000|75|2250|270|148|2025|B300 SXM6
amd-mi100|AMD Instinct MI100|1229|23.1|184.6|32|120|2020|
amd-mi210|AMD Instinct MI210|1638|22.6|181|64|104|2021|
amd-mi250|AMD Instinct MI250|1638|22.6|181|64|104|2021|
amd-mi250x|AMD Instinct MI250X|1638|23.9|191.5|64|110|2021|MI250X/MI250
amd-mi300a|AMD Instinct MI300A|5300|122.6|980.6|128|228|2023|
amd-mi300x|AMD Instinct MI300X|5300|163.4|1307.4|192|304|2023|AMD Instinct MI300X OAM
amd-mi308x|AMD Instinct MI308X|5300|-|-|192|80|2024|AMD Instinct MI308X (gfx942, 80 CU)
amd-mi325x|AMD Instinct MI325X|6000|163.4|1307.4|256|304|2024|
amd-mi350x|AMD Instinct MI350X|8000|144.2|2306.9|288|256|2025|AMD Instinct MI350X/MI355X (gfx950, 256 CU)
amd-mi355x|AMD Instinct MI355X|8000|157.3|2516.6|288|256|2025|
amd-gfx1250-96cu|AMD gfx1250 (96 CU)|-|-|-|-|96|-|
amd-gfx1250-256cu|AMD gfx1250 (256 CU)|-|-|-|-|256|-|
amd-rx-6900-xt|AMD Radeon RX 6900 XT|512|23|-|16|80|2020|
amd-rx-7900-xt|AMD Radeon RX 7900 XT|800|51.5|103|20|84|2022|
amd-rx-7900-xtx|AMD Radeon RX 7900 XTX|960|61.4|122.8|24|96|2022|
amd-rx-9070-xt|AMD Radeon RX 9070 XT|640|48.7|195|16|64|2025|
amd-w6600|AMD Radeon PRO W6600|224|10.4|-|8|28|2021|
amd-w7800|AMD Radeon PRO W7800|576|45.2|90.5|32|70|2023|
amd-w7900|AMD Radeon PRO W7900|864|61.3|122.6|48|96|2023|
intel-arc-a770|Intel Arc A770|560|19.7|157|16|32|2022|
intel-arc-b580|Intel Arc B580|456|14.6|117|12|20|2024|
intel-max-1550|Intel Data Center GPU Max 1550|3277|52.4|839|128|128|2023|
"""

# id | title | kind | year | aliases
_OTHERS = """
x86-64|x86-64 processor|cpu|-|x86_64,amd64
leetcode|LeetCode judge|cpu|-|LeetCode
boj|Baekjoon Online Judge|cpu|-|Baekjoon,acmicpc,acmicpc.net
atcoder|AtCoder judge|cpu|-|AtCoder,atcoder.jp
intel-xeon-gold-6226|Intel Xeon Gold 6226|cpu|2019|gold_6226
intel-xeon-gold-6240|Intel Xeon Gold 6240|cpu|2019|gold_6240
intel-xeon-silver-4114|Intel Xeon Silver 4114|cpu|2017|silver_4114
intel-xeon-silver-4210r|Intel Xeon Silver 4210R|cpu|2020|silver_4210r
intel-xeon-e5-2640|Intel Xeon E5-2640|cpu|2012|cpu_xeon,E5-2640
raspberry-pi-4|Raspberry Pi 4 (ARM Cortex-A72)|cpu|2019|raspi4,cpu_raspberrypi,raspi,ARM Cortex-A72,Raspberry Pi 4
pixel-2|Google Pixel 2|phone|2017|Pixel 2
pixel-3|Google Pixel 3|phone|2018|Pixel 3
samsung-galaxy-a50|Samsung Galaxy A50|phone|2019|samsung_a50
samsung-galaxy-s7|Samsung Galaxy S7|phone|2016|samsung_s7
essential-ph-1|Essential Phone PH-1|phone|2017|essential_ph_1
eyeriss|Eyeriss|accelerator|2016|
fpga|Xilinx ZC706|accelerator|2012|ZC706
xilinx-vck190|AMD Versal VCK190|accelerator|2021|vck190
xilinx-zcu102|AMD Zynq UltraScale+ ZCU102|accelerator|2017|zcu102
google-tpu-v2|Google TPU v2|accelerator|2017|tpuv2
google-tpu-v3|Google TPU v3|accelerator|2018|tpuv3
"""

SHEET_BASES = ("kernel", "module")  # whose features describe a GPU by its data sheet
MIN_SHEET_DEVICES = 10  # left out in turn, for bands
_SHEET_MARGIN = 1.5  # beyond the smallest and the largest figure among the training GPUs
_SHEET_FIGURES = ("memory_bandwidth", "fp32_flops", "fp16_flops", "multiprocessors")
# A tuned model answers for the machine where its calls were measured; `measured-x86-64` is not the one of the labels.
OWN_PREFIX = "measured-"
_NOISE = re.compile(r"\b(?:nvidia|amd|intel|geforce|instinct|tesla|radeon|graphics|gpu)\b|[^a-z0-9]+")


def _number(text: str, unit: float = 1.0) -> float | None:
    return None if text == "-" else float(text) * unit


def _year(text: str) -> int | None:
    return None if text == "-" else int(text)


def _names(text: str) -> tuple[str, ...]:
    # A comma inside brackets belongs to the name.
    return tuple(name for name in re.split(r",(?![^(]*\))", text) if name)


def _gpu(line: str) -> Device:
    key, name, bandwidth, fp32, fp16, memory, units, year, aliases = line.split("|")
    return Device(
        key,
        name,
        "gpu",
        _names(aliases),
        _number(bandwidth, 1e9),
        _number(fp32, 1e12),
        _number(fp16, 1e12),
        _number(memory, 2**30),
        int(units),
        _year(year),
    )


def _other(line: str) -> Device:
    key, name, kind, year, aliases = line.split("|")
    kinds: dict[str, DeviceKind] = {"cpu": "cpu", "phone": "phone", "accelerator": "accelerator"}
    return Device(key, name, kinds[kind], _names(aliases), year=_year(year))


DEVICES: dict[str, Device] = {
    device.id: device for device in (*map(_gpu, _GPUS.strip().splitlines()), *map(_other, _OTHERS.strip().splitlines()))
}


def canonical_device(name: str) -> str | None:
    """The id of the device called ``name``; None for an unknown one.

    Case, punctuation, makers and product lines do not count: ``A100 80GB`` and ``nvidia_a100-80gb`` are the same.
    """
    return _by_spelling().get(spelling(name))


def known_device(name: str, known: Sequence[str]) -> str:
    """The name of a device in a model with the devices ``known``: its id, or that of a tuned model's machine."""
    device = canonical_device(name) or name
    measured = OWN_PREFIX + device
    return measured if measured in known and device not in known else device


def spelling(name: str) -> str:
    """A name without case, punctuation, maker and product line."""
    return _NOISE.sub("", re.sub(r"_+", " ", name.lower()))


@cache
def _by_spelling() -> dict[str, str]:
    spellings: dict[str, str] = {}
    for device in DEVICES.values():
        for name in (device.id, device.name, *device.aliases):
            spellings[spelling(name)] = device.id
    spellings.pop("", None)
    return spellings


@lru_cache(1024)
def is_near(device: str, learned: tuple[str, ...]) -> bool:
    """Return whether a GPU's data sheet is complete and near those of its maker's devices in ``learned``."""
    maker = device.partition("-")[0]
    known = [sheet for name in learned if name.startswith(f"{maker}-") and (sheet := _data_sheet(name)) is not None]
    sheet = _data_sheet(device)
    if sheet is None or not known:
        return False
    return all(
        min(others) / _SHEET_MARGIN <= figure <= max(others) * _SHEET_MARGIN
        for figure, *others in zip(sheet, *known, strict=True)
    )


def answered_by_sheet(basis: str, device: str | None, learned: Sequence[str]) -> bool:
    """Return whether predictions of a basis for a device rely on its data sheet; those in ``learned`` do not."""
    return basis in SHEET_BASES and device is not None and device not in learned and is_near(device, tuple(learned))


def answers_for(basis: str, device: str, learned: Sequence[str]) -> bool:
    """Return whether a model trained on the devices in ``learned`` predicts for a device."""
    return device in learned or answered_by_sheet(basis, device, learned)


def _data_sheet(device: str) -> tuple[float, ...] | None:
    entry = DEVICES.get(device)
    if entry is None or entry.kind != "gpu":
        return None
    figures = [figure for name in _SHEET_FIGURES if (figure := getattr(entry, name)) is not None]
    return tuple(figures) if len(figures) == len(_SHEET_FIGURES) else None
