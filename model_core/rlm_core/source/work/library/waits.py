"""Rules for calls that wait: for time, processes, networks, users, and other threads; and for calls that may not end.

The tables name functions and the types whose methods wait. A method of a value whose type is not known counts only if
its name is used for nothing else. ``CONVENTIONAL`` names the modules that a text without imports usually means.
"""

from __future__ import annotations

from collections.abc import Mapping

from rlm_core.types import WaitKind

from ..quantities import Quantity, constant
from ..values import NONE, UNKNOWN, Call, Value
from .rules import Attribute, Rule, argument

CONVENTIONAL: dict[str, str] = {
    **{
        name: name
        for name in [
            "abc",
            "argparse",
            "array",
            "ast",
            "asyncio",
            "base64",
            "bisect",
            "bz2",
            "collections",
            "concurrent",
            "contextlib",
            "copy",
            "csv",
            "ctypes",
            "dataclasses",
            "datetime",
            "decimal",
            "difflib",
            "email",
            "enum",
            "fractions",
            "functools",
            "gc",
            "getpass",
            "glob",
            "gzip",
            "hashlib",
            "heapq",
            "hmac",
            "html",
            "http",
            "httpx",
            "inspect",
            "io",
            "ipaddress",
            "itertools",
            "json",
            "logging",
            "lzma",
            "math",
            "multiprocessing",
            "numpy",
            "operator",
            "os",
            "pandas",
            "pathlib",
            "pickle",
            "pprint",
            "queue",
            "random",
            "re",
            "requests",
            "secrets",
            "select",
            "shlex",
            "shutil",
            "signal",
            "smtplib",
            "socket",
            "sqlite3",
            "ssl",
            "statistics",
            "string",
            "struct",
            "subprocess",
            "sys",
            "tempfile",
            "textwrap",
            "threading",
            "time",
            "timeit",
            "torch",
            "typing",
            "unicodedata",
            "unittest",
            "urllib",
            "urllib3",
            "uuid",
            "warnings",
            "weakref",
            "xml",
            "zipfile",
            "zlib",
            "aiohttp",
            "boto3",
            "redis",
            "psycopg2",
            "paramiko",
            "trio",
            "anyio",
        ]
    },
    "np": "numpy",
    "pd": "pandas",
    "plt": "matplotlib.pyplot",
    "mpl": "matplotlib",
    "sns": "seaborn",
    "tf": "tensorflow",
    "nn": "torch.nn",
    "F": "torch.nn.functional",
    "sp": "scipy",
    "nx": "networkx",
    "dt": "datetime",
    "tk": "tkinter",
    "mp": "multiprocessing",
    "th": "threading",
    "ET": "xml.etree.ElementTree",
    "osp": "os.path",
    "la": "numpy.linalg",
}
"""What a name that no import explains usually is: local name -> dotted module."""

# Processor time of a request without the network: measured with urllib over the loopback interface.
_REQUEST_SECONDS = 3e-4
# fork and exec of a small program from a process of usual size, and starting a thread.
_PROCESS_SECONDS = 1e-3
_THREAD_SECONDS = 5e-5
_CALL_SECONDS = 1e-6
_TIMER_SECONDS = 1e-5  # of an event loop, with the switch to another task
_LATE_SECONDS = 6e-5
_PROCESS_BYTES, _POOL_BYTES = 6e4, 2e4


def instance(name: str) -> Value:
    """An object of a library type."""
    return Value("object", name=name)


_TEXT = Value("str")
_BYTES = Value("bytes")
_NUMBER = Value("int")


def _seconds(value: Value) -> Quantity | None:
    """The seconds that an argument says, None where the text does not fix them."""
    if value.number is not None:
        return value.number
    if value.known and isinstance(value.constant, int | float):
        return constant(max(float(value.constant), 0.0))
    return None


def _bound(value: Value) -> Quantity | None:
    """A wait of at most the seconds that a timeout says, likely all of them."""
    seconds = _seconds(value)
    fixed = seconds.constant if seconds is not None else None
    if fixed is None or fixed[1] < 0:
        return None
    return constant(0.0, fixed[2], fixed[1])


def _says_no(value: Value) -> bool:
    return value.known and value.constant is not None and not value.constant


def _is_given(value: Value) -> bool:
    return value is not UNKNOWN and not (value.known and value.constant is None)


def _sleep(call: Call) -> Value:
    seconds = _seconds(argument(call, 0, "secs", "seconds", "delay"))
    call.spend(_TIMER_SECONDS)
    if seconds is None or seconds.terms:
        call.wait(WaitKind.TIME, seconds)
    return NONE


def _blocking_sleep(call: Call) -> Value:
    """The system wakes a thread up a little late."""
    call.spend(_LATE_SECONDS)
    return _sleep(call)


def _waits(kind: WaitKind, result: Value = UNKNOWN, seconds: float = _CALL_SECONDS) -> Rule:
    """A call that waits until something happens, with its processor time."""

    def rule(call: Call) -> Value:
        call.spend(seconds)
        call.wait(kind)
        return result

    return rule


def _costs(seconds: float, result: Value = UNKNOWN) -> Rule:
    """A call that does not wait."""

    def rule(call: Call) -> Value:
        call.spend(seconds)
        return result

    return rule


def _timed(position: int, result: Value, kind: WaitKind = WaitKind.THREAD, flag: str = "block") -> Rule:
    """A wait with an optional timeout at a position; a timeout of 0 or the flag ``False`` means not to wait."""

    def rule(call: Call) -> Value:
        call.spend(_CALL_SECONDS)
        timeout = argument(call, position, "timeout")
        blocks = argument(call, 0, flag) if position else call.keywords.get(flag, UNKNOWN)
        if _says_no(blocks) or _says_no(timeout):
            return result
        bound = _bound(timeout) if _is_given(timeout) else None
        call.wait(kind, bound)
        return result

    return rule


def _event_wait(call: Call) -> Value:
    """A wait for an event with a timeout is the usual interruptible sleep, so the likely time is the whole timeout."""
    call.spend(_CALL_SECONDS)
    timeout = argument(call, 0, "timeout")
    bound = _bound(timeout) if _is_given(timeout) else None
    if not _says_no(timeout):
        call.wait(WaitKind.THREAD if bound is None else WaitKind.TIME, bound)
    return Value("bool")


def _condition_wait_for(call: Call) -> Value:
    call.spend(_CALL_SECONDS)
    timeout = argument(call, 1, "timeout")
    call.wait(WaitKind.THREAD, _bound(timeout) if _is_given(timeout) else None)
    return Value("bool")


def _queue_put(call: Call) -> Value:
    """Only a queue with a largest size blocks; its constructor leaves that size in the value."""
    call.spend(_CALL_SECONDS)
    queue = call.receiver
    bounded = queue is not None and queue.payload == "bounded"
    if bounded and not _says_no(argument(call, 1, "block")):
        call.wait(WaitKind.THREAD)
    return NONE


def _queue(name: str) -> Rule:
    def rule(call: Call) -> Value:
        call.spend(2 * _CALL_SECONDS)
        size = argument(call, 0, "maxsize")
        return Value("object", name=name, payload="bounded" if _is_given(size) and not _says_no(size) else None)

    return rule


def _program(value: Value) -> tuple[str, ...]:
    """The words of a command that the text fixes."""
    command = value.constant
    if isinstance(command, str):
        return tuple(command.split())
    if isinstance(command, tuple | list) and all(isinstance(word, str) for word in command):
        return tuple(command)
    return ()


def _process_seconds(call: Call) -> Quantity | None:
    """The seconds of a command that only sleeps; the run time of other programs is not in the text."""
    words = _program(argument(call, 0, "args", "cmd", "command"))
    if len(words) == 2 and words[0].rpartition("/")[2] == "sleep":
        try:
            return constant(min(max(float(words[1]), 0.0), 1e9))
        except ValueError:
            return None
    return None


def _process(result: Value) -> Rule:
    def rule(call: Call) -> Value:
        call.spend(_PROCESS_SECONDS)
        call.allocate(_PROCESS_BYTES)
        call.wait(WaitKind.PROCESS, _process_seconds(call))
        return result

    return rule


def _wait_for_child(call: Call) -> Value:
    """``os.waitpid``: with ``WNOHANG`` it only asks."""
    call.spend(_CALL_SECONDS)
    if not any(value.name.endswith("WNOHANG") for value in (*call.args, *call.keywords.values())):
        call.wait(WaitKind.PROCESS)
    return Value("tuple", size=constant(2))


def _popen(call: Call) -> Value:
    call.spend(_PROCESS_SECONDS)
    return Value("object", name="subprocess.Popen", payload=_process_seconds(call))


def _popen_wait(result: Value) -> Rule:
    def rule(call: Call) -> Value:
        call.spend(_CALL_SECONDS)
        known = call.receiver.payload if call.receiver is not None else None
        call.wait(WaitKind.PROCESS, known if isinstance(known, Quantity) else None)
        return result

    return rule


def _select(position: int, divisor: float = 1.0) -> Rule:
    """A wait for files, of at most the timeout (``poll`` has milliseconds)."""

    def rule(call: Call) -> Value:
        call.spend(2 * _CALL_SECONDS)
        timeout = argument(call, position, "timeout")
        if _says_no(timeout):
            return UNKNOWN
        bound = _bound(timeout) if _is_given(timeout) else None
        if bound is None:
            call.wait(WaitKind.NETWORK)
        else:
            call.wait(WaitKind.TIME, bound.times(1 / divisor))
        return UNKNOWN

    return rule


def _serves(kind: WaitKind) -> Rule:
    def rule(call: Call) -> Value:
        call.spend(_CALL_SECONDS)
        call.wait(kind)
        call.endless()
        return NONE

    return rule


def _executor(name: str, seconds: float) -> Rule:
    """A pool; its ``number`` is that of its workers where the text says it."""

    def rule(call: Call) -> Value:
        call.spend(seconds)
        call.allocate(_POOL_BYTES)
        return Value("object", name=name, number=argument(call, 0, "max_workers").number)

    return rule


def _executor_map(kind: WaitKind) -> Rule:
    """The processor time of the function is counted here: threads share one interpreter lock."""

    def rule(call: Call) -> Value:
        function, items = argument(call, 0, "fn", "func"), argument(call, 1, "iterable")
        times = call.consume(items)
        call.spend(times.times(2e-5))
        workers = call.receiver.number if call.receiver is not None else None
        result = call.in_pool(function, times, [items.item or UNKNOWN], workers)
        call.wait(kind)
        return Value("iterator", size=times, item=result)

    return rule


def _submit(call: Call) -> Value:
    """A thread runs the function; leaving the pool waits for it."""
    call.spend(2e-5)
    call.start(argument(call, 0, "fn"), call.args[1:])
    return instance("concurrent.futures.Future")


def _first_argument(call: Call) -> Value:
    """A wait for an awaitable, whose result is that of the call."""
    call.spend(2 * _CALL_SECONDS)
    call.wait(WaitKind.THREAD)
    return argument(call, 0, "fut", "fs")


def _read_line(call: Call) -> Value:
    call.spend(_CALL_SECONDS)
    call.wait(WaitKind.USER)
    return _TEXT


def _network(result: Value = UNKNOWN) -> Rule:
    return _waits(WaitKind.NETWORK, result, _REQUEST_SECONDS)


_NETWORK = _network()
_PROCESS = _process(UNKNOWN)
_THREAD = _waits(WaitKind.THREAD)
_USER = _waits(WaitKind.USER, _TEXT)
_RESPONSE = instance("requests.Response")
_HTTP_RESPONSE = instance("http.client.HTTPResponse")
_VERBS = "get post put patch delete head options request"

FUNCTIONS: dict[str, Rule] = {
    "time.sleep": _blocking_sleep,
    **dict.fromkeys(("asyncio.sleep", "trio.sleep", "anyio.sleep", "gevent.sleep", "eventlet.sleep"), _sleep),
    "asyncio.wait_for": _first_argument,
    "asyncio.wait": _THREAD,
    "asyncio.gather": _THREAD,
    "asyncio.to_thread": _THREAD,
    "concurrent.futures.wait": _THREAD,
    "concurrent.futures.as_completed": _THREAD,
    "signal.pause": _waits(WaitKind.PROCESS, NONE),
    "signal.sigwait": _waits(WaitKind.PROCESS, _NUMBER),
    "subprocess.run": _process(instance("subprocess.CompletedProcess")),
    "subprocess.call": _process(_NUMBER),
    "subprocess.check_call": _process(_NUMBER),
    "subprocess.check_output": _process(_BYTES),
    "subprocess.getoutput": _process(_TEXT),
    "subprocess.getstatusoutput": _PROCESS,
    "subprocess.Popen": _popen,
    "os.system": _process(_NUMBER),
    "os.popen": _PROCESS,
    "os.spawnl": _PROCESS,
    "os.spawnv": _PROCESS,
    "pty.spawn": _process(_NUMBER),
    "pexpect.run": _process(_BYTES),
    **dict.fromkeys(("os.wait", "os.waitpid", "os.wait3", "os.wait4"), _wait_for_child),
    "asyncio.create_subprocess_exec": _costs(_PROCESS_SECONDS, instance("asyncio.subprocess.Process")),
    "asyncio.create_subprocess_shell": _costs(_PROCESS_SECONDS, instance("asyncio.subprocess.Process")),
    "select.select": _select(3),
    "builtins.input": _read_line,
    "getpass.getpass": _USER,
    "click.prompt": _USER,
    "click.confirm": _waits(WaitKind.USER, Value("bool")),
    "click.getchar": _USER,
    "click.pause": _waits(WaitKind.USER, NONE),
    "typer.prompt": _USER,
    "typer.confirm": _waits(WaitKind.USER, Value("bool")),
    "msvcrt.getch": _waits(WaitKind.USER, _BYTES),
    "msvcrt.getwch": _USER,
    "tkinter.mainloop": _waits(WaitKind.USER, NONE),
    "curses.wrapper": _waits(WaitKind.USER),
    "code.interact": _waits(WaitKind.USER, NONE),
    "uvicorn.run": _serves(WaitKind.NETWORK),
    "waitress.serve": _serves(WaitKind.NETWORK),
    "aiohttp.web.run_app": _serves(WaitKind.NETWORK),
    "asyncore.loop": _serves(WaitKind.NETWORK),
    "http.server.test": _serves(WaitKind.NETWORK),
    "http.server.serve_forever": _serves(WaitKind.NETWORK),
    **{f"requests.{verb}": _network(_RESPONSE) for verb in _VERBS.split()},
    **{f"requests.api.{verb}": _network(_RESPONSE) for verb in _VERBS.split()},
    **{f"httpx.{verb}": _network(_RESPONSE) for verb in (*_VERBS.split(), "stream")},
    "urllib.request.urlopen": _network(_HTTP_RESPONSE),
    "urllib.request.urlretrieve": _network(),
    "urllib2.urlopen": _network(_HTTP_RESPONSE),
    "urllib.urlopen": _network(_HTTP_RESPONSE),
    "urllib3.request": _network(_HTTP_RESPONSE),
    "urllib3.PoolManager": _costs(2e-5, instance("urllib3.PoolManager")),
    "aiohttp.request": _network(_RESPONSE),
    "websockets.connect": _network(instance("websockets.Connection")),
    "websocket.create_connection": _network(instance("websocket.WebSocket")),
    "socket.create_connection": _network(instance("socket.socket")),
    "asyncio.open_connection": _network(),
    **dict.fromkeys(
        (
            "socket.getaddrinfo",
            "socket.gethostbyname",
            "socket.gethostbyname_ex",
            "socket.gethostbyaddr",
            "socket.getnameinfo",
            "socket.getfqdn",
            "ssl.get_server_certificate",
            "xmlrpc.client.ServerProxy.__call__",
            "telnetlib.Telnet.interact",
            "dns.resolver.resolve",
            "dns.resolver.query",
            "wget.download",
            "huggingface_hub.hf_hub_download",
            "huggingface_hub.snapshot_download",
            "feedparser.parse",
            "openai.ChatCompletion.create",
            "openai.Completion.create",
            "openai.Embedding.create",
            "openai.Image.create",
        ),
        _NETWORK,
    ),
}


def _table(kind: WaitKind, methods: str, result: Value = UNKNOWN) -> dict[str, Rule]:
    rule = _network(result) if kind is WaitKind.NETWORK else _waits(kind, result)
    return dict.fromkeys(methods.split(), rule)


# A type, the other names of what makes it, and the methods that wait. "*" is any method.
_LOCK: Mapping[str, Rule] = {
    "acquire": _timed(1, Value("bool"), flag="blocking"),
    "release": _costs(5e-8, NONE),
    "locked": _costs(5e-8, Value("bool")),
}
_THREAD_METHODS: Mapping[str, Rule] = {
    "start": _costs(_THREAD_SECONDS, NONE),
    "is_alive": _costs(_CALL_SECONDS, Value("bool")),
    "join": _timed(0, NONE),
}
_PROCESS_METHODS: Mapping[str, Rule] = {
    "start": _costs(2 * _PROCESS_SECONDS, NONE),
    "is_alive": _costs(2 * _CALL_SECONDS, Value("bool")),
    "terminate": _costs(5 * _CALL_SECONDS, NONE),
    "kill": _costs(5 * _CALL_SECONDS, NONE),
    "join": _timed(0, NONE, WaitKind.PROCESS),
}
_QUEUE_METHODS: Mapping[str, Rule] = {
    "get": _timed(1, UNKNOWN),
    "put": _queue_put,
    "join": _waits(WaitKind.THREAD, NONE),
    "get_nowait": _costs(_CALL_SECONDS),
    "put_nowait": _costs(_CALL_SECONDS, NONE),
    "task_done": _costs(_CALL_SECONDS, NONE),
    "empty": _costs(_CALL_SECONDS, Value("bool")),
    "full": _costs(_CALL_SECONDS, Value("bool")),
    "qsize": _costs(_CALL_SECONDS, _NUMBER),
}
_EVENT_METHODS: Mapping[str, Rule] = {
    "wait": _event_wait,
    "set": _costs(_CALL_SECONDS, NONE),
    "clear": _costs(_CALL_SECONDS, NONE),
    "is_set": _costs(5e-8, Value("bool")),
}
_CONDITION_METHODS: Mapping[str, Rule] = {
    **_LOCK,
    "wait": _event_wait,
    "wait_for": _condition_wait_for,
    "notify": _costs(_CALL_SECONDS, NONE),
    "notify_all": _costs(_CALL_SECONDS, NONE),
}
_POPEN_METHODS: Mapping[str, Rule] = {
    "wait": _popen_wait(_NUMBER),
    "communicate": _popen_wait(Value("tuple", size=constant(2))),
    "poll": _costs(2 * _CALL_SECONDS),
    "kill": _costs(5 * _CALL_SECONDS, NONE),
    "terminate": _costs(5 * _CALL_SECONDS, NONE),
    "send_signal": _costs(5 * _CALL_SECONDS, NONE),
}
_EXECUTORS = {
    "concurrent.futures.ThreadPoolExecutor": WaitKind.THREAD,
    "concurrent.futures.ProcessPoolExecutor": WaitKind.PROCESS,
}
_POOL_METHODS: Mapping[str, Rule] = {
    **_table(WaitKind.PROCESS, "map starmap imap imap_unordered apply join"),
    "apply_async": _costs(5e-5, instance("multiprocessing.pool.AsyncResult")),
    "map_async": _costs(5e-5, instance("multiprocessing.pool.AsyncResult")),
    "starmap_async": _costs(5e-5, instance("multiprocessing.pool.AsyncResult")),
    "close": _costs(_CALL_SECONDS, NONE),
    "terminate": _costs(1e-4, NONE),
}
_SESSION_METHODS: Mapping[str, Rule] = _table(WaitKind.NETWORK, f"{_VERBS} send stream", _RESPONSE)
_SOCKET_METHODS: Mapping[str, Rule] = {
    **_table(
        WaitKind.NETWORK, "connect connect_ex accept sendall sendfile recvmsg recv_into recvfrom_into do_handshake"
    ),
    **_table(WaitKind.NETWORK, "recv", _BYTES),
    **_table(WaitKind.NETWORK, "recvfrom", Value("tuple", size=constant(2))),
    **dict.fromkeys(
        ("bind", "listen", "close", "setsockopt", "settimeout", "setblocking", "shutdown"), _costs(2e-6, NONE)
    ),
    "send": _costs(5e-6, _NUMBER),
    "sendto": _costs(5e-6, _NUMBER),
}
_SERVER_METHODS: Mapping[str, Rule] = {
    "serve_forever": _serves(WaitKind.NETWORK),
    "handle_request": _waits(WaitKind.NETWORK, NONE),
    "server_close": _costs(1e-5, NONE),
}
_RESPONSE_METHODS: Mapping[str, Rule] = {
    "raise_for_status": _costs(_CALL_SECONDS, NONE),
    "json": _costs(2e-5),
    "iter_content": _waits(WaitKind.NETWORK),
    "iter_lines": _waits(WaitKind.NETWORK),
    "close": _costs(2e-6, NONE),
}
_ANY_NETWORK: Mapping[str, Rule] = {"*": _NETWORK}
_CURSOR_METHODS: Mapping[str, Rule] = {
    **_table(WaitKind.NETWORK, "execute executemany callproc copy_from copy_to copy_expert"),
    "fetchone": _costs(2e-6),
    "fetchall": _costs(2e-5),
    "fetchmany": _costs(1e-5),
    "close": _costs(2e-6, NONE),
}
_CONNECTION_METHODS: Mapping[str, Rule] = {
    **_table(WaitKind.NETWORK, "execute commit rollback ping"),
    "cursor": _costs(5e-6, instance("database.Cursor")),
    "close": _costs(1e-5, NONE),
}
_AI_METHODS: Mapping[str, Rule] = _table(
    WaitKind.NETWORK, "create parse generate retrieve list edit stream transcribe translate embed upload delete cancel"
)
_LOOP_METHODS: Mapping[str, Rule] = {
    "run_forever": _serves(WaitKind.THREAD),
    "run_until_complete": _first_argument,
}
_STDIN_METHODS: Mapping[str, Rule] = {
    "read": _USER,
    "readline": _USER,
    "readlines": _waits(WaitKind.USER, Value("list", item=_TEXT)),
    "__iter__": _waits(WaitKind.USER, Value("iterator", item=_TEXT)),
    "__next__": _USER,
    "fileno": _costs(1e-7, Value("int", 0, number=constant(0))),
    "isatty": _costs(1e-6, Value("bool")),
}
_STDIN_BUFFER_METHODS: Mapping[str, Rule] = {
    "read": _waits(WaitKind.USER, _BYTES),
    "readline": _waits(WaitKind.USER, _BYTES),
    "readlines": _waits(WaitKind.USER, Value("list", item=_BYTES)),
    "__iter__": _waits(WaitKind.USER, Value("iterator", item=_BYTES)),
}

_TYPES: tuple[tuple[str, str, float, Mapping[str, Rule]], ...] = (
    # (type, other constructors, seconds of construction, methods)
    ("threading.Timer", "", 8e-6, _THREAD_METHODS),
    ("threading.Event", "", 2e-6, _EVENT_METHODS),
    ("threading.Condition", "multiprocessing.Condition", 2e-6, _CONDITION_METHODS),
    (
        "threading.Lock",
        "_thread.allocate_lock threading.Semaphore threading.BoundedSemaphore multiprocessing.Lock "
        "multiprocessing.Semaphore",
        2e-7,
        _LOCK,
    ),
    # A lock that its owner may acquire again only guards a critical section, as in `with lock:`.
    ("threading.RLock", "multiprocessing.RLock", 2e-7, {**_LOCK, "acquire": _costs(1e-7, Value("bool"))}),
    ("threading.Barrier", "multiprocessing.Barrier", 5e-6, {"wait": _timed(0, _NUMBER)}),
    ("multiprocessing.Event", "", 2e-5, _EVENT_METHODS),
    (
        "multiprocessing.Process",
        "multiprocessing.context.Process multiprocessing.process.BaseProcess",
        1e-5,
        _PROCESS_METHODS,
    ),
    ("multiprocessing.pool.AsyncResult", "", 0.0, _table(WaitKind.PROCESS, "get wait")),
    ("concurrent.futures.Future", "", 5e-6, _table(WaitKind.THREAD, "result exception")),
    ("subprocess.CompletedProcess", "", 5e-7, {"check_returncode": _costs(1e-7, NONE)}),
    ("asyncio.subprocess.Process", "", 0.0, _table(WaitKind.PROCESS, "wait communicate")),
    ("asyncio.Event", "trio.Event anyio.Event", 1e-6, {**_EVENT_METHODS, "wait": _THREAD}),
    (
        "asyncio.Lock",
        "asyncio.Semaphore asyncio.BoundedSemaphore",
        1e-6,
        {"acquire": _THREAD, "release": _costs(2e-7, NONE)},
    ),
    ("asyncio.Condition", "", 1e-6, {"wait": _THREAD, "wait_for": _THREAD}),
    ("requests.Session", "requests.session requests.sessions.Session", 5e-5, _SESSION_METHODS),
    ("requests.Response", "", 1e-6, _RESPONSE_METHODS),
    ("httpx.Client", "httpx.AsyncClient", 2e-2, _SESSION_METHODS),
    ("aiohttp.ClientSession", "", 2e-5, {**_SESSION_METHODS, "ws_connect": _NETWORK}),
    ("urllib3.HTTPConnectionPool", "urllib3.HTTPSConnectionPool", 2e-5, _table(WaitKind.NETWORK, "request urlopen")),
    (
        "http.client.HTTPConnection",
        "http.client.HTTPSConnection",
        1e-5,
        {**_table(WaitKind.NETWORK, "connect request endheaders send"), "getresponse": _network(_HTTP_RESPONSE)},
    ),
    (
        "http.client.HTTPResponse",
        "",
        1e-6,
        {**_table(WaitKind.NETWORK, "read readinto readline readlines", _BYTES), "getcode": _costs(1e-7, _NUMBER)},
    ),
    (
        "urllib.request.OpenerDirector",
        "urllib.request.build_opener",
        2e-5,
        {"open": _network(_HTTP_RESPONSE)},
    ),
    ("socket.socket", "", 1e-5, _SOCKET_METHODS),
    ("ssl.SSLSocket", "", 0.0, _SOCKET_METHODS),
    (
        "socketserver.TCPServer",
        "socketserver.UDPServer socketserver.ThreadingTCPServer socketserver.ThreadingUDPServer http.server.HTTPServer "
        "http.server.ThreadingHTTPServer wsgiref.simple_server.make_server wsgiref.simple_server.WSGIServer "
        "xmlrpc.server.SimpleXMLRPCServer werkzeug.serving.make_server",
        1e-4,
        _SERVER_METHODS,
    ),
    (
        "smtplib.SMTP",
        "smtplib.SMTP_SSL smtplib.LMTP",
        1e-5,
        _table(WaitKind.NETWORK, "connect helo ehlo login starttls sendmail send_message quit noop data docmd"),
    ),
    (
        "imaplib.IMAP4",
        "imaplib.IMAP4_SSL",
        1e-4,
        _table(WaitKind.NETWORK, "login select search fetch store append list logout uid close expunge starttls"),
    ),
    ("poplib.POP3", "poplib.POP3_SSL", 1e-4, _table(WaitKind.NETWORK, "user pass_ stat list retr dele top uidl quit")),
    (
        "ftplib.FTP",
        "ftplib.FTP_TLS",
        1e-4,
        _table(
            WaitKind.NETWORK,
            "connect login cwd pwd nlst dir retrbinary retrlines storbinary storlines sendcmd voidcmd delete rename "
            "mkd rmd size quit mlsd",
        ),
    ),
    (
        "telnetlib.Telnet",
        "",
        1e-4,
        _table(WaitKind.NETWORK, "open read_until read_all read_some expect interact write"),
    ),
    ("xmlrpc.client.ServerProxy", "xmlrpclib.ServerProxy", 2e-5, _ANY_NETWORK),
    ("websockets.Connection", "", 0.0, _table(WaitKind.NETWORK, "recv send close ping wait_closed")),
    ("websocket.WebSocket", "", 0.0, _table(WaitKind.NETWORK, "recv send connect close ping")),
    ("websocket.WebSocketApp", "", 1e-5, {"run_forever": _serves(WaitKind.NETWORK)}),
    (
        "paramiko.SSHClient",
        "paramiko.client.SSHClient",
        1e-5,
        {**_table(WaitKind.NETWORK, "connect exec_command"), "open_sftp": _network(instance("paramiko.SFTPClient"))},
    ),
    (
        "paramiko.SFTPClient",
        "",
        1e-5,
        _table(WaitKind.NETWORK, "get put listdir listdir_attr stat remove rename mkdir rmdir open getfo putfo"),
    ),
    (
        "redis.Redis",
        "redis.StrictRedis redis.asyncio.Redis aioredis.Redis aioredis.from_url redis.from_url redis.asyncio.from_url",
        5e-5,
        _ANY_NETWORK,
    ),
    ("database.Cursor", "", 0.0, _CURSOR_METHODS),
    ("elasticsearch.Elasticsearch", "opensearchpy.OpenSearch elasticsearch.AsyncElasticsearch", 1e-3, _ANY_NETWORK),
    (
        "boto3.client",
        "botocore.session.client boto3.session.client",
        1e-2,
        {**_ANY_NETWORK, "close": _costs(1e-6, NONE)},
    ),
    ("boto3.Session", "boto3.session.Session", 1e-3, {"client": _costs(1e-2, instance("boto3.client"))}),
    ("kafka.KafkaProducer", "", 1e-3, _table(WaitKind.NETWORK, "flush close partitions_for")),
    (
        "kafka.KafkaConsumer",
        "",
        1e-3,
        _table(WaitKind.NETWORK, "poll commit __iter__ __next__ close partitions_for_topic"),
    ),
    (
        "confluent_kafka.Consumer",
        "confluent_kafka.Producer",
        1e-3,
        _table(WaitKind.NETWORK, "poll consume commit flush"),
    ),
    (
        "pika.BlockingConnection",
        "",
        1e-3,
        {"channel": _network(instance("pika.Channel")), "close": _NETWORK, "process_data_events": _NETWORK},
    ),
    (
        "pika.Channel",
        "",
        0.0,
        {
            **_table(WaitKind.NETWORK, "basic_publish basic_get basic_ack queue_declare exchange_declare queue_bind"),
            "start_consuming": _serves(WaitKind.NETWORK),
        },
    ),
    ("grpc.Server", "grpc.server grpc.aio.server", 1e-4, {"wait_for_termination": _serves(WaitKind.NETWORK)}),
    (
        "openai.OpenAI",
        "openai.AsyncOpenAI openai.AzureOpenAI openai.AsyncAzureOpenAI anthropic.Anthropic anthropic.AsyncAnthropic "
        "mistralai.Mistral groq.Groq",
        2e-2,
        _AI_METHODS,
    ),
    (
        "flask.Flask",
        "sanic.Sanic bottle.Bottle quart.Quart dash.Dash aiohttp.web.Application",
        1e-4,
        {"run": _serves(WaitKind.NETWORK), "run_server": _serves(WaitKind.NETWORK)},
    ),
    (
        "asyncio.AbstractEventLoop",
        "asyncio.new_event_loop asyncio.get_event_loop asyncio.get_running_loop",
        1e-5,
        _LOOP_METHODS,
    ),
    ("selectors.DefaultSelector", "selectors.EpollSelector selectors.SelectSelector", 5e-6, {"select": _select(0)}),
    ("select.poll", "", 2e-6, {"poll": _select(0, 1000.0)}),
    ("select.epoll", "", 2e-6, {"poll": _select(0)}),
    ("tkinter.Tk", "tkinter.Toplevel Tkinter.Tk customtkinter.CTk", 2e-2, {"mainloop": _waits(WaitKind.USER, NONE)}),
    ("sched.scheduler", "", 1e-6, {"run": _waits(WaitKind.TIME)}),
    ("pexpect.spawn", "pexpect.pxssh.pxssh", 5e-3, _table(WaitKind.PROCESS, "expect expect_exact wait read readline")),
    (
        "cmd.Cmd",
        "",
        1e-6,
        {"cmdloop": _waits(WaitKind.USER, NONE)},
    ),
    ("sys.stdin", "", 0.0, _STDIN_METHODS),
    ("sys.stdin.buffer", "", 0.0, _STDIN_BUFFER_METHODS),
)

METHODS: dict[tuple[str, str], Rule] = {
    **{(name, method): rule for name, _, _, methods in _TYPES for method, rule in methods.items()},
    **{("subprocess.Popen", method): rule for method, rule in _POPEN_METHODS.items()},
    **{("urllib3.PoolManager", method): _network(_HTTP_RESPONSE) for method in ("request", "urlopen")},
    **{("database.Connection", method): rule for method, rule in _CONNECTION_METHODS.items()},
    ("concurrent.futures.ThreadPoolExecutor", "submit"): _submit,
    ("concurrent.futures.ProcessPoolExecutor", "submit"): _costs(2e-5, instance("concurrent.futures.Future")),
    **{(name, "map"): _executor_map(kind) for name, kind in _EXECUTORS.items()},
    **{(name, "shutdown"): _waits(kind, NONE) for name, kind in _EXECUTORS.items()},
    **{
        (name, method): rule
        for name in ("multiprocessing.Pool", "multiprocessing.pool.ThreadPool")
        for method, rule in _POOL_METHODS.items()
    },
    **{
        (name, method): rule
        for name in (
            "queue.Queue",
            "queue.LifoQueue",
            "queue.PriorityQueue",
            "queue.SimpleQueue",
            "multiprocessing.Queue",
            "multiprocessing.JoinableQueue",
        )
        for method, rule in _QUEUE_METHODS.items()
    },
    **{
        ("asyncio.Queue", method): rule
        for method, rule in {**_QUEUE_METHODS, "get": _THREAD, "join": _waits(WaitKind.THREAD, NONE)}.items()
    },
    # Names that mean one thing whatever their receiver is.
    ("", "serve_forever"): _serves(WaitKind.NETWORK),
    ("", "run_forever"): _serves(WaitKind.THREAD),
    ("", "run_until_complete"): _first_argument,
    ("", "check_output"): _process(_BYTES),
    ("", "urlopen"): _network(_HTTP_RESPONSE),
}

FUNCTIONS |= {
    constructor: _costs(seconds, instance(name))
    for name, others, seconds, _ in _TYPES
    if seconds
    for constructor in (name, *others.split())
}
FUNCTIONS |= {
    name: _queue(name)
    for name in (
        "queue.Queue",
        "queue.LifoQueue",
        "queue.PriorityQueue",
        "queue.SimpleQueue",
        "multiprocessing.Queue",
        "multiprocessing.JoinableQueue",
        "asyncio.Queue",
    )
}
FUNCTIONS["multiprocessing.pool.ThreadPool"] = _costs(2e-3, instance("multiprocessing.pool.ThreadPool"))
FUNCTIONS["concurrent.futures.ThreadPoolExecutor"] = _executor("concurrent.futures.ThreadPoolExecutor", 2e-5)
FUNCTIONS["concurrent.futures.ProcessPoolExecutor"] = _executor("concurrent.futures.ProcessPoolExecutor", 1e-4)
FUNCTIONS["multiprocessing.Pool"] = _costs(10 * _PROCESS_SECONDS, instance("multiprocessing.Pool"))
FUNCTIONS |= dict.fromkeys(
    (
        "psycopg2.connect",
        "psycopg.connect",
        "pymysql.connect",
        "MySQLdb.connect",
        "mysql.connector.connect",
        "asyncpg.connect",
        "pyodbc.connect",
        "cx_Oracle.connect",
        "oracledb.connect",
        "snowflake.connector.connect",
    ),
    _network(instance("database.Connection")),
)

OPERATORS: dict[tuple[str, str], Rule] = {}


def _value(value: Value) -> Attribute:
    return lambda receiver: value


ATTRIBUTES: dict[tuple[str, str], Attribute] = {
    ("sys", "stdin"): _value(instance("sys.stdin")),
    ("sys.stdin", "buffer"): _value(instance("sys.stdin.buffer")),
    ("requests.Response", "status_code"): _value(_NUMBER),
    ("requests.Response", "ok"): _value(Value("bool")),
    ("requests.Response", "text"): _value(_TEXT),
    ("requests.Response", "content"): _value(_BYTES),
    ("http.client.HTTPResponse", "status"): _value(_NUMBER),
    ("subprocess.CompletedProcess", "returncode"): _value(_NUMBER),
    **{
        ("openai.OpenAI", name): _value(instance("openai.OpenAI"))
        for name in [
            "chat",
            "completions",
            "embeddings",
            "images",
            "audio",
            "models",
            "responses",
            "beta",
            "messages",
            "files",
            "moderations",
        ]
    },
    ("websockets", "sync"): _value(Value("module", name="websockets.sync")),
}
