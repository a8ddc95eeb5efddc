/** The command line that measures a package: copied, and typed into a terminal if wished. Only the user runs it. */

import * as vscode from 'vscode';

import { Server } from './server';

/** How the server's own message begins, which clients that cannot copy show. */
export const SHOWN_BY_SERVER = 'To measure, run: ';

/** Copy what the server tells, and offer a terminal. */
export async function offerCommand(told: string, server: Server): Promise<void> {
  const command = runnable(told, server);
  await vscode.env.clipboard.writeText(command);
  const pressed = await vscode.window.showInformationMessage(
    'rlm-lsp: the command that measures this package under its tests is copied. Nothing was run.',
    'Paste in Terminal',
  );
  if (pressed !== undefined) {
    const terminal = vscode.window.createTerminal({ name: 'rlm-lsp measure' });
    terminal.show();
    terminal.sendText(command, false);
  }
}

/** The command with the program that runs here: one that is not on PATH has no short name. */
export function runnable(told: string, server: Pick<Server, 'command' | 'args' | 'from'>): string {
  if (server.from === 'PATH') {
    return told;
  }
  const program = [server.command, ...server.args].map(quoted).join(' ');
  return told.replace(/ && rlm-lsp /, () => ` && ${process.platform === 'win32' ? '& ' : ''}${program} `);
}

/** A word as a shell takes it. */
export function quoted(word: string): string {
  if (/^[\w@%+=:,./-]+$/.test(word)) {
    return word;
  }
  return process.platform === 'win32' ? `'${word.replace(/'/g, "''")}'` : `'${word.replace(/'/g, `'\\''`)}'`;
}
