/** The language status item: model and device, activity, problems, and the reason for a missing prediction. */

import * as vscode from 'vscode';

import { SELECTOR } from './client';
import { described } from './problems';
import { Status, statusRequest } from './protocol';
import { OLDEST_SERVER } from './server';
import { Session } from './session';

const PAUSE_MS = 300;
const MOST_DETAIL = 48;

export class StatusItem implements vscode.Disposable {
  private readonly item = vscode.languages.createLanguageStatusItem('rlm-lsp.status', SELECTOR);
  private readonly listeners: vscode.Disposable[];
  private timer: NodeJS.Timeout | undefined;

  constructor(private readonly session: Session) {
    this.item.name = 'rlm-lsp';
    this.listeners = [
      session.onDidChangeState(() => this.update()),
      session.onDidAnswer(() => this.later()),
      session.onDidChangeBusy((busy) => {
        this.item.busy = busy || session.state.kind === 'starting';
        this.later();
      }),
      vscode.window.onDidChangeActiveTextEditor(() => this.later()),
      vscode.window.onDidChangeTextEditorSelection(() => this.later()),
    ];
    this.update();
  }

  /** The current text of the item. */
  get text(): { readonly text: string; readonly detail: string; readonly severity: vscode.LanguageStatusSeverity } {
    return { text: this.item.text, detail: this.item.detail ?? '', severity: this.item.severity };
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
    const { state, problem } = this.session;
    this.item.busy = state.kind === 'starting';
    if (problem !== undefined) {
      this.say(
        'rlm-lsp: no predictions',
        described(problem, OLDEST_SERVER).message,
        vscode.LanguageStatusSeverity.Error,
      );
    } else if (state.kind === 'running') {
      void this.ask();
    } else {
      this.say(state.kind === 'starting' ? 'rlm-lsp: starting' : 'rlm-lsp: stopped', '');
    }
  }

  private async ask(): Promise<void> {
    const { state } = this.session;
    const editor = vscode.window.activeTextEditor;
    if (state.kind !== 'running') {
      return;
    }
    const isOurs = editor !== undefined && vscode.languages.match(SELECTOR, editor.document) > 0;
    const params = isOurs ? { uri: editor.document.uri.toString(), line: editor.selection.active.line } : {};
    try {
      const status = await state.client.sendRequest(statusRequest, params);
      if (this.session.state === state && this.session.problem === undefined) {
        this.show(status);
      }
    } catch {
      // The server has just stopped; the session reports that.
    }
  }

  private show({ model, document, unit }: Status): void {
    if (model === null) {
      this.say('rlm-lsp: no model', 'The log shows the reason.', vscode.LanguageStatusSeverity.Error);
    } else if (unit !== null && unit.reason !== null) {
      this.say('No prediction here', unit.reason, vscode.LanguageStatusSeverity.Warning);
    } else if (document !== null && document.abstained > 0 && document.answered === 0) {
      this.say('No prediction here', document.reason ?? '', vscode.LanguageStatusSeverity.Warning);
    } else {
      const device = unit !== null && unit.devices.length > 0 ? ` · ${unit.devices[0]}` : '';
      this.say('rlm-lsp', `${model}${device}`);
    }
  }

  private say(text: string, detail: string, severity = vscode.LanguageStatusSeverity.Information): void {
    this.item.text = text;
    // The item has a single line; the tooltip shows the full text.
    this.item.detail = detail.length > MOST_DETAIL ? `${detail.slice(0, MOST_DETAIL - 1)}…` : detail;
    this.item.command = { command: 'rlm-lsp.showLogs', title: 'Log', tooltip: detail };
    this.item.severity = severity;
  }
}
