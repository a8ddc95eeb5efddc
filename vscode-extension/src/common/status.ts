/** The status bar item: the state in words, the details on hover, and a menu with what can be done about it. */

import * as vscode from 'vscode';

import { isSupported, READING_WORKSPACE, Work } from './client';
import { described, Problem } from './problems';
import { Status, statusRequest } from './protocol';
import { OLDEST_SERVER } from './server';
import { Session } from './session';
import { SECTION } from './settings';

const PAUSE_MS = 300;

/** What the item says: a few words, the details, and whether something is wrong. */
export interface Said {
  readonly words: string;
  readonly detail: string;
  readonly kind: 'fine' | 'busy' | 'warning' | 'error';
}

const ICONS: Readonly<Record<Said['kind'], string>> = {
  fine: '$(dashboard)',
  busy: '$(loading~spin)',
  warning: '$(dashboard)',
  error: '$(warning)',
};

export class StatusItem implements vscode.Disposable {
  private readonly item = vscode.window.createStatusBarItem('rlm-lsp.status', vscode.StatusBarAlignment.Right, 100);
  private readonly listeners: vscode.Disposable[];
  private timer: NodeJS.Timeout | undefined;
  private newest: Status | undefined;
  private now: Said = { words: 'stopped', detail: '', kind: 'fine' };

  constructor(private readonly session: Session) {
    this.item.name = 'rlm-lsp';
    this.item.command = 'rlm-lsp.menu';
    this.listeners = [
      session.onDidChangeState(() => this.update()),
      session.onDidAnswer(() => this.later()),
      session.onDidChangeWorks((works) => {
        this.show();
        if (works.length === 0) {
          this.later();
        }
      }),
      vscode.window.onDidChangeActiveTextEditor(() => this.update()),
      vscode.window.onDidChangeTextEditorSelection(() => this.later()),
    ];
    this.update();
  }

  /** What the item says now. */
  get said(): Said {
    return this.now;
  }

  dispose(): void {
    clearTimeout(this.timer);
    for (const listener of this.listeners) {
      listener.dispose();
    }
    this.item.dispose();
  }

  private later(): void {
    clearTimeout(this.timer);
    this.timer = setTimeout(() => this.update(), PAUSE_MS);
  }

  private update(): void {
    this.newest = undefined;
    this.show();
    void this.ask();
  }

  private async ask(): Promise<void> {
    const { state } = this.session;
    if (state.kind !== 'running') {
      return;
    }
    const editor = vscode.window.activeTextEditor;
    const isOurs = editor !== undefined && isSupported(editor.document);
    const params = isOurs ? { uri: editor.document.uri.toString(), line: editor.selection.active.line } : {};
    try {
      const status = await state.client.sendRequest(statusRequest, params);
      if (this.session.state === state && vscode.window.activeTextEditor === editor) {
        this.newest = status;
        this.show();
      }
    } catch {
      // The server has just stopped; the session reports that.
    }
  }

  private show(): void {
    const { words, detail, kind } = (this.now = this.said_of());
    this.item.text = `${ICONS[kind]} rlm-lsp: ${words}`;
    this.item.tooltip = `rlm-lsp: ${words}${detail === '' ? '' : `\n${detail}`}`;
    this.item.accessibilityInformation = { label: `rlm-lsp: ${words}. ${detail}` };
    this.item.backgroundColor = kind === 'error' ? new vscode.ThemeColor('statusBarItem.warningBackground') : undefined;
    const editor = vscode.window.activeTextEditor;
    const isOurs = editor !== undefined && isSupported(editor.document);
    // In a file of another kind only what is happening or wrong is of interest.
    if (isOurs || kind === 'busy' || kind === 'error') {
      this.item.show();
    } else {
      this.item.hide();
    }
  }

  private said_of(): Said {
    const { state, works } = this.session;
    switch (state.kind) {
      case 'failed':
        return {
          words: problemWords(state.problem),
          detail: described(state.problem, OLDEST_SERVER).message,
          kind: 'error',
        };
      case 'installing':
        return { words: 'installing', detail: 'pip downloads the libraries of the server.', kind: 'busy' };
      case 'starting':
        return { words: 'starting', detail: '', kind: 'busy' };
      case 'stopped':
        return { words: 'stopped', detail: '', kind: 'fine' };
      case 'running': {
        const [work] = works;
        return work !== undefined ? { words: workWords(work), detail: '', kind: 'busy' } : running(this.newest);
      }
    }
  }
}

function running(status: Status | undefined): Said {
  if (status === undefined) {
    return { words: 'ready', detail: '', kind: 'fine' };
  }
  const { model, document, unit } = status;
  if (model === null) {
    return { words: 'no model', detail: 'The log shows the reason.', kind: 'error' };
  }
  const abstained = document !== null && document.abstained > 0 && document.answered === 0;
  const reason = unit?.reason ?? (abstained ? document.reason : null);
  if (reason !== null) {
    return { words: 'no prediction here', detail: reason, kind: 'warning' };
  }
  const device = unit?.devices[0];
  return { words: 'ready', detail: `Model ${model}${device !== undefined ? ` on ${device}` : ''}`, kind: 'fine' };
}

function problemWords(problem: Problem): string {
  return problem.kind === 'not-installed' ? 'not installed' : 'problem';
}

function workWords({ title, done }: Work): string {
  if (title === READING_WORKSPACE) {
    return done === '' ? title : `reading ${done} files`;
  }
  // The title of other work is the name of a document.
  const isNamed = /^(loading|reading|explaining|predicting)/.test(title);
  return isNamed && done === '' ? title : `predicting ${done}`.trimEnd();
}

interface Entry extends vscode.QuickPickItem {
  readonly act?: () => unknown;
}

/** The menu of the item: what fixes a problem first, then what is always there. */
export async function showMenu(session: Session, status: StatusItem, hintsHidden: boolean | undefined): Promise<void> {
  const { said } = status;
  const entries: Entry[] = [];
  if (session.problem !== undefined) {
    const { remedies } = described(session.problem, OLDEST_SERVER);
    entries.push(
      ...remedies.map(([title, act]) => ({ label: `$(wrench) ${title}`, act: () => act(session.remedies) })),
      { label: '', kind: vscode.QuickPickItemKind.Separator },
    );
  }
  const run =
    (command: string, ...args: unknown[]) =>
    () =>
      vscode.commands.executeCommand(command, ...args);
  if (hintsHidden !== undefined && session.state.kind === 'running') {
    entries.push({
      label: hintsHidden ? '$(eye) Show Hints in This File' : '$(eye-closed) Hide Hints in This File',
      act: run('rlm-lsp.toggleHintsInFile'),
    });
  }
  entries.push(
    { label: '$(graph) Predicted Cost', act: run('rlm-lsp.overview.focus') },
    { label: '$(debug-restart) Restart Server', act: run('rlm-lsp.restart') },
    { label: '$(gear) Settings', act: run('workbench.action.openSettings', `@ext:rlm-lsp.rlm-lsp`) },
    { label: '$(output) Logs', act: run('rlm-lsp.showLogs') },
  );
  const picked = await vscode.window.showQuickPick(entries, {
    title: `${SECTION}: ${said.words}`,
    placeHolder: said.detail,
  });
  await picked?.act?.();
}
