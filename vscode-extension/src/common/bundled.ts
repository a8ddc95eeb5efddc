/** The server that is bundled with the extension: a wheel, installed by its path into a separate environment. */

import { createHash } from 'crypto';
import * as fs from 'fs/promises';
import * as path from 'path';
import * as vscode from 'vscode';

import { MARKER, record, remove, removeAll, SERVER } from './environments';
import { lastLine, run } from './process';
import { Interpreter } from './python';

const STEP_MS = 20 * 60_000;

export class Bundled {
  private wheelFound: Promise<string | undefined> | undefined;

  constructor(
    private readonly context: vscode.ExtensionContext,
    private readonly log: vscode.LogOutputChannel,
  ) {}

  /** The bundled wheel; a development checkout may have none. */
  wheel(): Promise<string | undefined> {
    this.wheelFound ??= findWheel(path.join(this.context.extensionPath, 'bundled'));
    return this.wheelFound;
  }

  /** The interpreter of the environment if the wheel of this extension is installed in it. */
  async installed(): Promise<string | undefined> {
    const folder = await this.folder();
    if (folder === undefined || !(await exists(path.join(folder, MARKER)))) {
      return undefined;
    }
    const python = pythonOf(folder);
    return (await exists(python)) ? python : undefined;
  }

  /** Install the wheel, with progress that can be cancelled. Returns the reason of a failure, undefined on success. */
  async install(base: Interpreter): Promise<string | undefined> {
    const [wheel, folder] = [await this.wheel(), await this.folder()];
    if (wheel === undefined || folder === undefined) {
      return 'this build of the extension does not include a server';
    }
    return vscode.window.withProgress(
      { location: vscode.ProgressLocation.Notification, title: 'Installing the rlm-lsp server', cancellable: true },
      async (progress, token) => {
        const stop = new AbortController();
        token.onCancellationRequested(() => stop.abort());
        const failure = await this.build(base, wheel, folder, stop.signal, (message) => progress.report({ message }));
        if (failure !== undefined) {
          await remove(folder);
        }
        return failure;
      },
    );
  }

  /** Record where the environments are if there are any, so that they are removed when the extension is uninstalled. */
  async record(): Promise<void> {
    // The folder of a checkout is not uninstalled.
    if (this.context.extensionMode === vscode.ExtensionMode.Production && (await exists(this.parent))) {
      try {
        await record(this.context.extensionPath, this.parent);
      } catch (error) {
        this.log.warn(`where the server is installed could not be recorded: ${String(error)}`);
      }
    }
  }

  private async build(
    base: Interpreter,
    wheel: string,
    folder: string,
    signal: AbortSignal,
    report: (message: string) => void,
  ): Promise<string | undefined> {
    if (!(await isWhatWasPackaged(wheel))) {
      return `the SHA-256 of ${path.basename(wheel)} is not the one that was packaged; install the extension again`;
    }
    await removeAll(this.parent);
    await fs.mkdir(this.parent, { recursive: true });
    await this.record();
    // Python compiles what it imports; compiling everything takes as long as the rest of the installation.
    const pip = ['-m', 'pip', 'install', '--disable-pip-version-check', '--no-input', '--no-compile'];
    const steps = [
      { title: 'creating an environment', command: base.path, args: ['-m', 'venv', folder] },
      // By path: a name would be looked up in a package index, where anyone may have registered it.
      { title: 'installing', command: pythonOf(folder), args: [...pip, `${wheel}[onnx,mcp]`] },
    ];
    for (const step of steps) {
      report(step.title);
      this.log.info(`${step.command} ${step.args.join(' ')}`);
      const ended = await run(step.command, step.args, {
        timeoutMs: STEP_MS,
        signal,
        onLine: (line) => {
          this.log.info(line);
          const name = /^(?:Collecting|Downloading|Installing collected packages:) ?(\S*)/.exec(line);
          if (name !== null) {
            report(line.startsWith('Installing') ? 'unpacking' : (name[1] ?? ''));
          }
        },
      });
      if (ended.code !== 0) {
        return ended.failure ?? (lastLine(ended.stderr) || `${step.title} failed with status ${ended.code}`);
      }
    }
    await fs.writeFile(path.join(folder, MARKER), JSON.stringify({ wheel: path.basename(wheel), python: base.path }));
    return undefined;
  }

  /** The folder of exactly this wheel: another wheel, even of the same version, has another folder. */
  private async folder(): Promise<string | undefined> {
    const wheel = await this.wheel();
    if (wheel === undefined) {
      return undefined;
    }
    return path.join(this.parent, (await sha256(wheel)).slice(0, 12));
  }

  private get parent(): string {
    return path.join(this.context.globalStorageUri.fsPath, SERVER);
  }
}

function pythonOf(folder: string): string {
  return process.platform === 'win32' ? path.join(folder, 'Scripts', 'python.exe') : path.join(folder, 'bin', 'python');
}

async function sha256(file: string): Promise<string> {
  return createHash('sha256')
    .update(await fs.readFile(file))
    .digest('hex');
}

/** Whether the wheel has the hash that was written when the extension was packaged. */
async function isWhatWasPackaged(wheel: string): Promise<boolean> {
  const sums = await fs.readFile(path.join(path.dirname(wheel), 'SHA256SUMS'), 'utf8').catch(() => '');
  return sums.split('\n').includes(`${await sha256(wheel)}  ${path.basename(wheel)}`);
}

async function findWheel(folder: string): Promise<string | undefined> {
  try {
    const names = (await fs.readdir(folder)).filter((name) => /^rlm_lsp-.*\.whl$/.test(name)).sort();
    const newest = names.at(-1);
    return newest !== undefined ? path.join(folder, newest) : undefined;
  } catch {
    return undefined;
  }
}

async function exists(file: string): Promise<boolean> {
  try {
    await fs.access(file);
    return true;
  } catch {
    return false;
  }
}
