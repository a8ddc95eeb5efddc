"""Functions that wait for another process."""

import asyncio
import multiprocessing
import os
import subprocess
from concurrent.futures import ProcessPoolExecutor
from subprocess import PIPE, Popen, check_output, run


def git_status():
    return subprocess.run(["git", "status"], capture_output=True, text=True).stdout


def list_files(folder):
    return check_output(["ls", "-l", folder]).decode()


def shell(command):
    return os.system(command)


def compile_program(source):
    result = run(["gcc", "-O2", source, "-o", "a.out"], check=True)
    return result.returncode


def pipe_through_sort(text):
    process = Popen(["sort"], stdin=PIPE, stdout=PIPE)
    output, _ = process.communicate(text.encode())
    return output.decode()


def call_make():
    return subprocess.call("make -j4", shell=True)


def read_popen():
    return os.popen("uname -a").read()


def start_and_wait(command):
    process = subprocess.Popen(command)
    return process.wait()


def square(n):
    return n * n


def pool_of_workers():
    with multiprocessing.Pool(4) as pool:
        return pool.map(square, range(100))


def child_process():
    child = multiprocessing.Process(target=square, args=(3,))
    child.start()
    child.join()
    return child.exitcode


def process_executor():
    with ProcessPoolExecutor() as executor:
        return list(executor.map(square, [1, 2, 3]))


async def async_process(command):
    process = await asyncio.create_subprocess_shell(command)
    await process.communicate()
    return process.returncode


def _git(*arguments):
    return subprocess.check_output(["git", *arguments], text=True).strip()


def current_branch():
    return _git("rev-parse", "--abbrev-ref", "HEAD")


def version_or_unknown(tool):
    try:
        return subprocess.check_output([tool, "--version"], text=True).split()[-1]
    except FileNotFoundError:
        return "unknown"
