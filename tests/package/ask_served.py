"""``rlm-lsp serve-model`` on a free port, one ``rlm-lsp predict`` that asks it, and its end.

    python -m tests.package.ask_served FILE PYTHON ARGUMENTS...

``PYTHON ARGUMENTS...`` is how ``rlm-lsp`` is started. Prints what ``predict`` prints.
"""

from __future__ import annotations

import subprocess
import sys


def main(file: str, *rlm_lsp: str) -> int:
    """Return the exit status of ``predict``, or that of the server where it could not start."""
    with subprocess.Popen([*rlm_lsp, "serve-model", "--port", "0"], stderr=subprocess.PIPE, text=True) as server:
        assert server.stderr is not None
        line = server.stderr.readline()
        if " on http" not in line:
            print(line, server.stderr.read(), file=sys.stderr)
            return server.wait()
        asked = subprocess.run(
            [*rlm_lsp, "predict", "--model", line.split()[-1], file, "--format", "json"], check=False
        )
        server.terminate()
    return asked.returncode


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
