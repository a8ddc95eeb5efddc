/** The commands of the palette. Each reports what is missing when it cannot run. */

import * as os from 'os';
import * as vscode from 'vscode';
import { ExecuteCommandRequest } from 'vscode-languageclient/node';

import { SELECTOR } from './client';
import { compareWithHead } from './compare';
import { offerCommand } from './measure';
import { Row } from './protocol';
import { report } from './report';
import { Session } from './session';
import { SECTION } from './settings';
import { TextPages } from './texts';

export function registerCommands(
  context: vscode.ExtensionContext,
  session: Session,
  pages: TextPages,
): vscode.Disposable[] {
  const commands: Record<string, (...args: never[]) => unknown> = {
    restart: () => session.remedies.restart(),
    showLogs: () => session.showLog(),
    installServer: () => session.install(),
    chooseInterpreter: () => session.chooseInterpreter(),
    predictThisFile: () => predictFile(session),
    compareWithHead: () => compare(session),
    explainPrediction: () => explain(session),
    measureFunction: () => measure(session),
    toggleHintsInFile: () => toggleHints(session, (document) => ({ file: document.uri.toString() })),
    toggleHintsOfLanguage: () => toggleHints(session, (document) => ({ language: document.languageId })),
    openModelCard: () => openModelCard(context),
    aboutHints: () => showPage(vscode.Uri.joinPath(context.extensionUri, 'media', 'walkthrough', 'hints.md')),
    report: async () => pages.show('Report', await report(context, session)),
    showText: (title: string, text: string) => pages.show(title, text),
    showProblem: () => (session.problem !== undefined ? session.showProblem(session.problem) : session.showLog()),
  };
  return Object.entries(commands).map(([name, act]) => vscode.commands.registerCommand(`rlm-lsp.${name}`, act));
}

/** The active text editor if its language gets predictions; otherwise undefined, after a message. */
function activeEditor(): vscode.TextEditor | undefined {
  const editor = vscode.window.activeTextEditor;
  if (editor === undefined || vscode.languages.match(SELECTOR, editor.document) === 0) {
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

const UNITS: Readonly<Record<string, readonly (readonly [scale: number, symbol: string])[]>> = {
  latency: [
    [1, 's'],
    [1e-3, 'ms'],
    [1e-6, 'µs'],
  ],
  memory: [
    [1024 ** 3, 'GiB'],
    [1024 ** 2, 'MiB'],
    [1024, 'KiB'],
  ],
};
const SMALLEST: Readonly<Record<string, readonly [scale: number, symbol: string]>> = {
  latency: [1e-9, 'ns'],
  memory: [1, 'B'],
  accuracy: [0.01, '%'],
};

/** A value in SI units as text, with two significant digits. */
export function quantity(metric: string, value: number): string {
  const [scale, symbol] = UNITS[metric]?.find(([size]) => value >= size) ?? SMALLEST[metric] ?? [1, ''];
  return `${Number((value / scale).toPrecision(2))} ${symbol}`;
}

async function explain(session: Session): Promise<void> {
  const editor = activeEditor();
  if (editor === undefined) {
    return;
  }
  const { line, character } = editor.selection.active;
  const explanation = await ask<{ markdown: string }>(session, 'rlm-lsp.explain', [
    editor.document.uri.toString(),
    { line, character },
  ]);
  if (explanation !== undefined) {
    await vscode.commands.executeCommand('rlm-lsp.showText', 'Explanation', explanation.markdown);
  }
}

async function toggleHints(session: Session, of: (document: vscode.TextDocument) => object): Promise<void> {
  const editor = activeEditor();
  if (editor === undefined) {
    return;
  }
  const hidden = await ask<boolean>(session, 'rlm-lsp.toggleHints', [of(editor.document)]);
  if (hidden !== undefined) {
    vscode.window.setStatusBarMessage(hidden ? 'rlm-lsp: hints hidden' : 'rlm-lsp: hints shown', 4000);
  }
}

async function compare(session: Session): Promise<void> {
  const editor = activeEditor();
  if (editor === undefined) {
    return;
  }
  if (editor.document.isUntitled) {
    void vscode.window.showInformationMessage('Save the file first: an unsaved file is not in HEAD.');
    return;
  }
  const rows = await ask<PredictedRow[]>(session, 'rlm-lsp.predictFile', [editor.document.uri.toString()]);
  const client = rows && (await session.running());
  if (rows === undefined || client === undefined) {
    return;
  }
  const places = new Map(rows.map(({ qualname, line }) => [line, { name: named(qualname), line: line - 1 }]));
  await compareWithHead(client, editor.document, [...places.values()]);
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
  const model = vscode.workspace.getConfiguration(SECTION).get<string | null>('model', null);
  const bundled = vscode.Uri.joinPath(context.extensionUri, 'bundled', 'MODEL_CARD.md');
  const custom =
    model !== null && model !== 'builtin' && !/^https?:/i.test(model)
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

function named(qualname: string): string {
  return qualname === '<file>' ? 'this file' : qualname;
}
