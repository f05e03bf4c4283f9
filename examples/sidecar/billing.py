"""One of several copies of a program that works only while its node leads.

Beside each copy runs "tenure run --role billing --listen :PORT --token-file FILE
--settle 1.2s". The copy holds a guard of the node during each piece of work, so that no
other node leads before the piece has ended. On every node, --settle must be at least
200 ms longer than AT_MOST.

    python3 billing.py http://127.0.0.1:PORT FILE [AT_MOST]
"""

import json
import sys
import time
import urllib.error
import urllib.request

AT_MOST = 1.0  # seconds that a piece of work may take, from the request for the guard


def guarded(url, token_file, at_most, work):
    """Calls work with the term and a deadline while the node keeps the role for it."""
    with open(token_file) as file:
        token = file.read().strip()
    request = urllib.request.Request(
        url + "/v1/roles/billing/guards",
        data=json.dumps({"at_most_seconds": at_most}).encode(),
        headers={"Authorization": "Bearer " + token, "Content-Type": "application/json"},
    )
    deadline = time.monotonic() + at_most  # counted from before the request
    try:
        with urllib.request.urlopen(request, timeout=at_most) as events:
            for line in events:
                if line.startswith(b"data: "):  # of the first event: the guard is held
                    work(json.loads(line[6:])["term"], deadline)
                    return  # which closes the request
    except urllib.error.HTTPError as refusal:
        if refusal.code not in (409, 503):  # it does not lead, or has no session
            log("refused:", refusal.read().decode().strip())
    except (urllib.error.URLError, OSError, ValueError):
        pass  # the node cannot be reached


def write_invoice(term, deadline):
    """Works in steps, so that it can stop at the deadline."""
    step = AT_MOST / 10
    log("invoice begun in term", term)
    for _ in range(5):
        if time.monotonic() + step > deadline:
            log("invoice given up in term", term)
            return
        time.sleep(step)
    # Send the term with each write, so that the receiver can refuse an older one.
    log("invoice written in term", term)


def log(*text):
    print(f"{time.time():.6f}", *text, flush=True)


def main(url, token_file):
    while True:
        guarded(url, token_file, AT_MOST, write_invoice)
        time.sleep(AT_MOST / 5)


if __name__ == "__main__":
    if len(sys.argv) > 3:
        AT_MOST = float(sys.argv[3])
    try:
        main(*sys.argv[1:3])
    except KeyboardInterrupt:
        pass
