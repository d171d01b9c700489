"""A pretended Debian machine in a folder, on which the blocks of docs/deployment.md run."""

import http.client
import json
import os
import re
import select
import shutil
import signal
import socket
import ssl
import subprocess
import sys
import time
from contextlib import closing
from datetime import UTC, datetime, timedelta
from functools import partial
from ipaddress import IPv4Address
from pathlib import Path

import typer.main
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from sfumato.batches import JSON_MEDIA_TYPE, to_json
from sfumato.cli.main import app
from support.deployment_page import read_blocks, write_files
from support.http_client import Response, upload_path
from support.paths import ROOT
from support.postgres_server import find_programs
from support.stand_ins import move_paths, stop

SERVER_NAME = "reports.example.org"
_SECONDS = 120.0
_FIRST_PORT = 12_000
_PORTS = 20_000
_port_numbers = iter(range(_PORTS))

# What Debian's package and nginx's image have, as far as our files depend on it.
_NGINX_CONF = """{user}
worker_processes 1;
pid {root}/run/nginx.pid;
error_log {root}/var/log/nginx/error.log;
events {{
	worker_connections 768;
}}
http {{
	access_log {root}/var/log/nginx/access.log;
	client_body_temp_path {root}/var/cache/nginx/body;
	proxy_temp_path {root}/var/cache/nginx/proxy;
	fastcgi_temp_path {root}/var/cache/nginx/fastcgi;
	uwsgi_temp_path {root}/var/cache/nginx/uwsgi;
	scgi_temp_path {root}/var/cache/nginx/scgi;
	include {root}/etc/nginx/moved/*.conf;
}}
"""

_SHELL_STAND_INS = {
    "apt-get": ":",
    "useradd": 'while [ "$1" != --home-dir ]; do shift; done; mkdir -p "$2"',
    # Nobody but the user who runs the tests owns anything.
    "runuser": 'while [ "$1" != -- ]; do shift; done; shift; exec "$@"',
    "install": """
for word do
  shift
  case "$word" in --owner=*|--group=*) ;; *) set -- "$@" "$word" ;; esac
done
exec {install} "$@"
""",
    "certbot": """
folder=$SFUMATO_MACHINE/etc/letsencrypt/live/reports.example.org
mkdir -p "$folder"
cp "$SFUMATO_MACHINE"/certificate/* "$folder"
""",
    "python3": """
[ "$1 $2" = "-m venv" ] || exec {python} "$@"
mkdir -p "$3/bin"
cp "$SFUMATO_MACHINE"/programs/* "$3/bin"
""",
    "systemctl": 'exec {python} -m support.stand_ins systemctl "$@"',
    "docker": 'exec {python} -m support.stand_ins docker "$@"',
    "nginx": 'exec {python} -m support.stand_ins nginx "$@"',
}

_PROGRAMS = {
    "pip": 'test "$1" = install && test -f constraints.txt',
    "python": 'exec {python} "$@"',
    # A first start by hand has no port in its command; tests at the same time must not share one.
    "sfumato": """
case "$*" in
  *--port*) ;;
  serve*) set -- "$@" --port 0 ;;
esac
exec {python} -m sfumato "$@"
""",
}


def find_nginx():
    """Return nginx, which a user's path may lack, or None."""
    return shutil.which("nginx") or shutil.which("nginx", path="/usr/sbin:/usr/local/sbin")


def missing_programs():
    """Return the programs that the page needs and that this machine does not have."""
    missing = [name for name in ("bash", "curl", "sqlite3") if shutil.which(name) is None]
    return missing if find_nginx() else [*missing, "nginx"]


def free_port():
    """Return a port that no program uses, outside the range that systems choose from.

    Nobody holds it until the service starts. Processes start at different ports, so that tests at
    the same time do not take the same one.
    """
    for number in _port_numbers:
        port = _FIRST_PORT + (os.getpid() * 97 + number) % _PORTS
        try:
            socket.create_server(("127.0.0.1", port)).close()
        except OSError:
            continue
        return port
    raise RuntimeError("all ports are in use")


def serve_has(option):
    """Whether `sfumato serve` has an option."""
    commands = typer.main.get_command(app).commands
    return any(option in parameter.opts for parameter in commands["serve"].params)


class PageMachine:
    """Runs blocks of the page one after another, as if they were pasted into one shell."""

    def __init__(self, root, *, database=None):
        self.root = Path(root)
        self.source = self.root / "source"
        self.database = database
        self.ports = {name: free_port() for name in ("80", "443", "8750")}
        self.ran = []
        self._blocks = read_blocks()
        self._copy_source()
        self._write_programs()
        self._make_certificate()
        self.write_nginx_folder(self.root)
        for folder in ("var/lib", "var/www/html", "etc/systemd/system", "etc/default"):
            (self.root / folder).mkdir(parents=True)
        self.path("/etc/default/prometheus").write_text('# As in Debian.\nARGS=""\n')
        settings = {
            "ports": self.ports,
            "database": database,
            "has_ipv6": _has_ipv6(),
            "nginx": find_nginx(),
        }
        (self.root / "machine.json").write_text(json.dumps(settings))
        self._environment = self._make_environment()
        self._state = self.root / "shell-state"
        self._state.write_text(f"cd {self.source}\numask 022\n")

    # --- what the machine has -------------------------------------------------------------------

    def _copy_source(self):
        shutil.copytree(ROOT / "deploy", self.source / "deploy")
        shutil.copy(ROOT / "constraints.txt", self.source)
        write_files(self.source)

    def _write_programs(self):
        names = {"python": sys.executable, "install": shutil.which("install")}
        for folder, programs in (("stand-ins", _SHELL_STAND_INS), ("programs", _PROGRAMS)):
            for name, text in programs.items():
                file = self.root / folder / name
                file.parent.mkdir(parents=True, exist_ok=True)
                body = text
                for key, value in names.items():
                    body = body.replace(f"{{{key}}}", str(value))
                file.write_text(f"#!/bin/sh\nset -e\n{body}\n")
                file.chmod(0o755)

    def write_nginx_folder(self, root):
        """Write what Debian's package, or nginx's image, has installed."""
        for folder in ("etc/nginx/conf.d", "var/log/nginx", "var/cache/nginx"):
            (root / folder).mkdir(parents=True, exist_ok=True)
        (root / "run").mkdir(exist_ok=True)
        user = "user root;" if os.geteuid() == 0 else ""
        (root / "etc" / "nginx" / "nginx.conf").write_text(_NGINX_CONF.format(root=root, user=user))

    def _make_certificate(self):
        folder = self.root / "certificate"
        folder.mkdir()
        key = ec.generate_private_key(ec.SECP256R1())
        subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, SERVER_NAME)])
        names = [x509.DNSName(SERVER_NAME), x509.IPAddress(IPv4Address("127.0.0.1"))]
        now = datetime.now(UTC)
        certificate = (
            x509.CertificateBuilder()
            .subject_name(subject)
            .issuer_name(subject)
            .public_key(key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - timedelta(days=1))
            .not_valid_after(now + timedelta(days=1))
            .add_extension(x509.SubjectAlternativeName(names), critical=False)
            .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
            .sign(key, hashes.SHA256())
        )
        self.certificate = folder / "fullchain.pem"
        self.certificate.write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
        (folder / "privkey.pem").write_bytes(
            key.private_bytes(
                serialization.Encoding.PEM,
                serialization.PrivateFormat.PKCS8,
                serialization.NoEncryption(),
            )
        )

    def _make_environment(self):
        connections = [
            (f"{SERVER_NAME}:443", "443"),
            (f"{SERVER_NAME}:80", "80"),
            ("127.0.0.1:8750", "8750"),
        ]
        lines = [f'cacert = "{self.certificate}"']
        for address, port in connections:
            lines.append(f'connect-to = "{address}:127.0.0.1:{self.ports[port]}"')
        (self.root / ".curlrc").write_text("\n".join(lines) + "\n")
        programs = find_programs()
        modules = [str(ROOT / "tests"), str(ROOT / "src"), os.environ.get("PYTHONPATH", "")]
        path = [self.root / "stand-ins", *([programs] if programs else []), os.environ["PATH"]]
        return {
            **os.environ,
            "PATH": os.pathsep.join(map(str, path)),
            "PYTHONPATH": os.pathsep.join(filter(None, modules)),
            "SFUMATO_MACHINE": str(self.root),
            "CURL_HOME": str(self.root),
            "SSL_CERT_FILE": str(self.certificate),
            "no_proxy": "*",
        }

    def put_certificate(self):
        """Put the certificate where certbot would."""
        folder = self.path("/etc/letsencrypt/live") / SERVER_NAME
        shutil.copytree(self.root / "certificate", folder)

    def enter(self, folder):
        """Go to a folder of the source tree, as the page says in words."""
        self._state.write_text(f"cd {self.source / folder}\numask 022\n")

    # --- running blocks ---------------------------------------------------------------------------

    def follow(self, heading, *, text=None, **variables):
        """Run the block under a heading, which must succeed, and return what it prints."""
        with self._start(heading, variables) as process:
            out, err = process.communicate(text, timeout=_SECONDS)
        assert process.returncode == 0, f"{heading}: {out}\n{err}\n{self.logs()}"
        return out

    def follow_until(self, heading, pattern):
        """Run the block under a heading, press Ctrl-C after a message, and return all messages."""
        with self._start(heading, {}) as process:
            said = ""
            deadline = time.monotonic() + _SECONDS
            while not re.search(pattern, said):
                ready, _, _ = select.select([process.stderr], [], [], deadline - time.monotonic())
                line = process.stderr.readline() if ready else ""
                assert line, f"{heading} ended, or said nothing more: {said}"
                said += line
            os.killpg(process.pid, signal.SIGINT)
            _, rest = process.communicate(timeout=_SECONDS)
        assert process.returncode == 0, f"{heading}: {said}{rest}"
        return said + rest

    def _start(self, heading, variables):
        self.ran.append(heading)
        state = self._state
        script = "\n".join(
            [
                f". {state}",
                "set -euo pipefail",
                self._move(self._blocks[heading]),
                f'printf "cd %q\\numask %s\\n" "$PWD" "$(umask)" > {state}',
            ]
        )
        return subprocess.Popen(
            ["bash", "-c", script],  # noqa: S607
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            bufsize=1,
            env={**self._environment, **variables},
            start_new_session=True,
        )

    def _move(self, text):
        """Return commands with paths in the folder. sfumato cannot be told another port as curl."""
        address = f"https://127.0.0.1:{self.ports['443']}"
        text = text.replace(f"--to https://{SERVER_NAME}", f"--to {address}")
        return move_paths(text, self.root, self.root)

    def path(self, path):
        """Return the place in the folder of a path on the machine."""
        return self.root / path.removeprefix("/")

    def request(self, path, *, method="GET", body=None, token=None, port="443", **headers):
        """Send a request as others would: through nginx, with TLS. Port 8750 is for this machine.

        Return the response as `Response` has it.
        """
        connection_type = partial(http.client.HTTPSConnection, context=self._tls_context())
        if port != "443":
            connection_type = http.client.HTTPConnection
        headers = {name.replace("_", "-"): value for name, value in headers.items()}
        if token is not None:
            headers["Authorization"] = f"Bearer {token}"
        with closing(connection_type("127.0.0.1", self.ports[port], timeout=60)) as connection:
            connection.request(method, path, body, headers)
            answer = connection.getresponse()
            names = {name.lower(): value for name, value in answer.getheaders()}
            return Response(answer.status, names, answer.read())

    def upload(self, batch, **options):
        """Upload a batch as JSON."""
        return self.request(
            upload_path(batch.fingerprint),
            method="POST",
            body=to_json(batch),
            content_type=JSON_MEDIA_TYPE,
            **options,
        )

    def wait_until_replaced(self, old, new):
        """Wait until all processes of the aggregator know the new token.

        Each reads it by itself, and each connection may go to any of them.
        """
        deadline = time.monotonic() + _SECONDS
        while not all(self._knows(old, new) for _ in range(30)):
            assert time.monotonic() < deadline, self.logs()
            time.sleep(0.1)

    def _knows(self, old, new):
        statuses = [self.request("/metrics", token=t, port="8750").status for t in (old, new)]
        return statuses == [401, 200]

    def _tls_context(self):
        return ssl.create_default_context(cafile=self.certificate)

    def logs(self):
        """Return what the services have printed."""
        files = [*self.root.glob("*.log"), *self.root.glob("**/var/log/nginx/*error.log")]
        return "\n".join(f"{file.name}: {file.read_text()}" for file in files)

    def stop_all(self):
        """Stop all processes that the blocks have started."""
        for file in self.root.glob("*.pid"):
            stop(self.root, file.stem)
        for file in self.root.glob("**/run/nginx.pid"):
            if text := file.read_text().strip():
                os.kill(int(text), signal.SIGTERM)


def _has_ipv6():
    try:
        socket.create_server(("::1", 0), family=socket.AF_INET6).close()
    except OSError:
        return False
    return True
