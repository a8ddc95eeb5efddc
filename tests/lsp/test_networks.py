"""Networks in ``.onnx`` files over a real connection: one by one, and those of a folder against each other."""

from __future__ import annotations

from pathlib import Path

import pytest
from lsprotocol import types
from pygls.exceptions import JsonRpcException

from .onnx_models import residual_network, write_networks
from .recording import recording
from .test_overview import ask

pytestmark = [pytest.mark.asyncio, pytest.mark.timeout(90)]
PLAIN = types.ClientCapabilities()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    write_networks(tmp_path)
    return tmp_path


async def test_a_network_has_an_accuracy_and_a_latency_on_every_device(folder: Path) -> None:
    async with recording(PLAIN, folder) as session:
        uri = (folder / "large.onnx").as_uri()
        answer = await ask(session, "rlm-lsp/network", uri=uri)
        assert answer["name"] == "large.onnx"
        assert answer["text"].startswith("in a 1x3x32x32")
        [accuracy] = answer["accuracy"]
        assert 0.5 < accuracy["low"] <= accuracy["median"] <= accuracy["high"] <= 1
        devices = [one["device"] for one in answer["latency"]]
        assert len(devices) == len(set(devices)) > 10
        by_name = {one["deviceName"]: one for one in answer["latency"]}
        assert by_name["Google Pixel 3"]["medianText"].endswith("ms")


async def test_a_network_has_one_energy_whatever_the_devices(folder: Path) -> None:
    uri = (folder / "large.onnx").as_uri()
    for devices in ([], ["Raspberry Pi 5"], ["Pixel 3"]):
        async with recording(PLAIN, folder, options={"devices": devices}) as session:
            answer = await ask(session, "rlm-lsp/network", uri=uri)
            [energy] = answer["energy"]
            assert (energy["device"], energy["unit"]) == ("raspberry-pi-5", "J")
            assert energy["medianText"].endswith(" mJ")


async def test_another_batch_and_the_configured_devices_are_queried(folder: Path) -> None:
    async with recording(PLAIN, folder, options={"devices": ["Pixel 3", "A100"]}) as session:
        uri = (folder / "small.onnx").as_uri()
        one = await ask(session, "rlm-lsp/network", uri=uri)
        several = await ask(session, "rlm-lsp/network", uri=uri, sizes={"batch": 32})
        # A device that is not known gets an answer too: the reason names the known ones.
        assert one["latency"][1]["abstained"]
        assert [latency["device"] for latency in one["latency"]].count("pixel-3") == 1
        named = {latency["device"]: latency for latency in several["latency"]}
        alone = {latency["device"]: latency for latency in one["latency"]}
        assert named["nvidia-titan-rtx"]["workload"]["batch"] == "32"
        assert named["nvidia-titan-rtx"]["median"] != alone["nvidia-titan-rtx"]["median"]


async def test_a_folder_lists_its_pareto_optimal_networks(folder: Path) -> None:
    (folder / "broken.onnx").write_bytes(b"not a model")
    async with recording(PLAIN, folder) as session:
        answer = await ask(session, "rlm-lsp/networks", uri=folder.as_uri(), device="Pixel 3")
        points = answer["points"]
        assert {point["name"] for point in points} == {"large", "small"}
        latencies = [point["latency"]["median"] for point in points]
        assert latencies == sorted(latencies)
        assert points[0]["front"], "nothing is quicker"
        assert max(points, key=lambda point: point["accuracy"]["median"])["front"], "nothing is more accurate"
        assert [other["name"] for other in answer["others"]] == ["broken"]
        assert "not an ONNX model" in answer["others"][0]["reason"]
        assert (answer["device"], answer["left"]) == ("pixel-3", 0)
        elsewhere = await ask(session, "rlm-lsp/networks", uri=folder.as_uri(), device="raspberry-pi-4")
        assert [point["latency"]["median"] for point in elsewhere["points"]] != latencies


async def test_a_network_has_its_operators_and_what_limits_it(folder: Path) -> None:
    async with recording(PLAIN, folder) as session:
        answer = await ask(session, "rlm-lsp/network", uri=(folder / "large.onnx").as_uri())
        parts = {one["device"]: one["network"] for one in answer["latency"] if one["network"] is not None}
        assert len(parts) > 4
        for found in parts.values():
            assert found["bound"] in ("compute", "bandwidth")
            seconds = [operator["seconds"] for operator in found["operators"]]
            assert seconds == sorted(seconds, reverse=True)
            assert 0 < sum(operator["share"] for operator in found["operators"]) <= 1.001
        assert answer["open"] == answer["sizes"] == {}


async def test_two_networks_have_the_ratios_of_their_costs(folder: Path) -> None:
    async with recording(PLAIN, folder) as session:
        small, large = ((folder / f"{name}.onnx").as_uri() for name in ("small", "large"))
        alone = await ask(session, "rlm-lsp/network", uri=large)
        both = await ask(session, "rlm-lsp/network", uri=large, other=small)
        assert (alone["ratios"], both["latency"]) == ([], alone["latency"])
        of_latency = [one for one in both["ratios"] if one["metric"] == "latency"]
        assert len(of_latency) > 4
        for one in of_latency:
            assert one["low"] <= one["ratio"] <= one["high"]
        [on_gpu] = [one for one in of_latency if one["device"] == "nvidia-rtx-3090"]
        assert (on_gpu["direction"], on_gpu["ratioText"][-1]) == ("higher", "×")
        assert on_gpu["above"] > 0.8
        memory = [one for one in both["ratios"] if one["metric"] == "memory"]
        assert all(one["ratio"] == one["low"] == one["high"] for one in memory)
        with pytest.raises(Exception, match=r"missing\.onnx"):
            await ask(session, "rlm-lsp/network", uri=large, other=(folder / "missing.onnx").as_uri())


async def test_sizes_that_a_file_leaves_open_come_from_the_request_or_the_settings(folder: Path) -> None:
    model = residual_network(3)
    for axis in (2, 3):
        model.graph.input[0].type.tensor_type.shape.dim[axis].dim_param = "side"
    (folder / "open.onnx").write_bytes(model.SerializeToString())
    uri = (folder / "open.onnx").as_uri()

    async def median(sizes: dict[str, int]) -> tuple[float, dict[str, int]]:
        answer = await ask(session, "rlm-lsp/network", uri=uri, sizes=sizes)
        [latency] = [one for one in answer["latency"] if one["device"] == "nvidia-rtx-3090"]
        return latency["median"], answer["open"]

    async with recording(PLAIN, folder, options={"sizes": {"*.onnx": {"image": 64}}}) as session:
        of_settings = await median({})
        of_request = await median({"image": 128})
        assert (of_settings[1], of_request[1]) == ({"image": 64}, {"image": 128})
        assert 3 < of_request[0] / of_settings[0] < 5
        fixed = await ask(session, "rlm-lsp/network", uri=(folder / "large.onnx").as_uri(), sizes={"image": 64})
        assert any("fixes the sizes" in (one["abstained"] or "") for one in fixed["latency"])


async def test_a_call_that_names_a_network_has_its_hover(folder: Path) -> None:
    (folder / "app").mkdir()
    path = folder / "app" / "serve.py"
    path.write_text(
        "import onnxruntime\n\n\ndef serve():\n"
        '    session = onnxruntime.InferenceSession("large.onnx")\n'
        "    # rlm: sizes batch=512\n"
        '    torch.onnx.export(model, x, "../small.onnx")\n'
        '    return onnxruntime.InferenceSession("missing.onnx")\n'
    )
    async with recording(PLAIN, folder) as session:
        uri = session.open(path)

        async def hover(line: int, character: int = 30) -> str | None:
            place = types.HoverParams(types.TextDocumentIdentifier(uri), types.Position(line, character))
            found = await session.client.text_document_hover_async(place)
            return found.contents.value if found is not None else None  # type: ignore[union-attr]

        large, small = await hover(4), await hover(6, 12)
        assert large is not None
        assert "large.onnx: predicted latency of one inference" in large
        assert "Most expensive on" in large
        assert small is not None
        assert "(batch 512)" in small
        assert await hover(7) is None
        assert await hover(0) is None


async def test_a_changed_file_is_read_again(folder: Path) -> None:
    async with recording(PLAIN, folder) as session:
        path = folder / "small.onnx"
        before = await ask(session, "rlm-lsp/network", uri=path.as_uri())
        path.write_bytes((folder / "large.onnx").read_bytes())
        assert (await ask(session, "rlm-lsp/network", uri=path.as_uri()))["text"] != before["text"]


async def test_what_is_no_network_is_one_clear_line(folder: Path) -> None:
    (folder / "broken.onnx").write_bytes(b"not a model")
    async with recording(PLAIN, folder) as session:
        for uri, message in (
            ((folder / "broken.onnx").as_uri(), "not an ONNX model"),
            ((folder / "none.onnx").as_uri(), "cannot be read"),
            ((folder / "a.py").as_uri(), "not an .onnx file"),
            ("untitled:a", "must be the URI of a file"),
        ):
            with pytest.raises(JsonRpcException, match=message):
                await ask(session, "rlm-lsp/network", uri=uri)
        assert session.sent(types.WINDOW_SHOW_MESSAGE) == []
