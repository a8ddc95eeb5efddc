/** Runs programs with a time limit, collects their output, and ends them together with their child processes. */

import { spawn } from 'child_process';
import * as os from 'os';

export interface Ended {
  /** The exit status; undefined if the program could not be started or was ended. */
  readonly code: number | undefined;
  readonly stdout: string;
  readonly stderr: string;
  /** Why there is no exit status. */
  readonly failure?: string;
}

export interface RunOptions {
  readonly timeoutMs: number;
  readonly signal?: AbortSignal;
  readonly onLine?: (line: string) => void;
}

const MOST_OUTPUT = 1_000_000;

/** Run a program outside all workspaces, so that it does not load files from them; never rejects. */
export function run(command: string, args: readonly string[], options: RunOptions): Promise<Ended> {
  return new Promise((resolve) => {
    let stdout = '';
    let stderr = '';
    let failure: string | undefined;
    const detached = process.platform !== 'win32';
    const child = spawn(command, args, { cwd: os.homedir(), detached, stdio: ['ignore', 'pipe', 'pipe'] });
    const end = (why: string): void => {
      failure ??= why;
      endTree(child.pid, detached);
    };
    const timer = setTimeout(() => end(`did not end within ${options.timeoutMs / 1000} s`), options.timeoutMs);
    const abort = (): void => end('was cancelled');
    options.signal?.addEventListener('abort', abort);
    const take = (text: string): string => {
      for (const line of text.split(/\r?\n/)) {
        if (line.trim() !== '') {
          options.onLine?.(line.trimEnd());
        }
      }
      return text;
    };
    child.stdout.setEncoding('utf8').on('data', (text: string) => {
      stdout = (stdout + take(text)).slice(-MOST_OUTPUT);
    });
    child.stderr.setEncoding('utf8').on('data', (text: string) => {
      stderr = (stderr + take(text)).slice(-MOST_OUTPUT);
    });
    const done = (code: number | undefined): void => {
      clearTimeout(timer);
      options.signal?.removeEventListener('abort', abort);
      resolve({ code: failure === undefined ? code : undefined, stdout, stderr, failure });
    };
    child.on('error', (error) => {
      failure ??= error.message;
      done(undefined);
    });
    child.on('close', (code) => done(code ?? undefined));
    if (options.signal?.aborted) {
      abort();
    }
  });
}

/** The last non-empty line, where programs usually report what went wrong. */
export function lastLine(text: string): string {
  return text.trimEnd().split(/\r?\n/).at(-1)?.trim() ?? '';
}

function endTree(pid: number | undefined, detached: boolean): void {
  if (pid === undefined) {
    return;
  }
  try {
    process.kill(detached ? -pid : pid, 'SIGKILL');
  } catch {
    // It has already exited.
  }
}
