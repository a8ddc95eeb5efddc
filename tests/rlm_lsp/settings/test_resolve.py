"""Settings: defaults, values, precedence, who may set what, and one line for each thing that was not understood."""

from __future__ import annotations

from pathlib import Path, PurePath
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rlm_lsp.budgets.rules import ActiveBudget, GlobBudgets
from rlm_lsp.budgets.syntax import Budget
from rlm_lsp.settings.model import ENTRIES, Settings
from rlm_lsp.settings.resolve import OF_WORKSPACE, SettingsSource, environment, resolve

from .support import lines, store

pytestmark = pytest.mark.timeout(30)

MS = ActiveBudget(Budget("latency", 1e-3))


def one(values: Any, **about: Any) -> tuple[Settings, list[str]]:
    settings, problems = resolve([SettingsSource("here", values, **about)])
    return settings, [str(problem) for problem in problems]


def test_no_values_mean_defaults() -> None:
    assert resolve([]) == (Settings(), ())
    assert one(None) == (Settings(), [])
    assert one({}) == (Settings(), [])


def test_known_values_are_taken() -> None:
    settings, problems = one(
        {
            "metrics": ["memory"],
            "languages": ["python"],
            "devices": ["a100", "l40s", "a100"],
            "model": "m",
            "threads": 2,
            "debounceMs": 0,
            "label": "median±",
            "maxLabel": 12,
            "hintsShown": "all",
            "hintsMinLatency": "1 ms",
            "hintsMinMemory": "2 MiB",
            "changeConfidence": 0.9,
            "changes": False,
            "budgets": {"src/**": "latency < 1 ms"},
            "defaultSizes": {"M": 8192, "dtype": "bf16"},
            "severity": {"error": 0.95},
            "tokenFile": "~/token",
        }
    )
    assert problems == []
    assert (settings.metrics, settings.languages, settings.devices) == (("memory",), ("python",), ("a100", "l40s"))
    assert (settings.model, settings.threads, settings.debounce_ms) == ("m", 2, 0)
    assert (settings.label, settings.max_label, settings.changes) == ("median±", 12, False)
    assert (settings.hints_shown, settings.hints_min_latency, settings.hints_min_memory) == ("all", 1e-3, 2.0**21)
    assert settings.budgets == (GlobBudgets("src/**", (MS,), "here"),)
    assert settings.default_sizes == {"M": "8192", "dtype": "bf16"}
    assert settings.severity == {"information": 0.5, "warning": 0.9, "error": 0.95}
    assert (settings.change_confidence, settings.token_file) == (0.9, "~/token")


def test_null_counts_as_not_set() -> None:
    assert (
        resolve([SettingsSource("a", {"label": None}), SettingsSource("b", {"label": "median"})])[0].label == "median"
    )


@pytest.mark.parametrize("name", ["hintsMinLatency", "hints-min-latency", "hints_min_latency"])
def test_names_may_be_in_the_case_of_files(name: str) -> None:
    assert one({name: "2 ms"})[0].hints_min_latency == 2e-3


def test_a_setting_in_two_spellings_is_a_problem() -> None:
    settings, [problem] = one({"maxLabel": 7, "max-label": 9})
    assert settings.max_label == 7
    assert problem == "here: setting `max-label` is set twice; the first value applies"


@pytest.mark.parametrize(
    ("values", "part"),
    [
        ({"colour": 1}, "unknown setting `colour`; see docs/settings.md for all settings"),
        ({"thread": 1}, "unknown setting `thread`; did you mean `threads`?"),
        ({"threads": -1}, "`threads` must be an integer from 0 to 256"),
        ({"threads": True}, "`threads` must be an integer from 0 to 256"),
        ({"threads": 1.5}, "`threads` must be an integer from 0 to 256"),
        ({"changeRatio": "2"}, "`changeRatio` must be a number from 1 to 1000"),
        ({"changeConfidence": float("nan")}, "`changeConfidence` must be a number from 0.5 to 0.99"),
        ({"hints": "yes"}, "`hints` must be `true` or `false`"),
        ({"label": "bands"}, "`label` must be one of band, median, median±"),
        ({"maxLabel": 26}, "`maxLabel` must be an integer from 5 to 25"),
        ({"metrics": ["speed"]}, "`metrics` must be a list of latency"),
        ({"metrics": "latency"}, "`metrics` must be a list of latency"),
        ({"languages": [["python"]]}, "`languages` must be a list"),
        ({"devices": "a100"}, "`devices` must be a list of names"),
        ({"devices": ["a100", ""]}, "`devices` must be a list of names"),
        ({"devices": [1]}, "`devices` must be a list of names"),
        ({"exclude": [1]}, "`exclude` must be a list of globs"),
        ({"exclude": ["/"]}, "`exclude` holds `/`, which must be a glob"),
        ({"model": 3}, "`model` must be a non-empty string"),
        ({"model": ""}, "`model` must be a non-empty string"),
        ({"hintsShown": "some"}, "`hintsShown` must be one of relevant, all"),
        ({"hintsMinLatency": 1}, "`hintsMinLatency` must be text with a unit"),
        ({"hintsMinLatency": "1 MiB"}, "`hintsMinLatency` `1 MiB` is not a cost"),
        ({"hintsMinLatency": "1 ms on a100"}, "`hintsMinLatency` `1 ms on a100` is not a cost"),
        ({"hintsMinMemory": "1 MiB, latency < 2 ms"}, "is not a cost"),
        ({"budgets": {"a.py": "speed < 1"}}, "entry `a.py` is not a budget: unknown metric 'speed'"),
        ({"budgets": {"a.py": 1}}, "entry `a.py` must be a budget"),
        ({"budgets": {"": "latency < 1 ms"}}, "must be a glob"),
        ({"severity": {"error": 2}}, "entry `error` must be a probability"),
        ({"severity": {"fatal": 0.9}}, "`severity` has no entry `fatal`"),
        ({"defaultSizes": {"M": "a b"}}, "entry `M` must be a size or a type"),
        ({"defaultSizes": {"M N": 1}}, "entry `M N` must be a size or a type"),
        ({"defaultSizes": {"M": True}}, "entry `M` must be a size or a type"),
        ([1], "is not an object of settings"),
        ("x", "is not an object of settings"),
    ],
)
def test_what_is_not_understood_is_named_and_the_default_holds(values: object, part: str) -> None:
    settings, [problem] = one(values)
    assert settings == Settings()
    assert problem.startswith("here: ")
    assert part in problem
    assert "\n" not in problem


def test_one_bad_entry_of_a_table_leaves_the_others() -> None:
    settings, problems = one({"defaultSizes": {"M": 64, "N": "a b"}, "exclude": ["a", ""]})
    assert settings.default_sizes == {"M": "64"}
    assert settings.exclude == ("a",)
    assert len(problems) == 2


def test_the_first_source_wins_and_tables_are_joined() -> None:
    high = SettingsSource("high", {"label": "median", "defaultSizes": {"M": 1}, "budgets": {"a": "latency < 1 ms"}})
    low = SettingsSource(
        "low",
        {
            "label": "band",
            "threads": 3,
            "defaultSizes": {"M": 2, "N": 2},
            "budgets": {"a": "latency < 2 ms", "b": "memory < 1 MiB"},
        },
    )
    settings, problems = resolve([high, low])
    assert problems == ()
    assert (settings.label, settings.threads) == ("median", 3)
    assert settings.default_sizes == {"M": "1", "N": "2"}
    assert settings.budgets == (
        GlobBudgets("a", (MS,), "high"),
        GlobBudgets("b", (ActiveBudget(Budget("memory", 2.0**20)),), "low"),
    )


def test_a_bad_value_leaves_the_next_source_its_say() -> None:
    settings, [problem] = resolve([SettingsSource("high", {"threads": "many"}), SettingsSource("low", {"threads": 3})])
    assert settings.threads == 3
    assert problem.place == "high"


@pytest.mark.parametrize(("key", "value"), [("model", "https://evil.example"), ("tokenFile", "t"), ("measure", False)])
def test_a_workspace_does_not_decide_what_runs_or_where_text_goes(key: str, value: object) -> None:
    settings, [problem] = one({key: value}, scopes=OF_WORKSPACE)
    assert settings == Settings()
    assert f"setting `{key}` cannot be set by a workspace" in problem
    assert resolve([SettingsSource("mine", {key: value})])[0] != Settings()


def test_only_the_first_folder_sets_what_holds_for_the_session() -> None:
    settings, [problem] = one({"threads": 2, "label": "median"}, scopes=frozenset({"folder"}))
    assert (settings.threads, settings.label) == (0, "median")
    assert "setting `threads` applies to the whole session" in problem


def test_what_clients_keep_for_themselves_is_no_problem() -> None:
    assert one({"trace": {"server": "off"}, "trusted": True}, client=True) == (Settings(), [])
    assert len(one({"trace": {"server": "off"}})[1]) == 1


def test_the_environment_is_read_as_text() -> None:
    variables = {
        "RLM_LSP_METRICS": "latency, memory",
        "RLM_LSP_THREADS": "2",
        "RLM_LSP_HINTS": "off",
        "RLM_LSP_LABEL": "median±",
        "RLM_LSP_CHANGE_RATIO": "1.5",
        "RLM_LSP_HINTS_MIN_LATENCY": "1 ms",
        "RLM_LSP_HINTS_MIN_MEMORY": "1 KiB",
        "RLM_LSP_SEVERITY": '{"error": 0.99}',
        "RLM_LSP_DEFAULT_SIZES": "M=64;dtype=bf16",
        "RLM_LSP_BUDGETS": "src/**=latency < 1 ms, memory < 10 MiB",
        "RLM_LSP_EXCLUDE": '["a,b"]',
        "RLM_LSP_TOKEN": "a-very-secret-token-of-ours",
        "RLM_LSP_ALLOW_HTTP": "1",
        "RLM_LSP_FACTS_CACHE": "off",
        "RLM_LSP_CPU_SCALE": "0",
        "RLM_LSP_DEVICES": "",
        "HOME": "/",
    }
    settings, problems = resolve([environment(variables)])
    assert problems == ()
    assert (settings.metrics, settings.threads, settings.hints) == (("latency", "memory"), 2, False)
    assert (settings.label, settings.change_ratio) == ("median±", 1.5)
    assert (settings.hints_min_latency, settings.hints_min_memory) == (1e-3, 1024.0)
    assert settings.severity["error"] == 0.99
    assert settings.default_sizes == {"M": "64", "dtype": "bf16"}
    assert settings.budgets == (
        GlobBudgets("src/**", (MS, ActiveBudget(Budget("memory", 10 * 2.0**20))), "environment"),
    )
    assert settings.exclude == ("a,b",)


def test_a_bad_variable_is_named() -> None:
    _, problems = resolve([environment({"RLM_LSP_THREAD": "1", "RLM_LSP_THREADS": "x", "RLM_LSP_SEVERITY": "{"})])
    assert sorted(map(str, problems)) == [
        "environment: setting `RLM_LSP_SEVERITY` must be a table of severity and probability",
        "environment: setting `RLM_LSP_THREADS` must be an integer from 0 to 256",
        "environment: unknown setting `RLM_LSP_THREAD`; did you mean `RLM_LSP_THREADS`?",
    ]


def test_globs_choose_files() -> None:
    settings, _ = one({"exclude": ["tests/**", "*_pb2.py"], "budgets": {"src/*.py": "latency < 1 ms"}})
    for path, excluded in [("tests/a.py", True), ("src/x_pb2.py", True), ("src/a.py", False), ("a/tests/b.py", False)]:
        assert settings.excludes(PurePath(path)) == excluded
    assert [budget.glob for budget in settings.budgets_of(PurePath("src/a.py"))] == ["src/*.py"]
    assert settings.budgets_of(PurePath("src/deep/a.py")) == ()


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=6,
)


@given(st.dictionaries(st.sampled_from(list(ENTRIES)) | st.text(max_size=8), _JSON, max_size=5))
def test_whatever_is_said_there_are_settings_and_problems_of_one_line(values: dict[str, Any]) -> None:
    settings, problems = one(values)
    assert all(problem.startswith("here: ") for problem in problems)
    for key, entry in ENTRIES.items():
        if key not in values:
            assert getattr(settings, entry.name) == getattr(Settings(), entry.name)


@given(st.dictionaries(st.sampled_from([entry.variable for entry in ENTRIES.values()]), st.text(max_size=12)))
def test_any_environment_is_read(variables: dict[str, str]) -> None:
    resolve([environment(variables)])


def test_the_order_of_sources(tmp_path: Path) -> None:
    folder, user = tmp_path / "project", tmp_path / "config.toml"
    folder.mkdir()
    user.write_text('threads = 1\nlabel = "median"\nmaxLabel = 5\ndebounceMs = 1\nchangeRatio = 5\n')
    (folder / "rlm-lsp.toml").write_text("threads = 2\nmax-label = 6\ndebounce-ms = 2\nchange-ratio = 6\n")
    found = store({"threads": 3, "debounceMs": 3, "changeRatio": 7}, folder, user=user, RLM_LSP_THREADS="5")
    found.set_client({folder: {"threads": 4, "changeRatio": 8}})
    found.use(found.read_files([folder]))
    now = found.session
    assert (now.threads, now.change_ratio, now.debounce_ms, now.max_label, now.label) == (5, 8, 3, 6, "median")


def test_each_folder_has_its_settings(tmp_path: Path) -> None:
    first, second, inner = tmp_path / "first", tmp_path / "second", tmp_path / "second" / "inner"
    for folder, label in ((first, "band"), (second, "median"), (inner, "median±")):
        folder.mkdir()
        (folder / "rlm-lsp.toml").write_text(f'label = "{label}"\nthreads = 2\nexclude = ["gen/**"]\n')
    found = store(None, first, second, inner)
    assert found.settings_for((first / "a.py").as_uri()).label == "band"
    assert found.settings_for((second / "a.py").as_uri()).label == "median"
    assert found.settings_for((inner / "deep" / "a.py").as_uri()).label == "median±"
    assert found.settings_for((tmp_path / "a.py").as_uri()).threads == 0
    assert found.settings_for("untitled:Untitled-1").label == "band"
    assert found.session.threads == 2
    assert found.excludes(inner / "gen" / "a.py")
    assert not found.excludes(second / "inner2" / "a.py")
    assert not found.excludes(None)
    assert [line.partition(": ")[2][:40] for line in lines(found)] == ["setting `threads` applies to the whole s"] * 2


def test_the_client_may_answer_by_folder(tmp_path: Path) -> None:
    first, second = tmp_path / "first", tmp_path / "second"
    found = store(None, first, second)
    found.set_client({None: {"label": "median"}, second: {"label": "median±"}})
    found.use(found.read_files([first, second]))
    assert found.settings_of(tmp_path / "other.py").label == "median"
    assert found.settings_of(first / "a.py").label == "median"
    assert found.settings_of(second / "a.py").label == "median±"


def test_a_workspace_sets_no_machine_settings_even_if_trusted(tmp_path: Path) -> None:
    (tmp_path / "rlm-lsp.toml").write_text('model = "https://evil.example"\n')
    found = store({"trusted": True}, tmp_path)
    assert found.session.model == "builtin"
    assert "cannot be set by a workspace" in lines(found)[0]


@pytest.mark.parametrize(
    ("options", "model"), [({}, "builtin"), ({"trusted": "yes"}, "builtin"), ({"trusted": True}, "m")]
)
def test_the_clients_configuration_sets_them_where_it_is_trusted(options: dict[str, Any], model: str) -> None:
    found = store(options)
    found.set_client({None: {"model": "m"}})
    found.use(found.read_files([]))
    assert found.session.model == model


@pytest.mark.parametrize("key", ["path", "interpreter", "importStrategy", "trace"])
def test_what_a_client_keeps_for_itself_is_no_unknown_setting(key: str, tmp_path: Path) -> None:
    found = store({key: "mine"})
    found.set_client({None: {key: "mine"}})
    found.use(found.read_files([]))
    assert lines(found) == []
    (tmp_path / "rlm-lsp.toml").write_text(f'{key} = "mine"\n')
    [line] = lines(store(None, tmp_path))
    assert f"unknown setting `{key}`" in line


def test_options_environment_and_user_file_may_set_everything(tmp_path: Path) -> None:
    user = tmp_path / "config.toml"
    user.write_text('tokenFile = "t"\n')
    found = store({"model": "m"}, user=user, RLM_LSP_MEASURE="off")
    assert (found.session.model, found.session.token_file, found.session.measure) == ("m", "t", False)
    assert lines(found) == []


def test_a_problem_is_reported_once_and_again_after_it_was_fixed(tmp_path: Path) -> None:
    file = tmp_path / "rlm-lsp.toml"
    file.write_text("colour = 1\n")
    found = store(None, tmp_path)
    assert len(lines(found)) == 1
    found.use(found.read_files([tmp_path]))
    assert lines(found) == []
    file.write_text("")
    found.use(found.read_files([tmp_path]))
    assert lines(found) == []
    file.write_text("colour = 1\n")
    found.use(found.read_files([tmp_path]))
    assert len(lines(found)) == 1
