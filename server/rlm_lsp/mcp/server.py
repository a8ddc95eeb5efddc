"""The MCP server: tools with their JSON schemas, over stdio. Every tool only reads, and answers in a few lines.

The user may name the folders that tools read. Otherwise a client that has roots is asked for them at each call, so that
they may change; without roots, the working directory is the only one. Errors that the user or the agent can fix are one
line.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from threading import Lock
from typing import Annotated, Any

from anyio import from_thread
from mcp.server.mcpserver import Context, ListRoots, MCPServer, Resolve
from mcp.server.mcpserver.exceptions import ToolError
from mcp.types import CallToolResult, InputRequiredResult, ListRootsResult, TextContent, ToolAnnotations
from pydantic import Field, ValidationError
from rlm_core.boundary import absorb
from rlm_core.errors import RlmError
from rlm_core.inference.query_selection import QuerySelection
from rlm_core.queries.size_comments import read_quantity
from rlm_core.types import Metric

from rlm_lsp import __version__

from .answers import (
    Answer,
    CheckAnswer,
    Comparison,
    ExplanationAnswer,
    MeasureCommand,
    Predictions,
    RankingAnswer,
)
from .requested_units import Code, Progress
from .roots import Roots
from .skill import review_skill
from .tools import AgentTools

_INSTRUCTIONS = """\
Predicts from source text what code costs: latency and peak memory of Python functions, run time of solutions of
programming problems, latency of Triton kernels and PyTorch modules. Nothing is run. A number is a median with its
band in parentheses: about 80 % of true values are inside, for inputs like those of a project's tests, often small
ones. For larger inputs give their `sizes`, and look at growth and waits. Ratios of two versions are for the same
inputs, or at the sizes that you give: give them. `compare` says which of two ways to write a function is
cheaper where more than 80 % of such answers were right for rewrites, and otherwise that it cannot tell. Of two git
revisions it says so only where both fix their cost. How many times cheaper it is, is known much less well. `rank` says
which of several versions of a function to measure. A regression, faster growth or a loop that may not end is a
hint about where to look, not a reason to reject a change. To be sure, measure."""


def client_roots(context: Context) -> ListRoots | None:
    """Ask the client for its roots, if it has any."""
    capabilities = context.client_capabilities
    return ListRoots() if capabilities is not None and capabilities.roots is not None else None


_Roots = Annotated[ListRootsResult | None, Resolve(client_roots)]
_Path = Annotated[str, Field(description="File or folder, absolute or relative to a root")]
_File = Annotated[str | None, Field(description="File, absolute or relative to a root")]
_Language = Annotated[str, Field(description="Language of the text: python, cpp, java, javascript, go, rust, ...")]
_UnitName = Annotated[str | None, Field(description="Qualified name of one function or class, such as Parser.feed")]
_Device = Annotated[str | None, Field(description="Device for kernels, modules and networks, such as nvidia-h100")]
_Workload = Annotated[
    Mapping[str, str] | None, Field(description="Sizes and types of a kernel or module, such as {'M': '4096'}")
]
_Sizes = Annotated[
    Mapping[str, float | str] | None,
    Field(
        description="Sizes of a function's inputs, as its code names them, such as {'orders': 10000, 'rows[]': '2k'}: a"
        " number itself, or the length of a container or text"
    ),
]
_Limit = Annotated[int, Field(ge=1, le=200, description="Most units or findings to answer")]


class _Server(MCPServer):
    """Refuses arguments that no tool takes, and says in one line what is wrong with the others."""

    async def call_tool(
        self, name: str, arguments: dict[str, Any], context: Context | None = None
    ) -> CallToolResult | InputRequiredResult:
        tools = {tool.name: tool for tool in await self.list_tools()}
        if name not in tools:
            return _refused(f"there is no tool {name!r}; there are: {', '.join(tools)}")
        known = list(tools[name].input_schema["properties"])
        unknown = [argument for argument in arguments if argument not in known]
        if unknown:
            return _refused(f"{name} has no argument {unknown[0]!r}; it takes {', '.join(known)}")
        try:
            return await super().call_tool(name, arguments, context)
        except ToolError as error:
            if not isinstance(error.__cause__, ValidationError):
                raise
            first = error.__cause__.errors()[0]
            return _refused(f"{name}: {'.'.join(map(str, first['loc']))}: {first['msg'].lower()}")


def create_server(tools: AgentTools, fixed: Roots | None = None) -> MCPServer:
    """A server with all tools; ``fixed`` are the folders that they may read, whatever the client names."""
    server = _Server("rlm-lsp", version=__version__, instructions=_INSTRUCTIONS, log_level="WARNING")
    server.prompt(
        name="review_cost",
        title="Review a change for its cost",
        description="How to find, measure and report slowdowns",
    )(review_skill)
    reading = ToolAnnotations(read_only_hint=True, destructive_hint=False, idempotent_hint=True, open_world_hint=False)
    turn = Lock()

    def answered(roots: ListRootsResult | None, answer: Callable[[Roots], tuple[list[str], Answer]]) -> CallToolResult:
        try:
            named = None if roots is None else [str(root.uri) for root in roots.roots]
            folders = fixed if fixed is not None else Roots.of_uris(named)
            with turn:
                lines, fields = answer(folders)
        except RlmError as error:
            return _refused(" ".join(str(error).split()))
        except Exception as error:
            absorb("a tool", error)
            return _refused(f"internal error ({type(error).__name__}); see the log")
        return CallToolResult(
            content=[TextContent(type="text", text="\n".join(lines))],
            structured_content=fields.model_dump(mode="json", by_alias=True),
        )

    @server.tool(title="Predict cost", annotations=reading)
    def predict(
        roots: _Roots,
        context: Context,
        path: Annotated[str | None, Field(description="File or folder, absolute or relative to a root")] = None,
        text: Annotated[str | None, Field(description="Source text, instead of a path")] = None,
        language: _Language = "python",
        unit: _UnitName = None,
        device: _Device = None,
        workload: _Workload = None,
        sizes: _Sizes = None,
        limit: _Limit = 20,
    ) -> Annotated[CallToolResult, Predictions]:
        """Predict latency and memory of the functions, programs, kernels and modules in a text, file or folder.

        Of a folder, the most expensive ones come first, and tests are left out. Of a large folder, files are read up to
        300 units; the answer names what is left, to ask for next. A `unit` is found in all files.
        """
        return answered(
            roots,
            lambda folders: tools.predict(
                folders,
                _code(path, text, language, sizes),
                _selection(None, device, workload),
                unit,
                limit,
                _progress(context),
            ),
        )

    @server.tool(title="Compare costs", annotations=reading)
    def compare(
        roots: _Roots,
        before: Annotated[str | None, Field(description="Source text of the first version")] = None,
        after: Annotated[str | None, Field(description="Source text of the second version")] = None,
        path: _File = None,
        revision: Annotated[str, Field(description="Git revision that the file is compared with")] = "HEAD",
        language: _Language = "python",
        unit: _UnitName = None,
        device: _Device = None,
        workload: _Workload = None,
        sizes: _Sizes = None,
    ) -> Annotated[CallToolResult, Comparison]:
        """Predict how the cost changes between two texts (before, after), or between a git revision and a file (path).

        A ratio below 1 means that the second version is cheaper. Where the direction is null, it is unknown. Give the
        sizes of inputs: what they decide is the most reliable. To ask which of two ways to write a function is faster,
        give both texts: of two revisions a direction is given only where both fix their cost.
        """
        selection = _selection(None, device, workload)
        if path is not None and before is None and after is None:
            return answered(
                roots,
                lambda folders: tools.compare_revision(folders, path, revision, selection, unit, _read_sizes(sizes)),
            )
        if path is not None or before is None or after is None:
            return _refused("give either before and after, or path")
        return answered(
            roots,
            lambda folders: tools.compare(
                folders, Code(None, before, language), _code(None, after, language, sizes), selection, unit
            ),
        )

    @server.tool(title="Rank candidates", annotations=reading)
    def rank(
        roots: _Roots,
        candidates: Annotated[list[str], Field(description="Source texts of 2 to 30 versions of one function")],
        language: _Language = "python",
        unit: _UnitName = None,
        sizes: _Sizes = None,
        device: _Device = None,
        workload: _Workload = None,
    ) -> Annotated[CallToolResult, RankingAnswer]:
        """Say which of several versions of one function to measure: all but those that another is known to beat.

        In about 85 % of problems, one of them is within 1.2 times of the fastest. With a device and a workload, the
        versions are Triton kernels together with the functions that launch them, and it is about 90 %.
        """
        return answered(
            roots,
            lambda folders: tools.rank(
                folders,
                [Code(None, text, language, _read_sizes(sizes)) for text in candidates],
                _selection(None, device, workload),
                unit,
            ),
        )

    @server.tool(name="explain", title="Explain a prediction", annotations=reading)
    def explain_unit(
        roots: _Roots,
        path: _File = None,
        text: Annotated[str | None, Field(description="Source text, instead of a path")] = None,
        language: _Language = "python",
        unit: _UnitName = None,
        metric: Annotated[Metric, Field(description="What to explain")] = "latency",
        device: _Device = None,
        workload: _Workload = None,
    ) -> Annotated[CallToolResult, ExplanationAnswer]:
        """Show what the prediction for one unit rests on: facts in the code, and the statements with most effect."""
        return answered(
            roots,
            lambda folders: tools.explain(
                folders, _code(path, text, language), _selection(metric, device, workload), unit
            ),
        )

    @server.tool(title="Check budgets", annotations=reading)
    def check(
        roots: _Roots,
        context: Context,
        path: _Path = ".",
        revision: Annotated[
            str | None, Field(description="Check only units that changed since this git revision; report regressions")
        ] = None,
        limit: _Limit = 20,
    ) -> Annotated[CallToolResult, CheckAnswer]:
        """Check a file or folder against its cost budgets; with a revision, also list predicted regressions.

        Regressions, faster growth, loops that may not end and waits in loops have the severity information.
        """
        return answered(roots, lambda folders: tools.check(folders, path, revision, limit, _progress(context)))

    @server.tool(title="Command that measures", annotations=reading)
    def measure_command(
        roots: _Roots,
        path: Annotated[
            str, Field(description="Python file in a package that has tests, or the folder of the package")
        ],
    ) -> Annotated[CallToolResult, MeasureCommand]:
        """The command line with which the user can measure the package of a file. It is returned, never run."""
        return answered(roots, lambda folders: tools.measure_command(folders, path))

    return server


def _code(path: str | None, text: str | None, language: str, sizes: Mapping[str, float | str] | None = None) -> Code:
    if (path is None) == (text is None):
        raise RlmError("give either path or text")
    return Code(path, text, language, _read_sizes(sizes))


def _read_sizes(sizes: Mapping[str, float | str] | None) -> dict[str, float]:
    """The values of sizes, which may be written as in a comment.

    Raises:
        RlmError: one is not a size.
    """
    read = {}
    for name, value in (sizes or {}).items():
        try:
            read[name] = read_quantity(value if isinstance(value, str) else f"{value:.15g}")
        except ValueError as error:
            raise RlmError(f"sizes: {name}: {error}") from None
    return read


def _selection(metric: Metric | None, device: str | None, workload: Mapping[str, str] | None) -> QuerySelection:
    return QuerySelection(None if metric is None else (metric,), () if device is None else (device,), workload or {})


def _progress(context: Context) -> Progress:
    """Reports the progress of a tool from its thread in percent, and ends it if the client has given it up."""

    def report(share: float, what: str) -> None:
        from_thread.check_cancelled()
        from_thread.run(context.report_progress, round(100 * share, 2), 100, what)

    return report


def _refused(why: str) -> CallToolResult:
    return CallToolResult(content=[TextContent(type="text", text=why)], is_error=True)
