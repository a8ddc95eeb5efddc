/** Python interpreters on this machine, their versions, and the one that the user has chosen. */

import * as fs from 'fs';
import * as path from 'path';
import * as vscode from 'vscode';

import { run } from './process';
import { ExtensionSettings } from './settings';

export const OLDEST_PYTHON = [3, 11] as const;
export const OLDEST_PYTHON_TEXT = OLDEST_PYTHON.join('.');

const PYTHON_EXTENSION = 'ms-python.python';
const PROBE_MS = 15_000;
const NAMES = ['python3.14', 'python3.13', 'python3.12', 'python3.11', 'python3', 'python'];

export interface Interpreter {
  readonly path: string;
  readonly version: string;
  readonly recent: boolean;
}

/** The part of the Python extension's API that we use, if that extension is installed. */
interface PythonApi {
  readonly environments: {
    readonly onDidChangeActiveEnvironmentPath: vscode.Event<unknown>;
    getActiveEnvironmentPath(resource?: vscode.Uri): { readonly path: string };
    resolveEnvironment(
      environment: unknown,
    ): Promise<{ readonly executable: { readonly uri?: vscode.Uri } } | undefined>;
  };
}

/** The version of an interpreter; undefined if it does not run. */
export async function probe(file: string): Promise<Interpreter | undefined> {
  const ended = await run(file, ['-c', 'import sys; print("%d.%d.%d" % sys.version_info[:3])'], {
    timeoutMs: PROBE_MS,
  });
  const version = /^\d+\.\d+\.\d+$/m.exec(ended.stdout)?.[0];
  if (ended.code !== 0 || version === undefined) {
    return undefined;
  }
  return { path: file, version, recent: isAtLeast(version, OLDEST_PYTHON) };
}

/** The interpreter that the user has chosen: in the setting, otherwise in the Python extension. */
export async function chosen(settings: ExtensionSettings): Promise<string | undefined> {
  if (settings.interpreter !== undefined) {
    return settings.interpreter;
  }
  // The environment of an untrusted folder is not trusted either.
  const api = vscode.workspace.isTrusted ? await pythonApi() : undefined;
  if (api === undefined) {
    return undefined;
  }
  const folder = vscode.workspace.workspaceFolders?.[0]?.uri;
  const environment = await api.environments.resolveEnvironment(api.environments.getActiveEnvironmentPath(folder));
  return environment?.executable.uri?.fsPath;
}

/** Call a listener when another interpreter is selected in the Python extension. */
export async function onDidChoose(listener: () => void): Promise<vscode.Disposable | undefined> {
  return (await pythonApi())?.environments.onDidChangeActiveEnvironmentPath(listener);
}

/** The programs with this name on PATH, except those in untrusted folders. */
export function onPath(name: string): string[] {
  const suffixes = process.platform === 'win32' ? ['.exe', '.cmd', '.bat'] : [''];
  const folders = (process.env.PATH ?? '').split(path.delimiter).filter((folder) => path.isAbsolute(folder));
  const untrusted = vscode.workspace.isTrusted ? [] : (vscode.workspace.workspaceFolders ?? []);
  return folders
    .filter((folder) => !untrusted.some((workspace) => isBelow(folder, workspace.uri.fsPath)))
    .flatMap((folder) => suffixes.map((suffix) => path.join(folder, name + suffix)))
    .filter(isProgram);
}

/** The interpreters that can run the server: the chosen one first, then those on PATH. */
export async function* interpreters(settings: ExtensionSettings): AsyncGenerator<Interpreter> {
  const seen = new Set<string>();
  const preferred = await chosen(settings);
  for (const file of [...(preferred !== undefined ? [preferred] : []), ...NAMES.flatMap(onPath)]) {
    if (!seen.has(file)) {
      seen.add(file);
      const interpreter = await probe(file);
      if (interpreter !== undefined) {
        yield interpreter;
      }
    }
  }
}

export function isAtLeast(version: string, oldest: readonly number[]): boolean {
  const parts = version.split(/[^0-9]+/).map(Number);
  for (const [index, least] of oldest.entries()) {
    const part = parts[index] ?? 0;
    if (part !== least) {
      return part > least;
    }
  }
  return true;
}

export function isProgram(file: string): boolean {
  try {
    fs.accessSync(file, fs.constants.X_OK);
    return fs.statSync(file).isFile();
  } catch {
    return false;
  }
}

function isBelow(file: string, folder: string): boolean {
  const relative = path.relative(folder, file);
  return relative === '' || (!relative.startsWith('..') && !path.isAbsolute(relative));
}

async function pythonApi(): Promise<PythonApi | undefined> {
  const extension = vscode.extensions.getExtension<PythonApi>(PYTHON_EXTENSION);
  try {
    return await extension?.activate();
  } catch {
    return undefined;
  }
}
