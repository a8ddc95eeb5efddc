"""The site builds without a warning, its links lead somewhere, and it needs no other host."""

from __future__ import annotations

import html
import json
import re
import subprocess
import sys
from pathlib import Path

import click
import pytest
from rlm_lsp.cli.app import TASKS
from rlm_lsp.findings.finding import CODES, docs_link
from rlm_lsp.lsp.features.diagnostics import MALFORMED_SIZES

from .blocks import REPOSITORY
from .links import problems
from .parsing import our_commands


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The built site."""
    # Not with --quiet: it keeps warnings from those who count them too.
    folder = tmp_path_factory.mktemp("site").resolve()
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(folder)]
    done = subprocess.run(command, cwd=REPOSITORY, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return folder


def test_links_lead_somewhere_and_nothing_is_loaded_from_other_hosts(site: Path) -> None:
    assert list(problems(site)) == []


def test_findings_link_to_anchors_of_a_page(site: Path) -> None:
    for link in (*map(docs_link, CODES), docs_link(CODES[0]).partition("#")[0] + f"#{MALFORMED_SIZES}"):
        name, _, anchor = link.rpartition("/")[2].partition("#")
        assert f'id="{anchor}"' in (site / Path(name).with_suffix(".html")).read_text(encoding="utf-8")


def test_the_model_card_is_a_page_with_its_pictures(site: Path) -> None:
    text = (site / "model-card.html").read_text(encoding="utf-8")
    pictures = re.findall(r'<img [^>]*src="(model-card/[^"]+)"', text)
    assert pictures
    assert all((site / picture).is_file() for picture in pictures)


def test_the_command_reference_shows_every_command_with_its_help_and_options(site: Path) -> None:
    text = (site / "commands.html").read_text(encoding="utf-8")
    headings = {found[1]: found.start() for found in re.finditer(r'<h[2-6] id="(rlm-lsp[\w-]*)"', text)}
    ends = dict(zip(headings, [*list(headings.values())[1:], len(text)], strict=True))
    documented = dict(our_commands())
    assert {name.replace(" ", "-") for name in documented} == set(headings)
    for name, command in documented.items():
        anchor = name.replace(" ", "-")
        section = html.unescape(re.sub(r"<[^>]+>", "", text[headings[anchor] : ends[anchor]]))
        words = " ".join(section.split())
        assert " ".join((command.help or "").split())[:60].replace("`", "") in words, name
        for option in command.params:
            if isinstance(option, click.Option) and not option.hidden:
                assert set(re.findall(r"--[a-z][\w-]*", section)) >= {max(option.opts, key=len)}, name
                assert (option.help or "")[:30] in words, f"{name} {option.name}"


def test_the_command_reference_begins_with_the_commands_by_task(site: Path) -> None:
    text = (site / "commands.html").read_text(encoding="utf-8")
    parts = re.split(r'<h2 id="[\w-]+">([^<]+)', text)
    listed = {
        title: set(re.findall(r'href="#rlm-lsp-([\w-]+)"><code>', part))
        for title, part in zip(parts[1::2], parts[2::2], strict=True)
    }
    assert {task: listed[task] for task in TASKS} == {task: set(commands) for task, commands in TASKS.items()}


def test_every_page_can_be_searched_for(site: Path) -> None:
    index = json.loads((site / "search" / "search_index.json").read_text(encoding="utf-8"))
    found = {entry["location"].partition("#")[0] for entry in index["docs"]}
    assert found == {page.relative_to(site).as_posix() for page in site.rglob("*.html")} - {"404.html"}
    [settings] = re.findall(r'id="__config" type="application/json">(.*?)</script>', (site / "index.html").read_text())
    assert (site / json.loads(settings)["search"]).is_file()


@pytest.mark.parametrize(
    ("text", "wrong"),
    [
        ('<a href="other.html#there">', ""),
        ('<a href="other.html#nowhere">', "has no such anchor"),
        ('<a href="gone.html">', "leads nowhere"),
        ('<a href="../outside.html">', "leads nowhere"),
        ('<a href="/other.html">', "absolute path"),
        ('<a href="https://example.org/x">', ""),
        ('<a href="https:/example.org">', "no address"),
        ('<script src="https://example.org/x.js"></script>', "loads https://example.org/x.js"),
        ('<link rel="stylesheet" href="//example.org/x.css">', "loads //example.org/x.css"),
    ],
)
def test_what_is_wrong_with_a_page_is_found(text: str, wrong: str, tmp_path: Path) -> None:
    (tmp_path / "other.html").write_text('<h1 id="there">')
    (tmp_path / "page.html").write_text(text)
    found = list(problems(tmp_path.resolve()))
    assert any(wrong in line for line in found) if wrong else found == []
