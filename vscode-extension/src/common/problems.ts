/** What can go wrong before there are predictions: one sentence each, with buttons that fix it. */

import * as vscode from 'vscode';

import { Interpreter, OLDEST_PYTHON_TEXT } from './python';
import { openSettings, SECTION } from './settings';

export type Problem =
  | { readonly kind: 'no-python' }
  | { readonly kind: 'old-python'; readonly interpreter: string }
  | { readonly kind: 'interpreter-missing'; readonly path: string }
  | { readonly kind: 'not-installed'; readonly python: Interpreter }
  | { readonly kind: 'no-wheel' }
  | { readonly kind: 'path-missing'; readonly path: string }
  | { readonly kind: 'broken'; readonly path: string; readonly reason: string; readonly from: string }
  | { readonly kind: 'old-server'; readonly path: string; readonly version: string }
  | { readonly kind: 'crashed'; readonly reason: string }
  | { readonly kind: 'install-failed'; readonly reason: string }
  | { readonly kind: 'no-model'; readonly reason: string };

/** The actions of the buttons. */
export interface Remedies {
  install(): void;
  useBundled(): void;
  chooseInterpreter(): void;
  restart(): void;
  showLog(): void;
}

type Remedy = readonly [title: string, act: (remedies: Remedies) => void];

const SHOW_LOG: Remedy = ['Show Log', (remedies) => remedies.showLog()];
const RESTART: Remedy = ['Restart', (remedies) => remedies.restart()];
const INSTALL: Remedy = ['Install', (remedies) => remedies.install()];
const CHOOSE: Remedy = ['Choose Interpreter', (remedies) => remedies.chooseInterpreter()];
const BUNDLED: Remedy = ['Use Bundled Server', (remedies) => remedies.useBundled()];
const GET_PYTHON: Remedy = [
  'Get Python',
  () => void vscode.env.openExternal(vscode.Uri.parse('https://www.python.org/downloads/')),
];

export function described(problem: Problem, oldest: string): { message: string; remedies: readonly Remedy[] } {
  switch (problem.kind) {
    case 'no-python':
      return {
        message: `rlm-lsp needs Python ${OLDEST_PYTHON_TEXT} or later, but no Python was found.`,
        remedies: [GET_PYTHON, CHOOSE],
      };
    case 'old-python':
      return {
        message: `rlm-lsp needs Python ${OLDEST_PYTHON_TEXT} or later; ${problem.interpreter}.`,
        remedies: [CHOOSE, GET_PYTHON],
      };
    case 'interpreter-missing':
      return {
        message: `The setting ${SECTION}.interpreter names ${problem.path}, which is not a working Python interpreter.`,
        remedies: [CHOOSE, settings('interpreter')],
      };
    case 'not-installed':
      return {
        message:
          'The rlm-lsp server is not installed yet. Install it into a separate folder? Your Python environments do not' +
          ' change; pip downloads the required libraries (about 300 MB on disk).',
        remedies: [INSTALL, CHOOSE],
      };
    case 'no-wheel':
      return {
        message:
          'The rlm-lsp server was not found, and this build of the extension does not include it. Choose a Python' +
          ' interpreter that has it.',
        remedies: [CHOOSE, settings('path')],
      };
    case 'path-missing':
      return {
        message: `The setting ${SECTION}.path names ${problem.path}, which is not a program.`,
        remedies: [settings('path'), SHOW_LOG],
      };
    case 'broken':
      return {
        message: `The rlm-lsp server in ${problem.path} does not start: ${problem.reason}`,
        remedies: [problem.from === 'bundled' ? ['Reinstall', INSTALL[1]] : BUNDLED, SHOW_LOG],
      };
    case 'old-server':
      return {
        message: `rlm-lsp ${problem.version} in ${problem.path} is too old: this extension needs ${oldest} or later.`,
        remedies: [BUNDLED, settings('path')],
      };
    case 'crashed':
      return {
        message: `The rlm-lsp server has stopped${problem.reason === '' ? '.' : `: ${problem.reason}`}`,
        remedies: [RESTART, SHOW_LOG],
      };
    case 'install-failed':
      return {
        message: `The rlm-lsp server was not installed: ${problem.reason}`,
        remedies: [['Try Again', INSTALL[1]], SHOW_LOG],
      };
    case 'no-model':
      return { message: problem.reason, remedies: [settings('model'), SHOW_LOG] };
  }
}

/** Show a problem with its buttons, and run the action of the button that the user presses. */
export async function show(problem: Problem, oldest: string, remedies: Remedies): Promise<void> {
  const { message, remedies: offered } = described(problem, oldest);
  const titles = offered.map(([title]) => title);
  const ask = problem.kind === 'not-installed' ? vscode.window.showInformationMessage : vscode.window.showErrorMessage;
  const pressed = await ask(message, ...titles);
  offered.find(([title]) => title === pressed)?.[1](remedies);
}

function settings(name: string): Remedy {
  return ['Open Settings', () => openSettings(name)];
}
