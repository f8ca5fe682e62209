"""Processor time of other processes: of children that have ended, and of a mount while it serves; and how much the
processors hold each other up."""

import os
import resource
import statistics
import subprocess
import sys
import time
from pathlib import Path

# counts to a number that takes some 100 ms, from a moment on that is given, and prints the seconds
LOOP = "import sys, time; n = 0\nwhile time.time() < float(sys.argv[1]): pass\nb = time.perf_counter()\n" \
       "while n < 3000000: n += 1\nprint(time.perf_counter() - b)"


def of_children():
    """Returns the seconds of processor time of all child processes that have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def of_mount(pid):
    """Returns the seconds of processor time of a daemon and of the processes that it started."""
    total = 0
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            number, fields = int(stat.parent.name), stat.read_text().rsplit(")", 1)[1].split()
            if pid in (number, int(fields[1])):
                total += of_process(number)
        except OSError:
            # it has ended
            continue
    return total


def of_process(pid):
    """Returns the seconds of processor time of a process alone."""
    return time.clock_gettime(clock_of(pid))


def clock_of(pid):
    """Returns the number of the clock that counts a process' processor time (clock_getcpuclockid(3))."""
    return ~pid << 3 | 2


def pin(processors):
    """Keeps this process, and all that it starts from now on, on some processors: a list such as "0,1". Returns whether
    these exist."""
    try:
        chosen = {int(number) for number in processors.split(",")}
        os.sched_setaffinity(0, chosen)
    except (ValueError, OSError):
        return False
    return os.sched_getaffinity(0) == chosen


def sharing(tries=7):
    """Says how many times as long a loop takes on all processors at once as on one: 1 where each is a core of its own, up to
    2 where two are threads of one core, which on a virtual machine may change from moment to moment."""
    def seconds(processes):
        command = [sys.executable, "-c", LOOP, str(time.time() + 0.2)]
        running = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(processes)]
        return max(float(one.communicate()[0]) for one in running)

    alone = min(seconds(1) for _ in range(3))
    found = [seconds(len(os.sched_getaffinity(0))) / alone for _ in range(tries)]
    return f"a loop takes {statistics.median(found):.2f} ({min(found):.2f}..{max(found):.2f}) times as long on all processors at once as on one"
