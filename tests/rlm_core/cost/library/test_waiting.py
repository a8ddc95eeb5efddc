"""Calls that wait, and calls that do not."""

from __future__ import annotations

import pytest
from rlm_core.cost import library
from rlm_core.cost.analysis import work_facts
from rlm_core.cost.domain.quantities import of_size
from rlm_core.cost.domain.values import NONE, UNKNOWN, Value
from rlm_core.types import WaitKind, WorkFacts

from .calls import recorded

_TABLES = ("networking.txt", "synchronisation.txt")
_FUNCTIONS = [name for name, entry in library.ENTRIES.functions.items() if entry.file in _TABLES]
_METHODS = [key for key, entry in library.ENTRIES.methods.items() if entry.file in _TABLES]


def _facts(body: str, imports: str) -> WorkFacts:
    lines = "".join(f"    {line}\n" for line in body.split("; "))
    facts = work_facts(f"def f(x):\n    import {imports}\n{lines}")
    assert facts is not None
    return facts


@pytest.mark.parametrize(
    ("body", "imports", "kind", "seconds"),
    [
        ("time.sleep(2)", "time", WaitKind.TIME, 2.0),
        ("time.sleep(x)", "time", WaitKind.TIME, "x"),
        ("asyncio.sleep(.5)", "asyncio", WaitKind.TIME, 0.5),
        ("threading.Event().wait(3)", "threading", WaitKind.TIME, 3.0),
        ("threading.Event().wait()", "threading", WaitKind.THREAD, None),
        ("stopping = threading.Event(); stopping.wait(3)", "threading", WaitKind.TIME, 3.0),
        # Whatever sets it is done long before.
        ("done = threading.Event(); x.start(done); done.wait(3)", "threading", WaitKind.THREAD, 3.0),
        ("t = threading.Thread(target=x); t.start(); t.join()", "threading", WaitKind.THREAD, None),
        ("queue.Queue().get()", "queue", WaitKind.THREAD, None),
        ("lock = threading.Lock(); lock.acquire()", "threading", WaitKind.THREAD, None),
        ("subprocess.run(['make'])", "subprocess", WaitKind.PROCESS, None),
        ("p = subprocess.Popen(['make']); p.wait()", "subprocess", WaitKind.PROCESS, None),
        ("os.system('ls')", "os", WaitKind.PROCESS, None),
        ("requests.get('http://a')", "requests", WaitKind.NETWORK, None),
        ("requests.get('http://a', timeout=5)", "requests", WaitKind.NETWORK, None),
        ("with requests.Session() as s:\n        s.post('http://a')", "requests", WaitKind.NETWORK, None),
        ("urllib.request.urlopen('http://a').read()", "urllib.request", WaitKind.NETWORK, None),
        ("s = socket.socket(); s.connect(('a', 1))", "socket", WaitKind.NETWORK, None),
        ("boto3.client('s3').get_object(Bucket='a', Key='b')", "boto3", WaitKind.NETWORK, None),
        (
            "openai.OpenAI().chat.completions.create(model='m', messages=[])",
            "openai",
            WaitKind.NETWORK,
            None,
        ),
        ("psycopg2.connect('').cursor().execute('select 1')", "psycopg2", WaitKind.DATABASE, None),
        ("select.select([x], [], [], 1.5)", "select", WaitKind.NETWORK, 1.5),
        ("input('name? ')", "os", WaitKind.USER, None),
        ("getpass.getpass()", "getpass", WaitKind.USER, None),
        ("sys.stdin.readline()", "sys", WaitKind.USER, None),
        # The join of a text takes an argument.
        ("x.join()", "os", WaitKind.THREAD, None),
        ("concurrent.futures.ProcessPoolExecutor().map(f, [1])", "concurrent.futures", WaitKind.PROCESS, None),
        ("concurrent.futures.ThreadPoolExecutor().map(f, [1])", "concurrent.futures", WaitKind.THREAD, None),
    ],
)
def test_a_wait_is_named(body: str, imports: str, kind: WaitKind, seconds: float | str | None) -> None:
    found = {
        (wait.kind, wait.seconds.likely if wait.seconds is not None else None) for wait in _facts(body, imports).waits
    }
    if isinstance(seconds, str):
        assert kind in {wait_kind for wait_kind, _ in found}
    else:
        assert (kind, seconds) in found


@pytest.mark.parametrize(
    ("body", "imports"),
    [
        ("subprocess.Popen(['make'])", "subprocess"),
        ("queue.Queue().put(1)", "queue"),
        ("queue.Queue().get(block=False)", "queue"),
        ("queue.Queue().get_nowait()", "queue"),
        ("lock = threading.Lock(); lock.acquire(False)", "threading"),
        ("with threading.Lock():\n        pass", "threading"),
        ("lock = threading.Lock(); lock.acquire(); x(); lock.release()", "threading"),
        ("time.sleep(0)", "time"),
        ("os.waitpid(x, os.WNOHANG)", "os"),
        ("threading.Event().set()", "threading"),
        ("select.select([x], [], [], 0)", "select"),
        ("x.wait()", "os"),
        ("x.get()", "os"),
        ("x.read()", "os"),
        ("x.acquire()", "os"),
        ("', '.join(x)", "os"),
        ("x.join(['a'])", "os"),
        ("os.path.join('a', 'b')", "os"),
        ("{}.get(1)", "os"),
        ("socket.socket().close()", "socket"),
    ],
)
def test_a_call_that_does_not_wait_is_not_named(body: str, imports: str) -> None:
    facts = _facts(body, imports)
    assert not facts.waits
    assert facts.endless is None


@pytest.mark.parametrize(
    ("body", "imports"),
    [
        ("http.server.HTTPServer(('', 8000), x).serve_forever()", "http.server"),
        ("x.serve_forever()", "os"),
        ("asyncio.new_event_loop().run_forever()", "asyncio"),
        ("flask.Flask('a').run()", "flask"),
        ("uvicorn.run(x)", "uvicorn"),
    ],
)
def test_a_server_may_not_end(body: str, imports: str) -> None:
    assert _facts(body, imports).endless is not None


def test_an_event_loop_from_elsewhere_may_be_stopped() -> None:
    facts = _facts("x.run_forever()", "os")
    assert facts.waits
    assert facts.endless is None


def test_a_timeout_bounds_a_wait() -> None:
    wait = _facts("threading.Event().wait(2)", "threading").waits[0]
    assert wait.seconds is not None
    assert (wait.seconds.least, wait.seconds.likely, wait.seconds.most) == (0, 2, 2)


def test_another_try_after_an_error_is_not_likely() -> None:
    facts = work_facts(
        "def f(self):\n    for delay in (0.5, 1, 4):\n        try:\n            time.sleep(delay)\n"
        "            return self.fetch()\n        except OSError:\n            pass\n"
    )
    assert facts is not None
    [wait] = facts.waits
    assert wait.seconds is not None
    assert (wait.seconds.least, wait.seconds.likely, wait.seconds.most) == (0.5, 0.5, 5.5)


@pytest.mark.parametrize(
    ("body", "on_error"),
    [
        ("for _ in range(self.retries):\n        if self.get():\n            return\n        time.sleep(2)", True),
        ("for attempt in range(3):\n        if self.get():\n            return\n        time.sleep(2)", True),
        ("while tries < 9:\n        tries += 1\n        if self.ok:\n            break\n        time.sleep(2)", True),
        # A pause before each try, and a loop until something is there.
        ("for attempt in range(3):\n        time.sleep(2)\n        if self.get():\n            return", False),
        ("while True:\n        if self.get():\n            return\n        time.sleep(2)", False),
    ],
)
def test_a_sleep_before_another_try_is_one_after_an_error(body: str, on_error: bool) -> None:
    facts = work_facts(f"def f(self, tries):\n    {body}\n")
    assert facts is not None
    assert [wait.on_error for wait in facts.waits] == [on_error]


@pytest.mark.parametrize(
    ("call", "waits"),
    [
        ("self.session.get(User, key, options=x)", True),
        # Pages, and what a user's session keeps.
        ("self.session.get(url, headers=x)", False),
        ("request.session.get('name', None)", False),
        ("db.get('name')", False),
    ],
)
def test_a_session_gets_rows_by_class_and_key(call: str, waits: bool) -> None:
    facts = work_facts(f"def f(self, request, url, key, x):\n    session, db = self.open()\n    return {call}\n")
    assert facts is not None
    assert [wait.kind for wait in facts.waits] == [WaitKind.DATABASE] * waits


def test_odd_arguments_never_raise() -> None:
    odd: tuple[object, ...] = (UNKNOWN, NONE, "a", -1, [], Value("float", number=of_size("n")))
    assert len(_FUNCTIONS) > 150
    for name in _FUNCTIONS:
        rule = library.rule_for(name)
        assert rule is not None
        assert isinstance(rule(recorded()), Value)
        for args in ([value] * 4 for value in odd):
            assert isinstance(rule(recorded(*args)), Value), name


def test_odd_arguments_of_methods_never_raise() -> None:
    assert len(_METHODS) > 200
    for key in _METHODS:
        rule = library.method_rule(*key)
        assert rule is not None
        for args in ((), (UNKNOWN,) * 3, (NONE,) * 3, ("a",) * 3):
            for receiver in (UNKNOWN, Value("object", name=key[0]), Value("object", name=key[0], payload=3)):
                assert isinstance(rule(recorded(*args, receiver=receiver)), Value), key


def test_conventional_names_are_modules() -> None:
    assert library.CONVENTIONAL["np"] == "numpy"
    facts = work_facts("def f():\n    return requests.get('http://a')\n")
    assert facts is not None
    assert [wait.kind for wait in facts.waits] == [WaitKind.NETWORK]
