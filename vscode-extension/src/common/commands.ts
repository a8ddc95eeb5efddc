/** The commands of the palette. Each reports what is missing when it cannot run. */

import * as os from 'os';
import * as vscode from 'vscode';
import { ExecuteCommandRequest } from 'vscode-languageclient/node';

import { isSupported, SHOW_DETAILS, SHOW_GPUS } from './client';
import { compareWithHead, named } from './compare';
import { Explanations } from './explanation';
import { offerCommand } from './measure';
import { Row } from './protocol';
import { quantity } from './quantity';
import { report } from './report';
import { Session } from './session';
import { SECTION } from './settings';
import { showMenu, StatusItem } from './status';
import { showBeside, TextPages } from './texts';

export function registerCommands(
  context: vscode.ExtensionContext,
  session: Session,
  status: StatusItem,
  pages: TextPages,
  explanations: Explanations,
): vscode.Disposable[] {
  // What the server has hidden; a new server shows everything.
  const hidden = new Map<string, boolean>();
  const toggle = (keyOf: (document: vscode.TextDocument) => object): Promise<void> =>
    toggleHints(session, keyOf, hidden);
  const commands: Record<string, (...args: never[]) => unknown> = {
    restart: () => session.remedies.restart(),
    showLogs: () => session.showLog(),
    installServer: () => session.install(),
    chooseInterpreter: () => session.chooseInterpreter(),
    predictThisFile: () => predictFile(session),
    compareWithHead: () => compare(session),
    explainPrediction: (uri?: string, position?: vscode.Position, metric?: string) => {
      const editor = uri === undefined || position === undefined ? activeEditor() : undefined;
      const place = editor && { uri: editor.document.uri.toString(), position: editor.selection.active };
      const asked = uri !== undefined && position !== undefined ? { uri, position } : place;
      return asked && explanations.explain(asked, metric);
    },
    measureFunction: () => measure(session),
    toggleHintsInFile: () => toggle(({ uri }) => ({ file: uri.toString() })),
    toggleAllHints: () => toggleAllHints(session),
    toggleHintsOfLanguage: () => toggle(({ languageId }) => ({ language: languageId })),
    menu: () => {
      const document = vscode.window.activeTextEditor?.document;
      const isOurs = document !== undefined && isSupported(document);
      return showMenu(
        session,
        status,
        isOurs ? (hidden.get(keyed({ file: document.uri.toString() })) ?? false) : undefined,
      );
    },
    openModelCard: () => openModelCard(context),
    aboutHints: () => showPage(vscode.Uri.joinPath(context.extensionUri, 'media', 'walkthrough', 'hints.md')),
    report: async () => pages.show('Report', await report(context, session)),
    showProblem: () => (session.problem !== undefined ? session.showProblem(session.problem) : session.showLog()),
  };
  return [
    vscode.commands.registerCommand(SHOW_DETAILS, (uri: string) => showBeside(vscode.Uri.parse(uri))),
    vscode.commands.registerCommand(SHOW_GPUS, (text: string) => pages.show('GPUs', text)),
    ...Object.entries(commands).map(([name, act]) => vscode.commands.registerCommand(`rlm-lsp.${name}`, act)),
    session.onDidChangeState(({ kind }) => {
      if (kind === 'starting') {
        hidden.clear();
      }
    }),
  ];
}

/** The active text editor if its language gets predictions; otherwise undefined, after a message. */
function activeEditor(): vscode.TextEditor | undefined {
  const editor = vscode.window.activeTextEditor;
  if (editor === undefined || !isSupported(editor.document)) {
    void vscode.window.showInformationMessage(
      'Open a file in a language that rlm-lsp supports, such as Python or C++.',
    );
    return undefined;
  }
  return editor;
}

async function ask<T>(session: Session, command: string, args: readonly unknown[]): Promise<T | undefined> {
  const client = await session.running();
  if (client === undefined) {
    return undefined;
  }
  try {
    return (await client.sendRequest(ExecuteCommandRequest.type, { command, arguments: [...args] })) as T;
  } catch (error) {
    void vscode.window.showErrorMessage(`rlm-lsp: ${error instanceof Error ? error.message : String(error)}`);
    return undefined;
  }
}

interface PredictedRow extends Omit<Row, 'line'> {
  /** Counted from 1, as in the output of `rlm-lsp predict`. */
  readonly line: number;
}

async function predictFile(session: Session): Promise<void> {
  const editor = activeEditor();
  const uri = editor?.document.uri.toString();
  const rows = editor && (await ask<PredictedRow[]>(session, 'rlm-lsp.predictFile', [uri]));
  if (editor === undefined || rows === undefined) {
    return;
  }
  if (rows.length === 0) {
    void vscode.window.showInformationMessage('rlm-lsp: this file contains nothing to predict.');
    return;
  }
  const byUnit = new Map<string, PredictedRow[]>();
  for (const row of rows) {
    const key = `${row.line} ${row.qualname}`;
    byUnit.set(key, [...(byUnit.get(key) ?? []), row]);
  }
  const items = [...byUnit.values()].flatMap((predictions) =>
    predictions.slice(0, 1).map((first) => ({
      label: named(first.qualname),
      description: [...new Set(predictions.map(words))].join(' · '),
      line: first.line - 1,
    })),
  );
  const picked = await vscode.window.showQuickPick(items, {
    title: 'Predicted cost of this file',
    placeHolder: 'Select a function to go to it',
    matchOnDescription: true,
  });
  if (picked !== undefined) {
    const at = new vscode.Position(picked.line, 0);
    const shown = await vscode.window.showTextDocument(editor.document);
    shown.selection = new vscode.Selection(at, at);
    shown.revealRange(new vscode.Range(at, at), vscode.TextEditorRevealType.InCenter);
  }
}

const MARKS: Readonly<Record<string, string>> = { measured: '✓ ', anchored: '≈ ' };

function words(row: PredictedRow): string {
  if (row.median === null) {
    return `${row.metric}: no prediction (${row.abstained ?? 'unknown'})`;
  }
  // A median of 0 is below the resolution of the measurement.
  const value = row.median > 0 ? quantity(row.metric, row.median) : `≤${quantity(row.metric, row.high ?? 0)}`;
  return `${row.metric} ${MARKS[row.source ?? ''] ?? ''}${value}`;
}

async function toggleHints(
  session: Session,
  keyOf: (document: vscode.TextDocument) => object,
  hidden: Map<string, boolean>,
): Promise<void> {
  const editor = activeEditor();
  if (editor === undefined) {
    return;
  }
  const key = keyOf(editor.document);
  const isHidden = await ask<boolean>(session, 'rlm-lsp.toggleHints', [key]);
  if (isHidden !== undefined) {
    hidden.set(keyed(key), isHidden);
    vscode.window.setStatusBarMessage(isHidden ? 'rlm-lsp: hints hidden' : 'rlm-lsp: hints shown', 4000);
  }
}

/** Show the hints of all functions, or again of those that matter. */
async function toggleAllHints(session: Session): Promise<void> {
  const areAll = await ask<boolean>(session, 'rlm-lsp.showAllHints', []);
  if (areAll !== undefined) {
    const words = areAll ? 'hints of all functions are shown' : 'hints are shown where they matter';
    vscode.window.setStatusBarMessage(`rlm-lsp: ${words}`, 4000);
  }
}

function keyed(key: object): string {
  return JSON.stringify(key);
}

async function compare(session: Session): Promise<void> {
  const editor = activeEditor();
  if (editor === undefined) {
    return;
  }
  if (editor.document.uri.scheme !== 'file') {
    void vscode.window.showInformationMessage(
      editor.document.isUntitled
        ? 'Save the file first: an unsaved file is not in HEAD.'
        : 'Cells of a notebook cannot be compared with HEAD.',
    );
    return;
  }
  const client = await session.running();
  if (client !== undefined) {
    await compareWithHead(client, editor.document);
  }
}

async function measure(session: Session): Promise<void> {
  const editor = activeEditor();
  const uri = editor?.document.uri.toString();
  const command = editor && (await ask<string>(session, 'rlm-lsp.measureCommand', [uri]));
  if (command !== undefined && session.state.kind === 'running') {
    await offerCommand(command, session.state.server);
  }
}

async function showPage(file: vscode.Uri): Promise<void> {
  await vscode.commands.executeCommand('markdown.showPreview', file);
}

async function openModelCard(context: vscode.ExtensionContext): Promise<void> {
  const model = vscode.workspace.getConfiguration(SECTION).get<string>('model', 'builtin');
  const bundled = vscode.Uri.joinPath(context.extensionUri, 'bundled', 'MODEL_CARD.md');
  const custom =
    model !== '' && model !== 'builtin' && !/^https?:/i.test(model)
      ? vscode.Uri.joinPath(vscode.Uri.file(model.replace(/^~(?=$|\/)/, os.homedir())), 'MODEL_CARD.md')
      : undefined;
  for (const card of custom === undefined ? [bundled] : [custom, bundled]) {
    try {
      await vscode.workspace.fs.stat(card);
    } catch {
      continue;
    }
    if (card === bundled && custom !== undefined) {
      void vscode.window.showInformationMessage(
        'Your model has no MODEL_CARD.md; this is the card of the shipped model.',
      );
    }
    await showPage(card);
    return;
  }
  void vscode.window.showInformationMessage('This build of the extension does not include a model card.');
}
