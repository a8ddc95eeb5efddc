"""Runs a command in a network namespace of its own and writes down everything that it sends.

    unshare --net --mount python -m tests.package.watched REPORT -- COMMAND...

The namespace has no way out. Every address is one of its own, so that a connection to any address is seen, and the
resolver that programs find is ours: it answers every name with ``SOMEWHERE``. One JSON object per line of the report:
what was sent, or the exit status of the command, which ends it. The working directory is for our files.
"""

from __future__ import annotations

import fcntl
import json
import socket
import struct
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

SOMEWHERE = "127.0.0.2"
_RESOLVER = ("127.0.0.1", 53)
_END = ("127.0.0.1", 9)
_SIOCSIFFLAGS, _UP_AND_RUNNING = 0x8914, 0x41
_IPV4, _IPV6, _TCP, _UDP = 0x0800, 0x86DD, 6, 17
# Names are looked up in files and by DNS only, not by asking another service over a Unix socket.
_FILES = {"/etc/resolv.conf": f"nameserver {_RESOLVER[0]}\n", "/etc/nsswitch.conf": "hosts: files dns\n"}


class Watch:
    """Sees the packets that leave, answers look-ups, and writes both down."""

    def __init__(self, report: Path) -> None:
        self._file = report.open("a", encoding="utf-8")
        self._lock = threading.Lock()
        self._packets = socket.socket(socket.AF_PACKET, socket.SOCK_DGRAM, socket.htons(0x0003))
        self._names = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self._names.bind(_RESOLVER)
        self._watcher = threading.Thread(target=self._watch, daemon=True)
        self._watcher.start()
        threading.Thread(target=self._resolve, daemon=True).start()

    def write(self, **event: Any) -> None:
        """Add a line to the report."""
        with self._lock:
            self._file.write(json.dumps(event) + "\n")
            self._file.flush()

    def close(self) -> None:
        """Wait until everything that was sent before is written down."""
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as last:
            last.sendto(b"", _END)
        self._watcher.join()

    def _watch(self) -> None:
        while True:
            packet, (_, protocol, kind, *_) = self._packets.recvfrom(65_535)
            # On the loopback device a packet leaves and arrives.
            if kind != socket.PACKET_OUTGOING or protocol not in (_IPV4, _IPV6):
                continue
            if protocol == _IPV4:
                head, transport, target = (
                    (packet[0] & 15) * 4,
                    packet[9],
                    socket.inet_ntop(socket.AF_INET, packet[16:20]),
                )
            else:
                head, transport, target = 40, packet[6], socket.inet_ntop(socket.AF_INET6, packet[24:40])
            if transport not in (_TCP, _UDP):
                continue
            source_port, port = struct.unpack_from("!HH", packet, head)
            if transport == _UDP:
                if (target, port) == _END:
                    return
                # Look-ups are written down, and answered, below.
                if (target, port) != _RESOLVER and source_port != _RESOLVER[1]:
                    self.write(connection=f"udp {target}", port=port)
            elif packet[head + 13] & 0x12 == 0x02:  # SYN without ACK
                self.write(connection=f"tcp {target}", port=port)

    def _resolve(self) -> None:
        while True:
            query, asker = self._names.recvfrom(4096)
            labels, at = [], 12
            while query[at]:
                labels.append(query[at + 1 : at + 1 + query[at]].decode("ascii", "replace"))
                at += 1 + query[at]
            self.write(lookup=".".join(labels))
            question = query[12 : at + 5]
            answer = b""
            if question[-4:-2] == b"\0\1":  # an IPv4 address is wanted
                answer = b"\xc0\x0c" + struct.pack("!HHIH", 1, 1, 60, 4) + socket.inet_aton(SOMEWHERE)
            self._names.sendto(
                query[:2] + struct.pack("!HHHHH", 0x8180, 1, bool(answer), 0, 0) + question + answer, asker
            )


def _own_every_address(family: int) -> None:
    """Route every address of a family to this machine itself."""
    # struct rtmsg: the table `local`, scope `host`, a local route; then the attribute RTA_OIF, the loopback device.
    route = struct.pack("=BBBBBBBBI", family, 0, 0, 0, 255, 4, 254, 2, 0) + struct.pack("=HHI", 8, 4, 1)
    with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 0) as kernel:
        # RTM_NEWROUTE; a request to create, to be acknowledged.
        kernel.send(struct.pack("=IHHII", 16 + len(route), 24, 0x405, 1, 0) + route)
        error: int = struct.unpack_from("=i", kernel.recv(4096), 16)[0]
    if error:
        raise OSError(-error, "no route to the loopback device")


def main(report: str, _: str, *command: str) -> int:
    """Set the namespace up, run the command, and return its exit status."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as control:
        fcntl.ioctl(control, _SIOCSIFFLAGS, struct.pack("16sh14x", b"lo", _UP_AND_RUNNING))
    _own_every_address(socket.AF_INET)
    if socket.has_ipv6:
        _own_every_address(socket.AF_INET6)
    for path, text in _FILES.items():
        ours = Path(report).with_name(Path(path).name)
        ours.write_text(text, encoding="ascii")
        if Path(path).exists():
            subprocess.run(["mount", "--bind", ours, path], check=True)
    watch = Watch(Path(report))
    status = subprocess.run(command, check=False).returncode
    watch.close()
    watch.write(status=status)
    return status


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
