"""The namespace in which the examples run has no way out, and the loopback works."""

from __future__ import annotations

import errno
import socket
import subprocess
import sys

import pytest

from tests import offline

REACH = "import socket, sys\ns = socket.socket()\ns.settimeout(5)\nsys.exit(s.connect_ex(('192.0.2.1', 80)))"


@pytest.mark.skipif(not offline.is_possible(), reason="needs a network namespace: Linux, as root")
def test_nothing_is_reached_from_inside() -> None:
    with offline.no_network():
        assert subprocess.run([sys.executable, "-c", REACH], check=False).returncode == errno.ENETUNREACH
        with socket.create_server(("127.0.0.1", 0)) as server, socket.create_connection(server.getsockname()):
            pass
        names = {name for _, name in socket.if_nameindex()}
    assert "lo" in names
    assert not any(name.startswith(("eth", "en", "wl")) for name in names)
