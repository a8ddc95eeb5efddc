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
/** What those settings may be: in words, and as a test. The server checks all others. */
const VALID: Readonly<Record<string, readonly [words: string, admits: (value: unknown) => boolean]>> = {
  path: ['a list of programs', isTexts],
  interpreter: ['a list of programs', isTexts],
  importStrategy: oneOf('fromEnvironment', 'useBundled'),
  'trace.server': oneOf('off', 'messages', 'verbose'),
};
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

/** A setting that is ignored because of its value, and what the value must be. */
export interface InvalidSetting {
  readonly setting: string;
  readonly text: string;
}

/** The settings of the extension itself that are not valid; the server finds those that it reads. */
export function invalidSettings(): InvalidSetting[] {
  const settings = vscode.workspace.getConfiguration(SECTION);
  return Object.entries(VALID)
    .filter(([setting, [, admits]]) => {
      const value = settings.get<unknown>(setting);
      // The settings editor leaves an empty text where a value was deleted.
      return value !== undefined && value !== null && value !== '' && !admits(value);
    })
    .map(([setting, [words]]) => ({ setting, text: `"${setting}" must be ${words}.` }));
}

/** Whether the messages between VS Code and the server are to be traced. */
export function isTracing(): boolean {
  const value = vscode.workspace.getConfiguration(SECTION).get('trace.server');
  return value === 'messages' || value === 'verbose';
}

/** Whether a change of settings requires a new server process. */
export function needsRestart(event: vscode.ConfigurationChangeEvent): boolean {
  return ['path', 'interpreter', 'importStrategy'].some((name) => event.affectsConfiguration(`${SECTION}.${name}`));
}

/**
 * What the user has set, by name: in the user's, the workspace's or the folder's settings. Defaults are left out: those of the
 * server are the same, and sent like values they would override the project's file.
 */
export function userSettings(scope?: vscode.Uri): Record<string, unknown> {
  const settings = vscode.workspace.getConfiguration(SECTION, scope ?? null);
  const names = Object.keys(vscode.workspace.getConfiguration(undefined, scope ?? null).get<object>(SECTION, {}));
  const values: Record<string, unknown> = {};
  for (const name of names) {
    const { globalValue, workspaceValue, workspaceFolderValue } = settings.inspect(name) ?? {};
    // The settings editor leaves an empty text where a value was deleted.
    const given = [globalValue, workspaceValue, workspaceFolderValue].filter(
      (value) => value !== undefined && value !== null && value !== '',
    );
    if (given.length > 0) {
      values[name] = given.every(isTable) ? Object.assign({}, ...given) : given.at(-1);
    }
  }
  return values;
}

/** The settings that the server receives for a resource: those of the user that it knows and that may be set there. */
export function forServer(
  scope: vscode.Uri | undefined,
  trusted: boolean,
  logLevel: string | undefined,
): Record<string, unknown> {
  const hidden = new Set(trusted ? OF_THE_EXTENSION : [...OF_THE_EXTENSION, ...OF_THE_MACHINE]);
  const passed = Object.fromEntries(Object.entries(userSettings(scope)).filter(([name]) => !hidden.has(name)));
  return logLevel !== undefined && passed.logLevel === undefined ? { ...passed, logLevel } : passed;
}

function isTable(value: unknown): value is object {
  return typeof value === 'object' && !Array.isArray(value);
}

/** Open a setting that chooses a program; in a remote window these are settings of the remote machine. */
export function openSettings(name: string): void {
  const isRemote = vscode.env.remoteName !== undefined;
  const command = isRemote ? 'workbench.action.openRemoteSettings' : 'workbench.action.openSettings';
  void vscode.commands.executeCommand(command, { query: `@id:${SECTION}.${name}` });
}

/** Open a setting that the user has set, where it is set; one that does not exist has only its line in the file. */
export function showSetting(name: string): void {
  const { defaultValue, workspaceValue } = vscode.workspace.getConfiguration(SECTION).inspect(name) ?? {};
  const where = workspaceValue !== undefined ? 'Workspace' : vscode.env.remoteName !== undefined ? 'Remote' : '';
  if (defaultValue === undefined) {
    const revealSetting = { key: `${SECTION}.${name}` };
    void vscode.commands.executeCommand(`workbench.action.open${where}Settings${where === '' ? 'Json' : 'File'}`, {
      revealSetting,
    });
  } else {
    void vscode.commands.executeCommand(`workbench.action.open${where}Settings`, { query: `@id:${SECTION}.${name}` });
  }
}

function oneOf(...values: string[]): readonly [string, (value: unknown) => boolean] {
  return [`one of ${values.join(', ')}`, (value) => values.some((one) => one === value)];
}

/** A list of texts, or a single one, which counts as a list. */
function isTexts(value: unknown): boolean {
  return (Array.isArray(value) ? (value as unknown[]) : [value]).every((text) => typeof text === 'string');
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
