/** Hints, hovers, findings, the overview and networks, as VS Code asks an extension for them. */

import * as assert from 'node:assert/strict';
import { mkdtempSync, readFileSync } from 'node:fs';
import * as os from 'node:os';
import * as path from 'node:path';
import * as vscode from 'vscode';

import { extension, hints, isRunning, lineOf, open, replace, set, someHints, until } from './tools';

interface Edit {
  readonly before: string;
  readonly after: string;
}

describe('features', () => {
  before(async () => {
    await isRunning(await extension());
  });

  it('shows hints behind signatures, and a hover on them', async () => {
    const document = await open('functions.py');
    assert.match((await someHints(document)).join(' '), /\d (ns|µs|ms)/);
    const line = lineOf(document, 'def variance');
    const hovers = await vscode.commands.executeCommand<vscode.Hover[]>(
      'vscode.executeHoverProvider',
      document.uri,
      new vscode.Position(line, 6),
    );
    const text = hovers.flatMap(({ contents }) => contents.map((one) => (typeof one === 'string' ? one : one.value)));
    assert.match(text.join('\n'), /peak memory/);
  });

  it('reports a budget that a held-out edit passes, and takes the finding back', async () => {
    const [folder] = vscode.workspace.workspaceFolders ?? [];
    assert.ok(folder);
    const edit = JSON.parse(readFileSync(path.join(folder.uri.fsPath, '..', 'edit.json'), 'utf8')) as Edit;
    const document = await open('orders.py');
    const [before] = await someHints(document);
    const findings = (): vscode.Diagnostic[] =>
      vscode.languages.getDiagnostics(document.uri).filter(({ source }) => source === 'rlm-lsp');
    assert.deepEqual(findings(), []);
    await replace(document, edit.after);
    const [finding] = await until('a finding', () => (findings().length > 0 ? findings() : undefined));
    assert.match(finding?.message ?? '', /budget/);
    await until('another hint', async () => (await hints(document))[0] !== before);
    await replace(document, edit.before);
    await until('no finding', () => findings().length === 0);
    await until('the hint from before', async () => (await hints(document))[0] === before);
    await vscode.commands.executeCommand('workbench.action.files.revert');
  });

  it('takes over settings at once, without another server', async () => {
    const { session } = await extension();
    const document = await open('functions.py');
    const process = session.processId;
    const [band] = await someHints(document);
    await set('label', 'median');
    await until('hints of medians', async () => {
      const [median] = await hints(document);
      return median !== undefined && median !== band && !median.includes('–');
    });
    await set('label', undefined);
    await until('hints of bands', async () => (await hints(document))[0] === band);
    assert.equal(session.processId, process);
  });

  it('passes the server only the settings that it knows', async () => {
    await isRunning(await extension());
    const log = await vscode.commands.executeCommand<string>('rlm-lsp.showLog');
    assert.doesNotMatch(log, /unknown setting/);
  });

  it('lists the units of the workspace by cost, filtered and page by page', async () => {
    const { overview } = await extension();
    await overview.load({ refresh: true });
    const all = [...overview.rows];
    assert.ok(all.length > 10);
    const costs = all.map(({ median }) => median ?? 0);
    assert.deepEqual(
      costs,
      [...costs].sort((one, other) => other - one),
    );
    await overview.load({ file: 'functions.py', metric: 'memory' });
    assert.ok(overview.rows.length > 3);
    assert.ok(overview.rows.every(({ file, metric }) => file === 'functions.py' && metric === 'memory'));
    await overview.clear();
    assert.deepEqual([...overview.rows], all);
  });

  it('exports the overview as CSV and as JSON', async () => {
    const { overview } = await extension();
    await overview.clear();
    const folder = mkdtempSync(path.join(os.tmpdir(), 'rlm-lsp-export-'));
    const written = async (name: string): Promise<string> => {
      const target = vscode.Uri.file(path.join(folder, name));
      await vscode.commands.executeCommand('rlm-lsp.overview.export', target);
      return readFileSync(target.fsPath, 'utf8');
    };
    const rows = JSON.parse(await written('costs.json')) as { file: string; median: number }[];
    assert.equal(rows.length, overview.rows.length);
    const lines = (await written('costs.csv')).trimEnd().split('\r\n');
    assert.equal(lines.length, rows.length + 1);
    assert.match(lines[0] ?? '', /^file,line,qualname,basis,metric,unit,median,/);
  });

  it('opens .onnx files in its own editor', async () => {
    const [folder] = vscode.workspace.workspaceFolders ?? [];
    assert.ok(folder);
    await vscode.commands.executeCommand('vscode.open', vscode.Uri.joinPath(folder.uri, 'networks', 'light.onnx'));
    const input = await until('its tab', () => vscode.window.tabGroups.activeTabGroup.activeTab?.input);
    assert.ok(input instanceof vscode.TabInputCustom);
    assert.equal(input.viewType, 'rlm-lsp.network');
  });
});
