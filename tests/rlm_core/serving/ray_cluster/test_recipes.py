"""The recipes of docs/cluster.md: the job runs on a real cluster with a dashboard, the manifest has the right form."""

from __future__ import annotations

import json
import os
import re
import shlex
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from tests.docs.parsing import check_ours
from tests.paths import REPOSITORY

pytestmark = [pytest.mark.extras, pytest.mark.timeout(300)]

PAGE = (REPOSITORY / "docs" / "cluster.md").read_text()


def block(title: str) -> str:
    """The text of the block with a title."""
    [text] = re.findall(rf'```\w+ title="{title}"[^\n]*\n(.*?)```', PAGE, re.DOTALL)
    return str(text)


@pytest.fixture(scope="module")
def dashboard() -> Iterator[str]:
    """The address of the dashboard of a cluster of one node, which finds this environment's programs."""
    from ray.cluster_utils import Cluster

    with socket.socket() as probe, socket.socket() as other, pytest.MonkeyPatch.context() as patch:
        for each in (probe, other):
            each.bind(("127.0.0.1", 0))
        port, agent_port = probe.getsockname()[1], other.getsockname()[1]
        patch.setenv("PATH", os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]]))
        probe.close()
        other.close()
        options = {
            "num_cpus": 2,
            "object_store_memory": 80 << 20,
            "include_dashboard": True,
            "dashboard_port": port,
            # The agent takes jobs. Its usual port is that of the first cluster on this machine.
            "dashboard_agent_listen_port": agent_port,
        }
        cluster = Cluster(initialize_head=True, head_node_args=options)
        address = f"http://127.0.0.1:{port}"
        wait_for_jobs(address)
        yield address
        cluster.shutdown()


def wait_for_jobs(address: str, seconds: float = 120) -> None:
    """Return when the cluster accepts jobs: its agent starts after the dashboard."""
    from ray.job_submission import JobSubmissionClient

    client, end = JobSubmissionClient(address), time.monotonic() + seconds
    while True:
        try:
            client.submit_job(entrypoint="true")
        except RuntimeError:
            if time.monotonic() > end:
                raise
        else:
            return


def test_the_job_of_the_page_predicts_on_the_cluster(dashboard: str) -> None:
    export, submit = block("a job").strip().splitlines()
    name = export.removeprefix("export ").partition("=")[0]
    words = shlex.split(submit)
    done = subprocess.run(
        [sys.executable, "-m", "ray.scripts.scripts", *words[1:]],
        cwd=REPOSITORY,
        env={**os.environ, name: dashboard},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    rows = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    command = [sys.executable, "-m", "rlm_lsp", "predict", "functions.py", "--format", "jsonl"]
    here = subprocess.run(command, cwd=REPOSITORY / "examples", capture_output=True, text=True, check=True)
    assert rows == [json.loads(line) for line in here.stdout.splitlines()]


def test_the_manifest_runs_a_command_of_ours_with_one_image() -> None:
    job = yaml.safe_load(block("rayjob.yaml"))
    assert (job["apiVersion"], job["kind"]) == ("ray.io/v1", "RayJob")
    check_ours(shlex.split(job["spec"]["entrypoint"]))
    cluster = job["spec"]["rayClusterSpec"]
    groups = [cluster["headGroupSpec"], *cluster["workerGroupSpecs"]]
    images = {container["image"] for group in groups for container in group["template"]["spec"]["containers"]}
    assert len(images) == 1
