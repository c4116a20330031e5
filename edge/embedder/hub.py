"""`python -m edge.embedder.hub REPOSITORY FOLDER FILE=TARGET…`: fetch files from Hugging Face, and nothing else.

A program of its own so that `edge.embedder.sources` can end it: a hub that cannot be reached must cost seconds.
Exit status 1, and the reason as the last line, when a file cannot be had.
"""

from __future__ import annotations

import shutil
import socket
import sys
import urllib.parse
import urllib.request
from pathlib import Path


def reach(endpoint: str) -> None:
    """One connection, without the client's retries: OSError, at once, where there is no network at all."""
    url = urllib.parse.urlsplit(endpoint)
    host = url.hostname or ""
    if url.scheme in urllib.request.getproxies() and not urllib.request.proxy_bypass(host):
        return
    port = url.port or (80 if url.scheme == "http" else 443)
    try:
        socket.create_connection((host, port), timeout=4).close()
    except OSError as error:
        raise ConnectionError(f"{host} cannot be reached ({error.strerror or error})") from error


def main(repository: str, folder: str, pairs: list[str]) -> int:
    # Late, so that a look at this file costs nothing: half a second of imports.
    from huggingface_hub import constants, hf_hub_download, try_to_load_from_cache

    asked = False
    for pair in pairs:
        name, _, target = pair.partition("=")
        try:
            cached = try_to_load_from_cache(repository, name)
            if isinstance(cached, str):
                shutil.copyfile(cached, target)
            else:
                if not (asked or constants.HF_HUB_OFFLINE):
                    reach(constants.ENDPOINT)
                    asked = True
                # Into a folder of ours: the box keeps one copy of the weights, not a second in the hub's cache.
                Path(hf_hub_download(repository, name, local_dir=folder)).replace(target)
        except Exception as error:  # noqa: BLE001  # whatever the hub's client raises, the parent needs one line of it
            reason = " ".join(str(error).split())
            print(f"{type(error).__name__}: {reason}", file=sys.stderr)
            return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2], sys.argv[3:]))
