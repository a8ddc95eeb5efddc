/** What the tests in the extension host share. */

import * as assert from 'node:assert/strict';
import { chmodSync, mkdirSync, mkdtempSync, writeFileSync } from 'node:fs';
import * as os from 'node:os';
import * as path from 'node:path';
import * as vscode from 'vscode';

import type { Api } from '../../../../vscode-extension/src/extension';

export async function extension(): Promise<Api> {
  const found = vscode.extensions.getExtension<Api>('rlm-lsp.rlm-lsp');
  assert.ok(found, 'the extension is installed');
  return found.activate();
}

/** Wait until `what` gives something. */
export async function until<T>(said: string, what: () => T | Promise<T>, seconds = 90): Promise<NonNullable<T>> {
  const end = Date.now() + seconds * 1000;
  while (Date.now() < end) {
    const found = await what();
    if (found) {
      return found;
    }
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
  throw new Error(`waited ${seconds} s for ${said}`);
}

/** Open a file of the workspace. */
export async function open(name: string): Promise<vscode.TextDocument> {
  const [folder] = vscode.workspace.workspaceFolders ?? [];
  assert.ok(folder);
  const document = await vscode.workspace.openTextDocument(vscode.Uri.joinPath(folder.uri, name));
  await vscode.window.showTextDocument(document);
  return document;
}

export async function hints(document: vscode.TextDocument): Promise<string[]> {
  const all = new vscode.Range(0, 0, document.lineCount, 0);
  const found = await vscode.commands.executeCommand<vscode.InlayHint[]>(
    'vscode.executeInlayHintProvider',
    document.uri,
    all,
  );
  return found.map(({ label }) => (typeof label === 'string' ? label : label.map(({ value }) => value).join('')));
}

export function someHints(document: vscode.TextDocument): Promise<string[]> {
  return until('hints', async () => {
    const found = await hints(document);
    return found.length > 0 ? found : undefined;
  });
}

/** The text of the hovers on the name of a function. */
export async function hoverOn(document: vscode.TextDocument, signature: string): Promise<string> {
  const at = new vscode.Position(lineOf(document, signature), signature.length - 1);
  const hovers = await vscode.commands.executeCommand<vscode.Hover[]>('vscode.executeHoverProvider', document.uri, at);
  const texts = hovers.flatMap(({ contents }) => contents.map((one) => (typeof one === 'string' ? one : one.value)));
  return texts.join('\n');
}

/** The first line that holds a text. */
export function lineOf(document: vscode.TextDocument, text: string): number {
  return document
    .getText()
    .split('\n')
    .findIndex((line) => line.includes(text));
}

export async function replace(document: vscode.TextDocument, text: string): Promise<void> {
  const edit = new vscode.WorkspaceEdit();
  edit.replace(document.uri, new vscode.Range(0, 0, document.lineCount, 0), text);
  assert.ok(await vscode.workspace.applyEdit(edit));
}

export async function set(name: string, value: unknown): Promise<void> {
  await vscode.workspace.getConfiguration('rlm-lsp').update(name, value, vscode.ConfigurationTarget.Global);
}

export function isRunning({ session }: Api): Promise<boolean> {
  return until('a running server', () => session.state.kind === 'running');
}

/** A program of a few lines of shell. */
export function program(...lines: string[]): string {
  const folder = mkdtempSync(path.join(os.tmpdir(), 'rlm-lsp-program-'));
  mkdirSync(folder, { recursive: true });
  const file = path.join(folder, 'server');
  writeFileSync(file, ['#!/bin/sh', ...lines, ''].join('\n'));
  chmodSync(file, 0o755);
  return file;
}
