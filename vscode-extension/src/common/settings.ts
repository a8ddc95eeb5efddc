/** The settings that the extension itself reads, and which of all settings the server may see. */

import * as os from 'os';
import * as path from 'path';
import * as vscode from 'vscode';

export const SECTION = 'rlm-lsp';

export type ImportStrategy = 'fromEnvironment' | 'useBundled';

export interface ExtensionSettings {
  /** Programs to use as the server, the first that is there. */
  readonly path: readonly string[];
  readonly interpreter: string | undefined;
  readonly importStrategy: ImportStrategy;
}

/** Settings of the extension, which the server does not know. */
const OWN = ['path', 'interpreter', 'importStrategy', 'trace'];
/** Settings that decide what runs or where source text goes; only a trusted window hands them to the server. */
const OF_THE_MACHINE = ['model', 'tokenFile', 'measure'];

export function readSettings(): ExtensionSettings {
  const found = vscode.workspace.getConfiguration(SECTION);
  return {
    path: strings(found.get('path')).map(expand),
    interpreter: strings(found.get('interpreter')).map(expand)[0],
    importStrategy: found.get('importStrategy') === 'useBundled' ? 'useBundled' : 'fromEnvironment',
  };
}

/** Whether a change of settings needs another server process. */
export function needsRestart(event: vscode.ConfigurationChangeEvent): boolean {
  return ['path', 'interpreter', 'importStrategy'].some((name) => event.affectsConfiguration(`${SECTION}.${name}`));
}

/** What the server is told of a section of settings. */
export function forServer(values: unknown, trusted: boolean, logLevel: string | undefined): unknown {
  if (typeof values !== 'object' || values === null) {
    return values;
  }
  const hidden = new Set(trusted ? OWN : [...OWN, ...OF_THE_MACHINE]);
  const told: Record<string, unknown> = Object.fromEntries(
    Object.entries(values).filter(([name, value]) => !hidden.has(name) && value !== null),
  );
  if (logLevel !== undefined && told.logLevel === undefined) {
    told.logLevel = logLevel;
  }
  return told;
}

/** Show one of the settings that choose programs; in a remote window those are settings of the remote machine. */
export function openSettings(name: string): void {
  const isRemote = vscode.env.remoteName !== undefined;
  const command = isRemote ? 'workbench.action.openRemoteSettings' : 'workbench.action.openSettings';
  void vscode.commands.executeCommand(command, { query: `@id:${SECTION}.${name}` });
}

function strings(value: unknown): string[] {
  const values = Array.isArray(value) ? (value as unknown[]) : [value];
  return values.filter((one): one is string => typeof one === 'string' && one.trim() !== '');
}

/** A path with `~`, `${workspaceFolder}`, `${userHome}` and `${env:NAME}` put in. */
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
