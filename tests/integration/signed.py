"""signed.py TWAGENT FAKE_PROVIDER FAKE_WORKER: requests that are signed (AWS Signature Version 4), by the usual variables and by
credentials that a command prints, which end on the way; a server computes each signature anew. Prints one line a check."""
import hashlib
import hmac
import http.server
import json
import os
import subprocess
import sys
import threading
import urllib.error
import urllib.parse
import urllib.request

import batch

CREDENTIALS = {"AKIDFIRST000": ("first/secret+0123456789", "first-token=="), "AKIDSECOND00": ("second/secret+987654321", "second-token/")}
SCOPE = "eu-west-1/bedrock"


def signature(secret, date, scope, text):
    key = ("AWS4" + secret).encode()
    for part in scope.split("/"):
        key = hmac.digest(key, part.encode(), "sha256")
    return hmac.digest(key, ("AWS4-HMAC-SHA256\n%s\n%s\n%s" % (date, scope, text)).encode(), "sha256").hex()


def wrong(method, path, headers, body):
    """What is wrong with a request's signature, or None, and whose it is."""
    said = headers.get("authorization", "")
    if not said.startswith("AWS4-HMAC-SHA256 "):
        return "it is not signed", None
    parts = dict(part.strip().split("=", 1) for part in said.split(" ", 1)[1].split(","))
    who, scope = parts["Credential"].split("/", 1)
    if who not in CREDENTIALS:
        return "nobody's", who
    secret, token = CREDENTIALS[who]
    names = parts["SignedHeaders"].split(";")
    if headers.get("x-amz-security-token") != token or not {"host", "x-amz-date", "x-amz-security-token"} <= set(names):
        return "its token", who
    if not scope.endswith("/" + SCOPE + "/aws4_request"):
        return "its scope, " + scope, who
    where = urllib.parse.urlsplit(path)
    lines = "".join("%s:%s\n" % (name, " ".join(headers[name].split())) for name in sorted(names))
    canonical = "\n".join([method, where.path, where.query, lines, ";".join(names), hashlib.sha256(body).hexdigest()])
    expected = signature(secret, headers["x-amz-date"], scope, hashlib.sha256(canonical.encode()).hexdigest())
    return (None if expected == parts["Signature"] else "its signature"), who


class Gate(http.server.BaseHTTPRequestHandler):
    """Checks, then hands on to the fake provider."""
    asked, refused, lasts, behind = [], [], {}, None

    def answer(self, status, kind, data):
        self.send_response(status)
        self.send_header("content-type", kind)
        self.send_header("content-length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def serve(self):
        body = self.rfile.read(int(self.headers.get("content-length") or 0))
        fault, who = wrong(self.command, self.path, {name.lower(): value for name, value in self.headers.items()}, body)
        Gate.asked.append(who)
        if fault is None and Gate.asked.count(who) > Gate.lasts.get(who, 1000):
            fault = "ended"
        if fault:
            Gate.refused.append(fault)
            message = "The security token included in the request is invalid: %s, %s" % (fault, self.headers.get("x-amz-security-token"))
            return self.answer(403, "application/json", json.dumps({"error": {"message": message}}).encode())
        request = urllib.request.Request(Gate.behind + self.path, body if self.command == "POST" else None, method=self.command,
                                         headers={"authorization": "Bearer " + batch.KEY, "content-type": "application/json"})
        try:
            with urllib.request.build_opener(urllib.request.ProxyHandler({})).open(request) as got:
                self.answer(got.status, got.headers.get_content_type(), got.read())
        except urllib.error.HTTPError as got:
            self.answer(got.code, "application/json", got.read())

    do_GET = do_POST = serve

    def log_message(self, *_):
        pass


def entry(place, text):
    with open(place.work + "/models.yaml", "w") as out:
        out.write("models:\n  test:\n    provider: openai\n    url: %s/v1\n    key_as: aws4/%s\n    %s\n    prices: {prompt: 10, completion: 10}\n"
                  % (place.front, SCOPE, text))


def searched(place, store):
    done = place.run(store)
    text = done.communicate(timeout=300)[0]
    return done.returncode, text


def secrets(place):
    """Files that hold what no file should; the command that prints credentials has to."""
    held = []
    for folder, _, names in os.walk(place.work):
        for name in names:
            path = os.path.join(folder, name)
            if name != "print" and os.path.isfile(path):
                with open(path, "rb") as file:
                    text = file.read()
                held += [path for pair in CREDENTIALS.values() for part in pair if part.encode() in text]
    return held


def main():
    with batch.tempfile.TemporaryDirectory() as work:
        place = batch.Place(sys.argv[1:4], work)
        place.serve()
        Gate.behind = place.url
        gate = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Gate)
        threading.Thread(target=gate.serve_forever, daemon=True).start()
        place.front = "http://127.0.0.1:%d" % gate.server_port
        first, second = CREDENTIALS

        entry(place, "key: AWS_ACCESS_KEY_ID")
        code, text = searched(place, "none")
        place.check(code != 0 and not Gate.asked, "without a key nothing is asked: %s" % text[-200:])
        place.environment["AWS_ACCESS_KEY_ID"] = first
        code, text = searched(place, "half")
        place.check(code != 0 and "AWS_SECRET_ACCESS_KEY" in text and not Gate.asked, "nor without its secret: %s" % text[-200:])
        place.environment.update({"AWS_SECRET_ACCESS_KEY": CREDENTIALS[first][0], "AWS_SESSION_TOKEN": CREDENTIALS[first][1]})
        code, text = searched(place, "variables")
        place.check(code == 0 and len(Gate.asked) >= 4 and not Gate.refused, "signed by the usual variables: %d requests, %s" %
                    (len(Gate.asked), Gate.refused or text[-200:]))
        place.environment["AWS_SECRET_ACCESS_KEY"] = "another"
        code, text = searched(place, "wrong")
        place.check(code != 0 and "the key in AWS_ACCESS_KEY_ID is refused" in text and Gate.refused[-1] == "its signature" and CREDENTIALS[first][1] not in text, "another secret is refused: %s" % text[-300:])

        for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN"):
            del place.environment[name]
        show = {who: json.dumps({"Version": 1, "AccessKeyId": who, "SecretAccessKey": pair[0], "SessionToken": pair[1]}, indent=4)
                for who, pair in CREDENTIALS.items()}
        with open(work + "/print", "w") as out:  # the first time the one, then the other
            out.write("#!/bin/sh\nif mkdir '%s/once' 2>/dev/null; then cat <<'E'\n%s\nE\nelse cat <<'E'\n%s\nE\nfi\n" % (work, show[first], show[second]))
        os.chmod(work + "/print", 0o755)
        entry(place, "key_command: [%s/print]" % work)
        Gate.asked.clear()
        Gate.refused.clear()
        Gate.lasts[first] = 2
        code, text = searched(place, "command")
        place.check(code == 0 and Gate.asked.count(second) >= 2 and set(Gate.refused) == {"ended"},
                    "credentials of a command, and the next ones when they end: %s, %s" % (Gate.asked, Gate.refused))
        place.check(not secrets(place), "no file holds a secret: %s" % secrets(place))
        place.server.kill()
        sys.exit(place.failed > 0)


main()
