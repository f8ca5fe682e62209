"""Processor time of other processes: of children that have ended, and of a mount while it serves."""

import os
import resource
import time
from pathlib import Path


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
