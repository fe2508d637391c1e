"""A program that does the work of `external` steps. Only the standard library; see docs/external.md.

WAYPOST_URL=https://waypost.example WAYPOST_KEY=wp_… python external_worker.py labelling
"""

import contextlib
import json
import os
import sys
import threading
import urllib.error
import urllib.request

URL, KEY = os.environ["WAYPOST_URL"], os.environ["WAYPOST_KEY"]


def call(verb, **body):
    """What the API answers: None when there is no work. Raises HTTPError with the problem in its body."""
    headers = {"Authorization": f"Bearer {KEY}", "Content-Type": "application/json"}
    request = urllib.request.Request(f"{URL}/api/v1/external/{verb}", json.dumps(body).encode(), headers)
    with urllib.request.urlopen(request, timeout=60) as response:
        return json.load(response) if response.status == 200 else None


def keep(work, done):
    """Renew the reservation until the work is done, or until it is lost; then its result is not used."""
    with contextlib.suppress(urllib.error.HTTPError):
        while not done.wait(work["lease_s"] / 3):
            call("renew", token=work["token"])


def do(work):
    """The work itself. Pass `idempotency_key` on: the same one may come again after a crash of yours."""
    return {"labels": len(work["input"]["hosts"]), "key": work["idempotency_key"]}


def one_after_the_other(queues, once):
    while (work := call("reserve", queues=queues, worker=f"pid {os.getpid()}", wait=20)) or not once:
        if work is None:
            continue
        done = threading.Event()
        threading.Thread(target=keep, args=(work, done), daemon=True).start()
        try:
            answer = call("finish", token=work["token"], output=do(work))
        except urllib.error.HTTPError as problem:
            answer = json.load(problem)
        except Exception as error:
            answer = call("fail", token=work["token"], message=str(error))
        finally:
            done.set()
        print(json.dumps(answer), flush=True)
        if once:
            return


if __name__ == "__main__":
    one_after_the_other([word for word in sys.argv[1:] if word != "--once"], "--once" in sys.argv)
