/**
 * Finds the server: the setting `rlm-lsp.path`, the chosen interpreter, PATH, the environment of the bundled wheel. Checks
 * its version before use.
 */

import * as vscode from 'vscode';

import { Bundled } from './bundled';
import { Problem } from './problems';
import { lastLine, run } from './process';
import { chosen, interpreters, isAtLeast, isProgram, onPath, probe } from './python';
import { ExtensionSettings } from './settings';

/** The oldest server that supports all requests of this extension. */
export const OLDEST_SERVER = '0.1.0';

const VERSION_MS = 30_000;

export interface Server {
  readonly command: string;
  /** Arguments before `serve` and other commands. */
  readonly args: readonly string[];
  readonly version: string;
  readonly from: 'path' | 'interpreter' | 'PATH' | 'bundled';
}

export function isServer(result: Server | Problem): result is Server {
  return 'command' in result;
}

export async function findServer(
  settings: ExtensionSettings,
  bundled: Bundled,
  log: vscode.LogOutputChannel,
): Promise<Server | Problem> {
  if (settings.path.length > 0) {
    const file = settings.path.flatMap((name) => (/[\\/]/.test(name) ? [name] : onPath(name))).find(isProgram);
    return file === undefined
      ? { kind: 'path-missing', path: settings.path.join(', ') }
      : asServer({ command: file, args: [] }, 'path');
  }
  if (settings.importStrategy === 'fromEnvironment') {
    const installed = (await inInterpreter(settings, log)) ?? (await anywhereOnPath());
    if (installed !== undefined) {
      return installed;
    }
  }
  const python = await bundled.installed();
  if (python !== undefined) {
    return asServer(module(python), 'bundled');
  }
  return notInstalled(settings, bundled);
}

/** No server is installed: find out whether it can be. */
async function notInstalled(settings: ExtensionSettings, bundled: Bundled): Promise<Problem> {
  let old: string | undefined;
  for await (const interpreter of interpreters(settings)) {
    if (interpreter.recent) {
      return (await bundled.wheel()) === undefined
        ? { kind: 'no-wheel' }
        : { kind: 'not-installed', python: interpreter };
    }
    old ??= `${interpreter.path} is ${interpreter.version}`;
  }
  return old === undefined ? { kind: 'no-python' } : { kind: 'old-python', interpreter: old };
}

async function inInterpreter(
  settings: ExtensionSettings,
  log: vscode.LogOutputChannel,
): Promise<Server | Problem | undefined> {
  const python = await chosen(settings);
  if (python === undefined) {
    return undefined;
  }
  const interpreter = await probe(python);
  if (interpreter === undefined) {
    return settings.interpreter === undefined ? undefined : { kind: 'interpreter-missing', path: python };
  }
  if (!interpreter.recent) {
    log.info(`${python} is Python ${interpreter.version}, too old for the server`);
    return settings.interpreter === undefined
      ? undefined
      : { kind: 'old-python', interpreter: `${python} is ${interpreter.version}` };
  }
  const server = await asServer(module(python), 'interpreter');
  // An interpreter without the server is not an error: another one may have it.
  return 'kind' in server && server.kind === 'broken' && server.reason.includes('No module named rlm_lsp')
    ? undefined
    : server;
}

async function anywhereOnPath(): Promise<Server | Problem | undefined> {
  const [file] = onPath('rlm-lsp');
  return file === undefined ? undefined : asServer({ command: file, args: [] }, 'PATH');
}

/** The server as a module; without `-P`, a folder of that name in the working directory would take precedence. */
function module(python: string): Pick<Server, 'command' | 'args'> {
  return { command: python, args: ['-P', '-m', 'rlm_lsp'] };
}

async function asServer(program: Pick<Server, 'command' | 'args'>, from: Server['from']): Promise<Server | Problem> {
  const ended = await run(program.command, [...program.args, '--version'], { timeoutMs: VERSION_MS });
  const version = /^rlm-lsp (\d+\.\d+\S*)/m.exec(ended.stdout)?.[1];
  if (ended.code !== 0 || version === undefined) {
    const reason =
      ended.failure ?? (lastLine(ended.stderr) || lastLine(ended.stdout) || 'it does not print its version');
    return { kind: 'broken', path: program.command, reason, from };
  }
  if (!isAtLeast(version, OLDEST_SERVER.split('.').map(Number))) {
    return { kind: 'old-server', path: program.command, version };
  }
  return { ...program, version, from };
}
