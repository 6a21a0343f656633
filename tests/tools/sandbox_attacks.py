"""What code may try: to get out, to see, to change, to exhaust, to lie. Names in capitals are put in by the test."""

REFUSED = {"denied", "error"}
"""Not allowed, or simply not there."""
STOPPED = {"timeout", "memory", "error"}
ENDED = {"ok", "error", "denied", "memory", "timeout"}
"""Whatever comes of it, as long as the host does not feel it."""

ATTACKS: dict[str, tuple[str, set[str]]] = {
    # Files of the host.
    "read a secret": ("open('SECRET').read()", REFUSED),
    "read the password file": ("open('/etc/passwd').read()", REFUSED),
    "read with pathlib": ("from pathlib import Path\nPath('SECRET').read_text()", REFUSED),
    "read by a descriptor": ("import os\nos.read(os.open('SECRET', os.O_RDONLY), 100)", REFUSED),
    "climb out by dots": ("open('../../../../../..SECRET').read()", REFUSED),
    "link to a secret": ("import os\nos.symlink('SECRET', '/tmp/link')\nopen('/tmp/link').read()", REFUSED),
    "overwrite a file": ("open('SECRET', 'w').write('gone')", REFUSED),
    "delete a file": ("import os\nos.remove('SECRET')", REFUSED),
    "list the folder of a secret": ("import os\nos.listdir('FOLDER')", REFUSED),
    "write into the interpreter": ("import os\nopen(os.__file__, 'a').write('#')", REFUSED),
    "write next to the root": ("open('/evil', 'w').write('x')", REFUSED),
    "read the disk": ("open('/dev/sda', 'rb').read(10)", REFUSED),
    # Environment and processes of the host.
    "read the environment": ("import os\nos.environ['REASONRY_CANARY']", REFUSED),
    "read the environment of process 1": ("open('/proc/1/environ').read()", REFUSED),
    "read the environment of the parent": ("open('/proc/PARENT/environ').read()", REFUSED),
    "read the memory of the parent": ("open('/proc/PARENT/mem', 'rb').read(1)", REFUSED),
    "signal the parent": ("import os\nos.kill(PARENT, 9)", REFUSED),
    "signal everyone": ("import os\nos.kill(-1, 9)", ENDED),
    "trace the parent": (
        "import ctypes\nlibc = ctypes.CDLL(None, use_errno=True)\n"
        "assert libc.ptrace(16, PARENT, 0, 0) == 0, ctypes.get_errno()",
        REFUSED,
    ),
    "limit the parent": (
        "import resource\nresource.prlimit(PARENT, resource.RLIMIT_NOFILE, (3, 3))",
        REFUSED,
    ),
    # Network.
    "connect to the host": ("import socket\nsocket.create_connection(('127.0.0.1', PORT), 1)", REFUSED),
    "ask for a page": (
        "import urllib.request\nurllib.request.urlopen('http://127.0.0.1:PORT').read()",
        REFUSED,
    ),
    "speak to an abstract socket": (
        "import socket\ns = socket.socket(socket.AF_UNIX)\ns.connect(chr(0) + 'ABSTRACT')",
        REFUSED,
    ),
    "listen": ("import socket\ns = socket.socket()\ns.bind(('0.0.0.0', 0))\ns.listen()", REFUSED),
    # Processes.
    "start a shell": ("import os\nos.system('echo out > SECRET')\nopen('SECRET').read()", REFUSED),
    "start a program": ("import subprocess\nsubprocess.run(['/bin/sh', '-c', 'echo out > SECRET'])", REFUSED),
    "fork": ("import os\nos.fork()", REFUSED),
    "fork by the C library": (
        "import ctypes, os\nlibc = ctypes.CDLL(None, use_errno=True)\nchild = libc.fork()\n"
        "if child == 0:\n    os._exit(0)\nassert child > 0",
        REFUSED,
    ),
    "fork for ever": ("import os\nwhile True:\n    os.fork()", REFUSED),
    "leave a daemon": ("import os\nif os.fork() == 0:\n    os.setsid()\n    while True: pass", REFUSED),
    "become root": ("import os\nos.setuid(0)\nassert os.getuid() != 0\nopen('SECRET').read()", REFUSED),
    "make namespaces": (
        "import ctypes\nlibc = ctypes.CDLL(None, use_errno=True)\nassert libc.unshare(0x10000000) == 0",
        REFUSED,
    ),
    "mount": (
        "import ctypes\nassert ctypes.CDLL(None).mount(b'none', b'/tmp', b'tmpfs', 0, 0) == 0",
        REFUSED,
    ),
    # The objects around the code.
    "walk the subclasses": (
        "[c for c in ().__class__.__base__.__subclasses__() if c.__name__ == 'Popen'][0]('id')",
        REFUSED,
    ),
    "reach the caller's frame": (
        "import sys\nsys._getframe(1).f_back.f_back.f_back.f_globals['SECRET']",
        REFUSED,
    ),
    "evaluate its way out": (
        "eval(\"__import__('os').system('echo out > SECRET')\")\nopen('SECRET').read()",
        REFUSED,
    ),
    # Time.
    "loop for ever": ("while True: pass", {"timeout"}),
    "sleep for ever": ("import time\ntime.sleep(1000)", {"timeout"}),
    "hang inside one call": ("import re\nre.match('(a+)+$', 'a' * 64 + '!')\nwhile True: pass", {"timeout"}),
    "one enormous power": ("x = 10 ** 10 ** 9\nlen(str(x))", STOPPED),
    "sort without end": ("sorted(range(10 ** 12))", STOPPED),
    # Memory.
    "one enormous text": ("x = 'a' * 10 ** 11", STOPPED),
    "double a list": ("x = [0]\nwhile True: x = x + x", STOPPED),
    "hoard small things": ("x = []\nwhile True: x.append(str(len(x)) * 100)", STOPPED),
    "recurse for ever": ("def f(n): return f(n + 1)\nf(0)", STOPPED),
    "nest a value deeply": ("x = []\nfor _ in range(200000): x = [x]\nx", {"error"}),
    "return an enormous value": ("'x' * 20_000_000", {"ok", "error", "memory"}),
    "a value that holds itself": ("x = []\nx.append(x)\nx", ENDED),
    # Output.
    "flood the output": ("while True: print('x' * 10000)", {"error", "timeout"}),
    "flood it by crumbs": ("while True: print('x')", {"error", "timeout"}),
    "fill the disk": (
        "for n in range(1000):\n    with open(f'/tmp/{n}', 'wb') as f: f.write(b'x' * 2 ** 20)",
        REFUSED,
    ),
    "print what a terminal obeys": ("print(chr(27) + ']0;owned' + chr(7))", {"ok"}),
    # Crashes.
    "crash": ("import ctypes\nctypes.string_at(0)", {"error", "denied"}),
    "abort": ("import os\nos.abort()", REFUSED),
    "exit in the middle": ("import os\nos._exit(0)", REFUSED),
    "kill itself": ("import os, signal\nos.kill(os.getpid(), signal.SIGKILL)", {"error", "denied"}),
}
"""Name: code, and the statuses that are right."""
