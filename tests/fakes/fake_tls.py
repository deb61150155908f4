#!/usr/bin/python3
"""fake_tls.py PROTOCOL [END BODY]: an HTTPS server on 127.0.0.1 for the tests.

PROTOCOL is h2 or http/1.1, the one that ALPN agrees on. Prints "port N". Answers every request
with "connection C", counting connections from 1. Over h2 a request is answered 50 ms after it
came, so that requests of one client overlap on one connection. The frames are RFC 9113's, written
out here, since the standard library has none. With END and BODY each request is answered by BODY,
in which @N@ is the connection's number, and over h2 each connection's second request is answered by
no more than END: "goaway" (GOAWAY, which says that only the first was looked at, then the end of
the connection) or "refuse" (RST_STREAM with REFUSED_STREAM). "silent": the first connection answers
one request, and then no more, though it stays. Over http/1.1 "twice" says each answer twice, the
second time as of connection 99.

tls/localhost.key is for this server alone; nothing trusts it.
"""
import ctypes
import os
import signal
import socket
import ssl
import struct
import sys
import threading

PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
DATA, HEADERS, RST_STREAM, SETTINGS, PING, GOAWAY = 0, 1, 3, 4, 6, 7
REFUSED_STREAM = 7
END_STREAM, END_HEADERS, ACK = 1, 4, 1
STATUS_200 = b"\x88"  # HPACK: the static table's entry 8, ":status: 200"


def read_exactly(connection, count):
    data = b""
    while len(data) < count:
        part = connection.recv(count - len(data))
        if not part:
            raise ConnectionError
        data += part
    return data


def frame(kind, flags, stream, payload=b""):
    return struct.pack(">I", len(payload))[1:] + struct.pack(">BBI", kind, flags, stream) + payload


def serve_h2(connection, text, end, number):
    streams = []
    lock = threading.Lock()

    def send(data):
        with lock:
            connection.sendall(data)

    def answer(stream):
        send(frame(HEADERS, END_HEADERS, stream, STATUS_200) +
             frame(DATA, END_STREAM, stream, text))

    assert read_exactly(connection, len(PREFACE)) == PREFACE
    send(frame(SETTINGS, 0, 0))
    while True:
        head = read_exactly(connection, 9)
        length = int.from_bytes(head[:3], "big")
        kind, flags, stream = struct.unpack(">BBI", head[3:])
        payload = read_exactly(connection, length)
        if kind == SETTINGS and not flags & ACK:
            send(frame(SETTINGS, ACK, 0))
        elif kind == PING and not flags & ACK:
            send(frame(PING, ACK, 0, payload))
        elif kind in (HEADERS, DATA) and flags & END_STREAM:
            streams.append(stream)
            if end == "goaway" and len(streams) == 2:
                send(frame(GOAWAY, 0, 0, struct.pack(">II", streams[0], 0)))
                raise ConnectionError
            if end == "refuse" and len(streams) == 2:
                send(frame(RST_STREAM, 0, stream, struct.pack(">I", REFUSED_STREAM)))
                continue
            if end == "silent" and number == 1 and len(streams) > 1:
                continue
            threading.Timer(0.05, answer, [stream]).start()


class Held:
    """A TLS connection whose records go out together, before it waits for what comes next: none of them can be late."""

    def __init__(self, context, raw):
        self.raw, self.received, self.written = raw, ssl.MemoryBIO(), ssl.MemoryBIO()
        self.tls = context.wrap_bio(self.received, self.written, server_side=True)
        self.sendall = self.tls.write
        self.until_done(self.tls.do_handshake)

    def until_done(self, act, *arguments):
        while True:
            try:
                return act(*arguments)
            except ssl.SSLWantReadError:
                self.raw.sendall(self.written.read())
                part = self.raw.recv(65536)
                if not part:
                    raise ConnectionError
                self.received.write(part)

    def recv(self, count):
        return self.until_done(self.tls.read, count)


def serve_h1(connection, text, stray):
    data = b""
    while True:
        while b"\r\n\r\n" not in data:
            part = connection.recv(4096)
            if not part:
                return
            data += part
        data = data.split(b"\r\n\r\n", 1)[1]
        connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % len(text) + text)
        if stray:
            connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % len(stray) + stray)


def serve(context, raw, number):
    raw.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    try:
        connection = context.wrap_socket(raw, server_side=True) if sys.argv[1] == "h2" else Held(context, raw)
        body, end = (sys.argv[3:] or ["connection @N@"])[0], (sys.argv[2:] or [""])[0]
        text, stray = (body.replace("@N@", name).encode() for name in (str(number), "99"))
        if sys.argv[1] == "h2":
            serve_h2(connection, text, end, number)
        else:
            serve_h1(connection, text, stray if end == "twice" else None)
    except (OSError, ConnectionError):
        pass  # the client went away, or did not trust us


def main():
    ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG: ends with the test
    folder = os.path.join(os.path.dirname(os.path.abspath(__file__)), "tls")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(os.path.join(folder, "localhost.pem"),
                            os.path.join(folder, "localhost.key"))
    context.set_alpn_protocols([sys.argv[1]])
    listener = socket.create_server(("127.0.0.1", 0), backlog=128)
    print("port", listener.getsockname()[1], flush=True)
    number = 0
    while True:
        raw, _ = listener.accept()
        number += 1
        threading.Thread(target=serve, args=(context, raw, number), daemon=True).start()


main()
