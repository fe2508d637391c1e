"""A program that does the work of `external` steps. Only the standard library; see docs/external.md.

WAYPOST_URL=https://waypost.example WAYPOST_KEY=wp_… python external_worker.py labelling
"""

import json
import os
import sys
import threading
import time
import urllib.error
import urllib.request

URL, KEY = os.environ["WAYPOST_URL"], os.environ["WAYPOST_KEY"]


def call(verb, **body):
    """Status and answer of the API. A server that is away is asked again: every verb may be repeated."""
    headers = {"Authorization": f"Bearer {KEY}", "Content-Type": "application/json"}
    request = urllib.request.Request(f"{URL}/api/v1/external/{verb}", json.dumps(body).encode(), headers)
    while True:
        try:
            with urllib.request.urlopen(request, timeout=60) as response:
                return response.status, json.loads(response.read() or "null")
        except urllib.error.HTTPError as problem:
            return problem.code, json.load(problem)
        except OSError as error:
            print(f"{URL}: {error}; asked again in 5 s", file=sys.stderr, flush=True)
            time.sleep(5)


def keep(work, done):
    """Renew the reservation until the work is done, or until it is lost; then its result is not used."""
    while not done.wait(work["lease_s"] / 3) and call("renew", token=work["token"])[0] == 200:
        pass


def do(work):
    """The work itself. Pass `idempotency_key` on: the same one may come again after a crash of yours."""
    return {"labels": len(work["input"]["hosts"]), "key": work["idempotency_key"]}


def work_on(queues, once):
    while True:
        status, work = call("reserve", queues=queues, worker=f"pid {os.getpid()}", wait=20)
        if status == 200:
            done = threading.Event()
            threading.Thread(target=keep, args=(work, done), daemon=True).start()
            try:
                answer = call("finish", token=work["token"], output=do(work))
            except Exception as error:
                answer = call("fail", token=work["token"], message=str(error))
            done.set()
            print(json.dumps(answer[1]), flush=True)
        elif status not in (204, 429, 503):
            sys.exit(json.dumps(work))
        if once:
            return
        time.sleep(0 if work else 1)  # also when the server lets nobody wait at the moment


if __name__ == "__main__":
    work_on([word for word in sys.argv[1:] if word != "--once"], "--once" in sys.argv)
