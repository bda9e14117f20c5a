"""A server of ``polyview serve`` in a thread of the test."""

import contextlib
import http.client
import socket
import threading
import time

import uvicorn

SECRET = b"SECRET-OUTSIDE-THE-FOLDER"


@contextlib.contextmanager
def serving(app):
    """Serve an application on a free port of this machine; yield the port."""
    listening = socket.socket()
    listening.bind(("127.0.0.1", 0))
    server = uvicorn.Server(uvicorn.Config(app, log_level="error", server_header=False))
    thread = threading.Thread(target=server.run, args=([listening],))
    thread.start()
    try:
        while not server.started:
            time.sleep(0.01)
        yield listening.getsockname()[1]
    finally:
        server.should_exit = True
        thread.join()
        listening.close()


def answer(port, request):
    """Send raw bytes; return the status, the headers and the body of the answer."""
    with socket.create_connection(("127.0.0.1", port), timeout=300) as connection:
        with contextlib.suppress(ConnectionError):  # a server may answer before it has read all
            connection.sendall(request)
        answered = http.client.HTTPResponse(connection)
        answered.begin()
        headers = {name.lower(): value for name, value in answered.getheaders()}
        return answered.status, headers, answered.read()


def request(method="GET", path="/", body=b"", host=None, kind="application/json", **headers):
    """Return the bytes of a request as a browser would send it; PORT stands for the port."""
    lines = [f"{method} {path} HTTP/1.1", f"host: {host or '127.0.0.1:PORT'}", "connection: close"]
    if body:
        lines += [f"content-type: {kind}", f"content-length: {len(body)}"]
    lines += [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
    return "\r\n".join([*lines, "", ""]).encode("latin-1") + body
