/** A bug report: versions and settings, without source text and secrets, with the home folder written as `~`. */

import * as os from 'os';
import * as vscode from 'vscode';

import { described } from './problems';
import { run } from './process';
import { OLDEST_SERVER } from './server';
import { Session } from './session';
import { userSettings } from './settings';

const DOCTOR_MS = 60_000;

export async function report(context: vscode.ExtensionContext, session: Session): Promise<string> {
  const { state, problem } = session;
  const manifest = context.extension.packageJSON as { version: string };
  const lines = [
    '# rlm-lsp report',
    '',
    `- extension ${manifest.version}, ${vscode.env.appName} ${vscode.version}`,
    `- ${os.type()} ${os.release()}, ${os.arch()}`,
    `- workspace: ${vscode.workspace.isTrusted ? 'trusted' : 'not trusted'}`,
    `- state: ${state.kind}${problem !== undefined ? `: ${described(problem, OLDEST_SERVER).message}` : ''}`,
  ];
  if (state.kind === 'running') {
    const { server } = state;
    lines.push(`- server ${server.version} (${server.from}): ${[server.command, ...server.args].join(' ')}`);
    const doctor = await run(server.command, [...server.args, 'doctor'], { timeoutMs: DOCTOR_MS });
    lines.push('', '## rlm-lsp doctor', '', '```', (doctor.stdout || doctor.failure || doctor.stderr).trimEnd(), '```');
  }
  lines.push('', '## Settings that the user has set', '', '```json', settings(), '```', '');
  return withoutHome(lines.join('\n'));
}

function settings(): string {
  const values = Object.entries(userSettings()).map(([name, value]) => [name, secret(name, value)]);
  return JSON.stringify(Object.fromEntries(values), null, 2);
}

/** A value without secrets: the location of a token, and user names and passwords in addresses. */
function secret(key: string, value: unknown): unknown {
  if (key === 'tokenFile') {
    return '(set)';
  }
  if (key === 'model' && typeof value === 'string' && /^https?:/i.test(value)) {
    return '(a model server)';
  }
  return value;
}

function withoutHome(text: string): string {
  return text.split(os.homedir()).join('~');
}
