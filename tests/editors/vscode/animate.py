"""The frames of the README's animation as one GIF: ``python animate.py FRAMES FILE``.

Input: the folder that ``animation.mjs`` writes. All frames share one palette, and each frame holds only what differs
from the one before, so that the file stays small.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from PIL import Image

_COLOURS = 128


def frames_of(folder: Path) -> tuple[list[Image.Image], list[int]]:
    """The frames in one palette, and how long each is shown, in milliseconds; equal frames become one."""
    shown = json.loads((folder / "frames.json").read_text(encoding="utf-8"))
    images = [Image.open(folder / one["file"]).convert("RGB") for one in shown]
    palette = _palette(images)
    kept: list[Image.Image] = []
    times: list[int] = []
    for image, one in zip(images, shown, strict=True):
        reduced = image.quantize(palette=palette, dither=Image.Dither.NONE)
        if kept and reduced.tobytes() == kept[-1].tobytes():
            times[-1] += one["milliseconds"]
        else:
            kept.append(reduced)
            times.append(one["milliseconds"])
    return kept, times


def _palette(images: list[Image.Image]) -> Image.Image:
    """The colours that all frames together need most."""
    width, height = images[0].size
    all_frames = Image.new("RGB", (width, height * len(images)))
    for place, image in enumerate(images):
        all_frames.paste(image, (0, height * place))
    return all_frames.quantize(_COLOURS, method=Image.Quantize.MEDIANCUT)


def main(folder: Path, target: Path) -> None:
    """Write the animation, and say how large and how long it is."""
    images, times = frames_of(folder)
    images[0].save(target, save_all=True, append_images=images[1:], duration=times, loop=0, optimize=False, disposal=1)
    print(f"{target}: {len(images)} frames, {sum(times) / 1000:.0f} s, {target.stat().st_size // 1024} KiB")


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
