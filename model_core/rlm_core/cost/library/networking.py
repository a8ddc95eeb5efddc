"""Rules for what waits for a network: HTTP, sockets, mail, databases, queues and other services."""

from __future__ import annotations

from collections.abc import Mapping

from rlm_core.types import WaitKind

from ..domain.quantities import constant
from ..domain.values import NONE, UNKNOWN, Call, Value
from .rules import Attribute, Rule, argument
from .waiting import (
    BYTES,
    CALL_SECONDS,
    NUMBER,
    REQUEST,
    TEXT,
    WaitingType,
    always,
    constructors,
    costs,
    instance,
    is_given,
    methods_of,
    request,
    says_no,
    serves,
    table,
    time_limit,
    waits,
)

_RESPONSE = instance("requests.Response")
_HTTP_RESPONSE = instance("http.client.HTTPResponse")
_VERBS = "get post put patch delete head options request"


def _select(position: int, divisor: float = 1.0) -> Rule:
    """A wait for files, of at most the timeout (``poll`` has milliseconds)."""

    def rule(call: Call) -> Value:
        call.spend(2 * CALL_SECONDS)
        timeout = argument(call, position, "timeout")
        if says_no(timeout):
            return UNKNOWN
        bound = time_limit(timeout) if is_given(timeout) else None
        if bound is None:
            call.wait(WaitKind.NETWORK)
        else:
            call.wait(WaitKind.TIME, bound.times(1 / divisor))
        return UNKNOWN

    return rule


_SESSION_METHODS: Mapping[str, Rule] = table(WaitKind.NETWORK, f"{_VERBS} send stream", _RESPONSE)
_SOCKET_METHODS: Mapping[str, Rule] = {
    **table(
        WaitKind.NETWORK, "connect connect_ex accept sendall sendfile recvmsg recv_into recvfrom_into do_handshake"
    ),
    **table(WaitKind.NETWORK, "recv", BYTES),
    **table(WaitKind.NETWORK, "recvfrom", Value("tuple", size=constant(2))),
    **dict.fromkeys(
        ("bind", "listen", "close", "setsockopt", "settimeout", "setblocking", "shutdown"), costs(2e-6, NONE)
    ),
    "send": costs(5e-6, NUMBER),
    "sendto": costs(5e-6, NUMBER),
}
_SERVER_METHODS: Mapping[str, Rule] = {
    "serve_forever": serves(WaitKind.NETWORK),
    "handle_request": waits(WaitKind.NETWORK, NONE),
    "server_close": costs(1e-5, NONE),
}
_RESPONSE_METHODS: Mapping[str, Rule] = {
    "raise_for_status": costs(CALL_SECONDS, NONE),
    "json": costs(2e-5),
    "iter_content": waits(WaitKind.NETWORK),
    "iter_lines": waits(WaitKind.NETWORK),
    "close": costs(2e-6, NONE),
}
_ANY_NETWORK: Mapping[str, Rule] = {"*": REQUEST}
_CURSOR_METHODS: Mapping[str, Rule] = {
    **table(WaitKind.NETWORK, "execute executemany callproc copy_from copy_to copy_expert"),
    "fetchone": costs(2e-6),
    "fetchall": costs(2e-5),
    "fetchmany": costs(1e-5),
    "close": costs(2e-6, NONE),
}
_CONNECTION_METHODS: Mapping[str, Rule] = {
    **table(WaitKind.NETWORK, "execute commit rollback ping"),
    "cursor": costs(5e-6, instance("database.Cursor")),
    "close": costs(1e-5, NONE),
}
_AI_METHODS: Mapping[str, Rule] = table(
    WaitKind.NETWORK, "create parse generate retrieve list edit stream transcribe translate embed upload delete cancel"
)

_TYPES: tuple[WaitingType, ...] = (
    ("requests.Session", "requests.session requests.sessions.Session", 5e-5, _SESSION_METHODS),
    ("requests.Response", "", 1e-6, _RESPONSE_METHODS),
    ("httpx.Client", "httpx.AsyncClient", 2e-2, _SESSION_METHODS),
    ("aiohttp.ClientSession", "", 2e-5, {**_SESSION_METHODS, "ws_connect": REQUEST}),
    ("urllib3.HTTPConnectionPool", "urllib3.HTTPSConnectionPool", 2e-5, table(WaitKind.NETWORK, "request urlopen")),
    (
        "http.client.HTTPConnection",
        "http.client.HTTPSConnection",
        1e-5,
        {**table(WaitKind.NETWORK, "connect request endheaders send"), "getresponse": request(_HTTP_RESPONSE)},
    ),
    (
        "http.client.HTTPResponse",
        "",
        1e-6,
        {**table(WaitKind.NETWORK, "read readinto readline readlines", BYTES), "getcode": costs(1e-7, NUMBER)},
    ),
    (
        "urllib.request.OpenerDirector",
        "urllib.request.build_opener",
        2e-5,
        {"open": request(_HTTP_RESPONSE)},
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
        table(WaitKind.NETWORK, "connect helo ehlo login starttls sendmail send_message quit noop data docmd"),
    ),
    (
        "imaplib.IMAP4",
        "imaplib.IMAP4_SSL",
        1e-4,
        table(WaitKind.NETWORK, "login select search fetch store append list logout uid close expunge starttls"),
    ),
    ("poplib.POP3", "poplib.POP3_SSL", 1e-4, table(WaitKind.NETWORK, "user pass_ stat list retr dele top uidl quit")),
    (
        "ftplib.FTP",
        "ftplib.FTP_TLS",
        1e-4,
        table(
            WaitKind.NETWORK,
            "connect login cwd pwd nlst dir retrbinary retrlines storbinary storlines sendcmd voidcmd delete rename "
            "mkd rmd size quit mlsd",
        ),
    ),
    (
        "telnetlib.Telnet",
        "",
        1e-4,
        table(WaitKind.NETWORK, "open read_until read_all read_some expect interact write"),
    ),
    ("xmlrpc.client.ServerProxy", "xmlrpclib.ServerProxy", 2e-5, _ANY_NETWORK),
    ("websockets.Connection", "", 0.0, table(WaitKind.NETWORK, "recv send close ping wait_closed")),
    ("websocket.WebSocket", "", 0.0, table(WaitKind.NETWORK, "recv send connect close ping")),
    ("websocket.WebSocketApp", "", 1e-5, {"run_forever": serves(WaitKind.NETWORK)}),
    (
        "paramiko.SSHClient",
        "paramiko.client.SSHClient",
        1e-5,
        {**table(WaitKind.NETWORK, "connect exec_command"), "open_sftp": request(instance("paramiko.SFTPClient"))},
    ),
    (
        "paramiko.SFTPClient",
        "",
        1e-5,
        table(WaitKind.NETWORK, "get put listdir listdir_attr stat remove rename mkdir rmdir open getfo putfo"),
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
        {**_ANY_NETWORK, "close": costs(1e-6, NONE)},
    ),
    ("boto3.Session", "boto3.session.Session", 1e-3, {"client": costs(1e-2, instance("boto3.client"))}),
    ("kafka.KafkaProducer", "", 1e-3, table(WaitKind.NETWORK, "flush close partitions_for")),
    (
        "kafka.KafkaConsumer",
        "",
        1e-3,
        table(WaitKind.NETWORK, "poll commit __iter__ __next__ close partitions_for_topic"),
    ),
    (
        "confluent_kafka.Consumer",
        "confluent_kafka.Producer",
        1e-3,
        table(WaitKind.NETWORK, "poll consume commit flush"),
    ),
    (
        "pika.BlockingConnection",
        "",
        1e-3,
        {"channel": request(instance("pika.Channel")), "close": REQUEST, "process_data_events": REQUEST},
    ),
    (
        "pika.Channel",
        "",
        0.0,
        {
            **table(WaitKind.NETWORK, "basic_publish basic_get basic_ack queue_declare exchange_declare queue_bind"),
            "start_consuming": serves(WaitKind.NETWORK),
        },
    ),
    ("grpc.Server", "grpc.server grpc.aio.server", 1e-4, {"wait_for_termination": serves(WaitKind.NETWORK)}),
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
        {"run": serves(WaitKind.NETWORK), "run_server": serves(WaitKind.NETWORK)},
    ),
    ("selectors.DefaultSelector", "selectors.EpollSelector selectors.SelectSelector", 5e-6, {"select": _select(0)}),
    ("select.poll", "", 2e-6, {"poll": _select(0, 1000.0)}),
    ("select.epoll", "", 2e-6, {"poll": _select(0)}),
)

FUNCTIONS: dict[str, Rule] = {
    **constructors(_TYPES),
    "select.select": _select(3),
    "uvicorn.run": serves(WaitKind.NETWORK),
    "waitress.serve": serves(WaitKind.NETWORK),
    "aiohttp.web.run_app": serves(WaitKind.NETWORK),
    "asyncore.loop": serves(WaitKind.NETWORK),
    "http.server.test": serves(WaitKind.NETWORK),
    "http.server.serve_forever": serves(WaitKind.NETWORK),
    **{f"requests.{verb}": request(_RESPONSE) for verb in _VERBS.split()},
    **{f"requests.api.{verb}": request(_RESPONSE) for verb in _VERBS.split()},
    **{f"httpx.{verb}": request(_RESPONSE) for verb in (*_VERBS.split(), "stream")},
    "urllib.request.urlopen": request(_HTTP_RESPONSE),
    "urllib.request.urlretrieve": request(),
    "urllib2.urlopen": request(_HTTP_RESPONSE),
    "urllib.urlopen": request(_HTTP_RESPONSE),
    "urllib3.request": request(_HTTP_RESPONSE),
    "urllib3.PoolManager": costs(2e-5, instance("urllib3.PoolManager")),
    "aiohttp.request": request(_RESPONSE),
    "websockets.connect": request(instance("websockets.Connection")),
    "websocket.create_connection": request(instance("websocket.WebSocket")),
    "socket.create_connection": request(instance("socket.socket")),
    "asyncio.open_connection": request(),
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
        REQUEST,
    ),
    **dict.fromkeys(
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
        request(instance("database.Connection")),
    ),
}

METHODS: dict[tuple[str, str], Rule] = {
    **methods_of(_TYPES),
    **{("urllib3.PoolManager", method): request(_HTTP_RESPONSE) for method in ("request", "urlopen")},
    **{("database.Connection", method): rule for method, rule in _CONNECTION_METHODS.items()},
    # Names that mean one thing whatever their receiver is.
    ("", "serve_forever"): serves(WaitKind.NETWORK),
    ("", "urlopen"): request(_HTTP_RESPONSE),
}

ATTRIBUTES: dict[tuple[str, str], Attribute] = {
    ("requests.Response", "status_code"): always(NUMBER),
    ("requests.Response", "ok"): always(Value("bool")),
    ("requests.Response", "text"): always(TEXT),
    ("requests.Response", "content"): always(BYTES),
    ("http.client.HTTPResponse", "status"): always(NUMBER),
    **{
        ("openai.OpenAI", name): always(instance("openai.OpenAI"))
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
    ("websockets", "sync"): always(Value("module", name="websockets.sync")),
}
