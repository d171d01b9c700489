"""A client for audits that answers with the survey's own mechanism.

Run it as ``python audit_client.py survey.toml``. It reads one symbol per line and writes one report
per line, with fresh randomness.
"""

import sys

import sfumato as sf


def main():
    mechanism = sf.Survey.load(sys.argv[1]).mechanism
    rest = b""
    while chunk := sys.stdin.buffer.read1(2**20):
        *lines, rest = (rest + chunk).split(b"\n")
        if lines:
            reports = mechanism.privatize([int(line) for line in lines])
            sys.stdout.buffer.write(b"".join(b"%d\n" % report for report in reports.tolist()))
            sys.stdout.buffer.flush()


if __name__ == "__main__":
    main()
