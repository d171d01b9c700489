"""Stand-ins for programs that need root or a container engine: systemctl, docker and nginx.

`python -m support.stand_ins NAME ARGUMENTS` does as a process what the program NAME would do, in
the folder that `SFUMATO_MACHINE` names. Paths of the machine become paths in that folder, and
ports become free ones; everything else in units and in the compose file is used as it is.
"""

import json
import os
import re
import shlex
import signal
import subprocess
import sys
import time
from pathlib import Path

import yaml

from support.waiting import is_running

_SYSTEM_PATH = r"(?<![\w.-])/(?=(?:etc|opt|run|var)/)"
_SECONDS = 60.0


class Machine:
    """What the stand-ins have to know, as the test wrote it."""

    def __init__(self):
        self.root = Path(os.environ["SFUMATO_MACHINE"])
        settings = json.loads((self.root / "machine.json").read_text())
        self.ports = settings["ports"]
        self.database = settings["database"]
        self.has_ipv6 = settings["has_ipv6"]
        self.nginx = settings["nginx"]

    def serve(self, command):
        """Return the command of an aggregator, on the port that stands for 8750."""
        if "serve" not in command or "--port" in command:
            return command
        return [*command, "--port", str(self.ports["8750"])]


def move_paths(text, folder, root):
    """Return a text with the paths of a system in a folder instead, but for those in ``root``."""
    paths = re.compile(rf"{re.escape(str(root))}|{_SYSTEM_PATH}")
    return paths.sub(lambda match: f"{folder}/" if match[0] == "/" else match[0], text)


# --- processes ------------------------------------------------------------------------------------


def start(folder, name, command, environment=None, cwd=None):
    """Start a process that outlives this one. Remember it under a name."""
    with (folder / f"{name}.log").open("ab") as log:
        process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,
            env={**os.environ, **(environment or {})},
            cwd=cwd,
        )
    (folder / f"{name}.pid").write_text(str(process.pid))


def stop(folder, name, signal_number=signal.SIGTERM):
    """Stop a process that `start` started, and wait for its end."""
    file = folder / f"{name}.pid"
    if file.exists():
        process = int(file.read_text())
        if is_running(process):
            os.kill(process, signal_number)
        wait_until(lambda: not is_running(process), f"{name} did not stop")
        file.unlink()


def wait_until(condition, message):
    deadline = time.monotonic() + _SECONDS
    while not condition():
        if time.monotonic() > deadline:
            sys.exit(message)
        time.sleep(0.05)


# --- systemd --------------------------------------------------------------------------------------


def systemctl(machine, action, *arguments):
    if action == "daemon-reload":
        return
    for name in arguments:
        if name.startswith("--") or name.endswith(".timer"):
            continue
        if name == "nginx":
            reload_nginx(machine)
            continue
        if name == "prometheus":  # the tests scrape by themselves
            continue
        unit = read_unit(machine.root / "etc" / "systemd" / "system" / name)
        command = shlex.split(move_paths(unit["ExecStart"], machine.root, machine.root))
        for folder in unit.get("StateDirectory", "").split():
            (machine.root / "var" / "lib" / folder).mkdir(exist_ok=True)
        if action == "stop":
            stop(machine.root, name)
        elif unit.get("Type") == "oneshot":
            subprocess.run(command, check=True, cwd="/")
        else:
            start(machine.root, name, machine.serve(command), cwd="/")


def read_unit(file):
    """Return the settings of a unit. Settings that may be repeated have their last value."""
    settings = {}
    for line in file.read_text(encoding="utf-8").splitlines():
        key, separator, value = line.partition("=")
        if separator and not line.startswith("#"):
            settings[key] = value
    return settings


def reload_nginx(machine):
    file = machine.root / "run" / "nginx.pid"
    if file.exists() and file.read_text():  # nginx -t leaves an empty one
        nginx(machine, "-s", "reload")
    else:
        nginx(machine)


# --- nginx ----------------------------------------------------------------------------------------


def nginx(machine, *arguments):
    """Run nginx on the configuration in the folder, on other ports."""
    root = Path(os.environ.get("SFUMATO_CONTAINER", machine.root))
    written = root / "etc" / "nginx" / "moved"
    written.mkdir(exist_ok=True)
    for file in (root / "etc" / "nginx" / "conf.d").glob("*.conf"):
        (written / file.name).write_text(move_configuration(machine, root, file.read_text()))
    main = root / "etc" / "nginx" / "nginx.conf"
    command = [machine.nginx, "-p", str(root), "-c", str(main), *arguments]
    if "daemon off;" in " ".join(arguments):
        os.execv(command[0], command)  # noqa: S606
    subprocess.run(command, check=True)


def move_configuration(machine, root, text):
    if not machine.has_ipv6:
        text = re.sub(r"^ *listen \[::\].*\n", "", text, flags=re.MULTILINE)
    text = re.sub(r"listen \[::\]:(\d+)", lambda m: f"listen [::1]:{machine.ports[m[1]]}", text)
    text = re.sub(r"listen (\d+)", lambda m: f"listen 127.0.0.1:{machine.ports[m[1]]}", text)
    text = text.replace("127.0.0.1:8750", f"127.0.0.1:{machine.ports['8750']}")
    return move_paths(text, root, machine.root)


# --- containers -----------------------------------------------------------------------------------


class Composition:
    """The services of compose.yaml, each of them a process with a folder instead of an image."""

    def __init__(self, machine, file):
        self._machine = machine
        self._folder = file.parent
        text = file.read_text(encoding="utf-8")
        values = dict(line.split("=", 1) for line in (self._folder / ".env").read_text().split())
        text = re.sub(r"\$\{(\w+):-([^}]*)\}", lambda m: values.get(m[1], m[2]), text)
        self._document = yaml.safe_load(text.replace("$$", "$"))
        self._services = self._document["services"]

    def up(self):
        """Start the services in the order of their dependencies, each once the last is healthy."""
        for name in self._in_order():
            new_image = self._machine.root / f"{name}.new"
            if new_image.exists():
                new_image.unlink()
                self.stop(name)
            if name != "database" and not self._is_up(name):
                command, environment = self._process(name)
                start(self._machine.root, name, command, environment)
            self._wait(name)

    def replace(self, name):
        """Let the next `up` start a service again, as if its image were new."""
        (self._machine.root / f"{name}.new").touch()

    def stop(self, name):
        stop(self._machine.root, name)

    def run(self, name, arguments, volumes=()):
        """Run a service's command with further arguments in the foreground."""
        command, environment = self._process(name)
        mounts = dict(volume.removesuffix(":ro").split(":") for volume in volumes)
        inverse = {inside: outside for outside, inside in mounts.items()}
        arguments = [inverse.get(word, word) for word in arguments]
        position = command.index("--port")
        _replace_process([*command[:position], *arguments, *command[position:]], environment)

    def execute(self, name, command):
        """Run a command in a service's container, in the foreground."""
        _, environment = self._process(name)
        command = [self._move(name, word) for word in command]
        _replace_process(self._machine.serve(command), environment)

    def _in_order(self):
        waiting = dict(self._services)
        while waiting:
            name = next(
                name
                for name, service in waiting.items()
                if not waiting.keys() & service.get("depends_on", {}).keys()
            )
            yield name
            del waiting[name]

    def _is_up(self, name):
        file = self._machine.root / f"{name}.pid"
        return file.exists() and is_running(int(file.read_text()))

    def _wait(self, name):
        test = self._services[name]["healthcheck"]["test"]
        assert test[0] == "CMD"
        command = [self._move_ports(self._move(name, word)) for word in test[1:]]
        if name == "database":
            command += [f"--port={self._machine.database['port']}"]

        def is_healthy():
            return subprocess.run(command, stdout=subprocess.DEVNULL).returncode == 0

        wait_until(is_healthy, f"{name} is not healthy: {shlex.join(command)}")

    def _process(self, name):
        """Return the command and the environment of a service."""
        service = self._services[name]
        root = self._mount(name)
        environment = {
            key: self._move(name, value) for key, value in service.get("environment", {}).items()
        }
        environment["SFUMATO_CONTAINER"] = str(root)
        if name == "database":
            # In the container, clients find the server by its socket, without a password.
            environment["PGHOST"] = self._machine.database["socket"]
            environment["PGPORT"] = str(self._machine.database["port"])
        command = [*service.get("entrypoint", []), *service.get("command", [])]
        moved = [self._move(name, word) for word in command]
        return self._machine.serve(moved), environment

    def _mount(self, name):
        """Put secrets and volumes where the service expects them."""
        service = self._services[name]
        root = self._machine.root / "containers" / name
        mounts = {}
        for secret in service.get("secrets", []):
            if isinstance(secret, str):
                secret = {"source": secret, "target": f"/run/secrets/{secret}"}
            mounts[secret["target"]] = self._document["secrets"][secret["source"]]["file"]
        for volume in service.get("volumes", []):
            source, target, *_ = volume.split(":")
            if source not in self._document["volumes"]:
                mounts[target] = source
        for target, source in mounts.items():
            link = root / target.removeprefix("/")
            link.parent.mkdir(parents=True, exist_ok=True)
            link.unlink(missing_ok=True)
            link.symlink_to((self._folder / source).resolve(strict=True))
        for folder in service.get("tmpfs", []):
            (root / folder.removeprefix("/")).mkdir(parents=True, exist_ok=True)
        return root

    def _move(self, name, word):
        """Return a word with addresses and paths of the container as those of this machine."""
        for other, service in self._services.items():
            networks = service["networks"]
            addresses = networks.values() if isinstance(networks, dict) else ()
            for address in addresses:
                if address is not None:
                    port = self._machine.ports["8750"] if other == "aggregator" else ""
                    word = word.replace(f"{address['ipv4_address']}:8750", f"127.0.0.1:{port}")
                    word = word.replace(address["ipv4_address"], "127.0.0.1")
        word = word.replace("0.0.0.0", "127.0.0.1")  # noqa: S104
        word = word.replace("@database/", f"@127.0.0.1:{self._machine.database['port']}/")
        # The aggregator's program is in the image; the folder has no copy of it.
        root = self._machine.root
        word = re.sub(r"(?<!\w)/opt/", f"{root}/opt/", word)
        return move_paths(word, root / "containers" / name, root)

    def _move_ports(self, word):
        word = word.replace("127.0.0.1:8750", f"127.0.0.1:{self._machine.ports['8750']}")
        return word.replace(
            "https://127.0.0.1/", f"https://127.0.0.1:{self._machine.ports['443']}/"
        )


def _replace_process(command, environment):
    os.environ.update(environment)
    os.execvp(command[0], command)  # noqa: S606


def docker(machine, compose, action, *arguments):
    assert compose == "compose"
    composition = Composition(machine, Path("compose.yaml").resolve())
    words = list(arguments)
    if action == "build":
        assert words[-1] == "aggregator"
        composition.replace("aggregator")
    elif action == "up":
        assert words == ["--detach", "--wait"]
        composition.up()
    elif action == "stop":
        composition.stop(*words)
    elif action == "run":
        assert words[:2] == ["--rm", "--volume"]
        composition.run(words[3], words[4:], volumes=[words[2]])
    elif action == "exec":
        words = words[1:] if words[0] == "-T" else words
        composition.execute(words[0], words[1:])
    else:
        sys.exit(f"docker compose {action} has no stand-in")


def main(name, *arguments):
    {"systemctl": systemctl, "docker": docker, "nginx": nginx}[name](Machine(), *arguments)


if __name__ == "__main__":
    main(*sys.argv[1:])
