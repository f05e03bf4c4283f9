"""One of several copies of a program that works only while its node leads.

Beside each copy runs "tenure run --role billing --listen :PORT". The copy asks it
before each piece of work, which must be shorter than the rest of the trust window.

    python3 billing.py http://127.0.0.1:PORT/leader
"""

import json
import sys
import time
import urllib.error
import urllib.request

PIECE = 1.0  # seconds that a piece of work may take


def leadership(url):
    """Returns the node's answer while it leads, else None."""
    try:
        with urllib.request.urlopen(url, timeout=1) as response:
            return json.load(response)
    except (urllib.error.URLError, OSError, ValueError):
        return None  # 503: it does not lead; anything else: it cannot be asked


def main(url):
    while True:
        asked = time.monotonic()
        answer = leadership(url)
        if answer and answer["leading"]:
            left = answer["remaining_seconds"] - (time.monotonic() - asked)
            if left > PIECE:
                # Send the term with each write, so that the receiver can refuse an older one.
                print("invoice written in term", answer["term"], flush=True)
        time.sleep(0.2)


if __name__ == "__main__":
    try:
        main(sys.argv[1])
    except KeyboardInterrupt:
        pass
