/** The command that measures a package: copied, and on request pasted into a terminal. Only the user runs it. */

import * as vscode from 'vscode';

import { Server } from './server';

/** The start of the server's message for clients that cannot copy the command. */
export const SHOWN_BY_SERVER = 'To measure, run: ';

/** Copy the server's command, and offer to paste it into a terminal. */
export async function offerCommand(proposed: string, server: Server): Promise<void> {
  const command = runnable(proposed, server);
  await vscode.env.clipboard.writeText(command);
  const pressed = await vscode.window.showInformationMessage(
    'rlm-lsp: the command that measures this package with its tests is copied. Nothing was run.',
    'Paste in Terminal',
  );
  if (pressed !== undefined) {
    const terminal = vscode.window.createTerminal({ name: 'rlm-lsp measure' });
    terminal.show();
    terminal.sendText(command, false);
  }
}

/** The command with the path of the running server: a program that is not on PATH has no short name. */
export function runnable(command: string, server: Pick<Server, 'command' | 'args' | 'from'>): string {
  if (server.from === 'PATH') {
    return command;
  }
  const program = [server.command, ...server.args].map(quoted).join(' ');
  // The last one: the folder in front of it may have any name.
  return command.replace(
    /^(.*) && rlm-lsp /s,
    (_, change: string) => `${change} && ${process.platform === 'win32' ? '& ' : ''}${program} `,
  );
}

/** Quote a word for the shell. */
export function quoted(word: string): string {
  if (/^[\w@%+=:,./-]+$/.test(word)) {
    return word;
  }
  return process.platform === 'win32' ? `'${word.replace(/'/g, "''")}'` : `'${word.replace(/'/g, `'\\''`)}'`;
}
