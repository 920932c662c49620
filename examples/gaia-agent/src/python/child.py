"""Runs inside the child process. It reads one JSON value a line from its standard input, and writes one a line to its standard output.

A request is {"code": ..} for the session, or {"file": ..} for a file that runs once, with a nonce. The reply has the same nonce, the output,
the value of a last expression, and the error. What the code itself reads and writes are streams of its own.
"""

import ast
import io
import json
import os
import sys
import threading
import traceback

# Descriptors that the program itself inherited are not for the code.
os.closerange(3, 1 << 16)
limits = json.loads(sys.argv[1])
try:
    import resource

    for name, value in [
        ("RLIMIT_AS", limits["memory"]),
        ("RLIMIT_CPU", limits["processor"]),
        ("RLIMIT_FSIZE", limits["file"]),
        ("RLIMIT_CORE", 0),
        ("RLIMIT_NOFILE", 64),
    ]:
        resource.setrlimit(getattr(resource, name), (value, value))
except (ImportError, OSError, ValueError):
    # A confined process has these limits, and may not set them.
    pass

# The requests and replies have descriptors of their own. The code gets an empty input; its standard error leads nowhere, and so does
# what it writes past `sys.stdout`.
requests = os.fdopen(os.dup(0), "r", encoding="utf-8")
replies = os.fdopen(os.dup(1), "w", encoding="utf-8")
empty, end = os.pipe()
os.dup2(empty, 0)
os.dup2(2, 1)
os.close(empty)
os.close(end)


def leave_the_program():
    """A process that the code has forked hears no request and gives no reply."""
    for descriptor in (requests.fileno(), replies.fileno()):
        os.close(descriptor)


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=leave_the_program)
owner = os.getpid()


class Output(io.TextIOBase):
    """Keeps the first part of what is written."""

    def __init__(self):
        self.kept, self.room, self.lost = [], limits["output"], 0

    def writable(self):
        return True

    def write(self, text):
        text = str(text)
        self.kept.append(text[: self.room])
        self.lost += max(len(text) - self.room, 0)
        self.room = max(self.room - len(text), 0)
        return len(text)


def run(request, names):
    output = Output()
    sys.stdout = sys.stderr = output
    value = error = None
    try:
        if "file" in request:
            with open(request["file"], encoding="utf-8", errors="replace") as file:
                source = file.read()
            names.update({"__name__": "__main__", "__file__": request["file"]})
            exec(compile(source, request["file"], "exec"), names)
        else:
            tree = ast.parse(request["code"], "<code>")
            last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
            exec(compile(tree, "<code>", "exec"), names)
            if last is not None:
                result = eval(compile(ast.Expression(last.value), "<code>", "eval"), names)
                value = None if result is None else repr(result)[: limits["output"]]
    except SystemExit as exit:
        if exit.code not in (None, 0):
            error = f"the code ended with exit code {exit.code}"
    except BaseException:
        error = traceback.format_exc(limit=-4)[-4000:]
    finally:
        sys.stdout = sys.stderr = Output()
    return {"output": "".join(output.kept), "lost": output.lost, "value": value, "error": error}


names = {"__name__": "__main__"}
for line in requests:
    # The program ends code that is too slow. This is for a program that was killed meanwhile.
    end = threading.Timer(limits["seconds"], os._exit, [1])
    end.daemon = True
    end.start()
    request = json.loads(line)
    nonce = request.pop("nonce")
    reply = run(request, names)
    if os.getpid() != owner:
        os._exit(0)
    end.cancel()
    # The code may have left a part of a line.
    replies.write("\n" + json.dumps({"nonce": nonce, **reply}) + "\n")
    replies.flush()
