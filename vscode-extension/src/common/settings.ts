/** The settings that the extension itself reads, and the settings that it passes on to the server. */

import * as os from 'os';
import * as path from 'path';
import * as vscode from 'vscode';

export const SECTION = 'rlm-lsp';

export type ImportStrategy = 'fromEnvironment' | 'useBundled';

export interface ExtensionSettings {
  /** Programs to use as the server; the first one that exists is used. */
  readonly path: readonly string[];
  readonly interpreter: string | undefined;
  readonly importStrategy: ImportStrategy;
}

/** Settings of the extension, which the server does not know. */
const OF_THE_EXTENSION = ['path', 'interpreter', 'importStrategy', 'trace'];
/** Settings that decide what runs or where source text is sent; only a trusted window passes them to the server. */
const OF_THE_MACHINE = ['model', 'tokenFile', 'measure'];

export function readSettings(): ExtensionSettings {
  const settings = vscode.workspace.getConfiguration(SECTION);
  return {
    path: strings(settings.get('path')).map(expand),
    interpreter: strings(settings.get('interpreter')).map(expand)[0],
    importStrategy: settings.get('importStrategy') === 'useBundled' ? 'useBundled' : 'fromEnvironment',
  };
}

/** Whether a change of settings requires a new server process. */
export function needsRestart(event: vscode.ConfigurationChangeEvent): boolean {
  return ['path', 'interpreter', 'importStrategy'].some((name) => event.affectsConfiguration(`${SECTION}.${name}`));
}

/** The part of a settings section that the server receives. */
export function forServer(values: unknown, trusted: boolean, logLevel: string | undefined): unknown {
  if (typeof values !== 'object' || values === null) {
    return values;
  }
  const hidden = new Set(trusted ? OF_THE_EXTENSION : [...OF_THE_EXTENSION, ...OF_THE_MACHINE]);
  const passed: Record<string, unknown> = Object.fromEntries(
    Object.entries(values).filter(([name, value]) => !hidden.has(name) && value !== null),
  );
  if (logLevel !== undefined && passed.logLevel === undefined) {
    passed.logLevel = logLevel;
  }
  return passed;
}

/** Open a setting that chooses a program; in a remote window these are settings of the remote machine. */
export function openSettings(name: string): void {
  const isRemote = vscode.env.remoteName !== undefined;
  const command = isRemote ? 'workbench.action.openRemoteSettings' : 'workbench.action.openSettings';
  void vscode.commands.executeCommand(command, { query: `@id:${SECTION}.${name}` });
}

function strings(value: unknown): string[] {
  const values = Array.isArray(value) ? (value as unknown[]) : [value];
  return values.filter((text): text is string => typeof text === 'string' && text.trim() !== '');
}

/** Expands `~`, `${workspaceFolder}`, `${userHome}` and `${env:NAME}` in a path. */
function expand(text: string): string {
  const folder = vscode.workspace.workspaceFolders?.[0]?.uri.fsPath;
  const named = text
    .replace(/^~(?=$|[\\/])/, os.homedir())
    .replace(/\$\{userHome\}/g, os.homedir())
    .replace(/\$\{workspaceFolder\}/g, folder ?? '')
    .replace(/\$\{env:(\w+)\}/g, (_, name: string) => process.env[name] ?? '');
  // A bare name is looked up on PATH.
  return /[\\/]/.test(named) && folder !== undefined ? path.resolve(folder, named) : named;
}
