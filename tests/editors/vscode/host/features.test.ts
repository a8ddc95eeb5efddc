/** Hints, hovers, findings, the overview and networks, as VS Code asks an extension for them. */

import * as assert from 'node:assert/strict';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import * as os from 'node:os';
import * as path from 'node:path';
import * as vscode from 'vscode';

import { extension, hints, hoverOn, isRunning, open, replace, set, someHints, until } from './tools';

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
    assert.match(await hoverOn(document, 'def variance'), /peak memory/);
  });

  it('opens what the numbers of a hover rest on', async () => {
    const document = await open('functions.py');
    const hover = await hoverOn(document, 'def variance');
    const [, command, args] = /\[Details\]\(command:([\w.-]+)\?(\S+) /.exec(hover) ?? [];
    assert.ok(command === 'rlm-lsp.showDetails', hover);
    assert.doesNotMatch(hover, /bands checked on/);
    const [link = ''] = JSON.parse(decodeURIComponent(args ?? '')) as string[];
    const details = await vscode.workspace.openTextDocument(vscode.Uri.parse(link));
    assert.match(details.getText(), /bands checked on/);
    await vscode.commands.executeCommand(command, link);
    await until('the preview', () =>
      vscode.window.tabGroups.all.some(({ activeTab }) => activeTab?.label.includes('variance.md')),
    );
    await vscode.commands.executeCommand('workbench.action.closeAllEditors');
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

  it('lists the units of the workspace by cost, grouped by file and filtered', async () => {
    const { overview } = await extension();
    await overview.load({ refresh: true });
    const all = [...overview.rows];
    assert.ok(all.length > 10);
    const costs = all.map(({ median }) => median ?? 0);
    const falling = (numbers: number[]): number[] => [...numbers].sort((one, other) => other - one);
    assert.deepEqual(costs, falling(costs));
    const nodes = overview.getChildren().filter((node) => node !== 'more');
    assert.equal(nodes.length, new Set(all.map(({ uri }) => uri)).size);
    const first = nodes.map((node) => ('rows' in node ? node.rows[0]?.median : node.row.median) ?? 0);
    assert.deepEqual(first, falling(first));
    const networks = nodes.filter((node) => 'row' in node);
    assert.equal(networks.length, all.filter(({ basis }) => basis === 'network').length);
    for (const node of networks) {
      const { label, description, collapsibleState } = overview.getTreeItem(node);
      assert.equal(label, `${node.row.medianText} · ${path.basename(node.row.file)}`);
      assert.equal(description, path.dirname(node.row.file));
      assert.equal(collapsibleState, vscode.TreeItemCollapsibleState.None);
    }
    const files = nodes.filter((node) => 'rows' in node);
    for (const node of files) {
      const [child] = overview.getChildren(node);
      assert.ok(child !== undefined && child !== 'more' && 'row' in child);
      const { label } = overview.getTreeItem(child);
      assert.ok(
        typeof label === 'string' && label.startsWith(child.row.waitText || child.row.medianText),
        String(label),
      );
    }
    await overview.load({ file: 'functions.py', metric: 'memory' });
    assert.ok(overview.rows.length > 3);
    assert.ok(overview.rows.every(({ file, metric }) => file === 'functions.py' && metric === 'memory'));
    await overview.clear();
    assert.deepEqual([...overview.rows], all);
  });

  it('lists the files of all folders of a workspace, also those of the same name', async () => {
    const { overview } = await extension();
    await overview.load({ file: 'functions.py', refresh: true });
    const files = overview.getChildren().map((node) => overview.getTreeItem(node));
    const described = files.map(({ resourceUri, description }) => [
      path.basename(resourceUri?.path ?? ''),
      String(description).split(' · ').at(-1),
    ]);
    assert.deepEqual(described.sort(), [
      ['functions.py', 'depot'],
      ['functions.py', 'shop'],
    ]);
    await overview.clear();
  });

  it('lists a nested function by its own name', async () => {
    const { overview } = await extension();
    const [folder] = vscode.workspace.workspaceFolders ?? [];
    assert.ok(folder);
    const file = path.join(folder.uri.fsPath, 'nested.py');
    writeFileSync(file, 'def outer(n):\n    def inner(k):\n        return sorted(range(k))\n\n    return inner(n)\n');
    try {
      await overview.load({ file: 'nested.py', refresh: true });
      const rows = overview.getChildren().flatMap((node) => overview.getChildren(node));
      const labels = rows.map((node) => String(overview.getTreeItem(node).label).split(' · ').at(-1));
      assert.deepEqual(labels.sort(), ['inner', 'outer']);
      const [inner] = rows.filter((node) => node !== 'more' && 'row' in node && node.row.qualname.includes('<locals>'));
      assert.ok(inner);
      const { tooltip } = overview.getTreeItem(inner);
      assert.ok(tooltip instanceof vscode.MarkdownString);
      assert.match(tooltip.value, /outer.*inner/);
    } finally {
      rmSync(file);
      await overview.clear();
    }
  });

  it('fills the overview while the workspace is read, without tests unless they are wanted', async () => {
    const { overview } = await extension();
    const [folder] = vscode.workspace.workspaceFolders ?? [];
    assert.ok(folder);
    const many = path.join(folder.uri.fsPath, 'many');
    mkdirSync(path.join(many, 'tests'), { recursive: true });
    writeFileSync(path.join(many, 'tests', 'check.py'), 'def check_all(n):\n    return [n] * n\n');
    for (let number = 0; number < 40; number++) {
      const text = `def f${number}(n):\n    return [sorted(range(n + ${number})) for i in range(${number})]\n`;
      writeFileSync(path.join(many, `unit_${number}.py`), text);
    }
    try {
      const sizes: number[] = [];
      const messages = new Set<string | undefined>();
      const drawn = overview.onDidChangeTreeData(() => {
        sizes.push(overview.rows.length);
        messages.add(overview.message);
      });
      await overview.load({ refresh: true });
      drawn.dispose();
      const last = sizes.at(-1) ?? 0;
      assert.ok(
        sizes.some((size) => size > 0 && size < last),
        sizes.join(', '),
      );
      assert.ok([...messages].some((message) => /^\d+ of \d+ files read\.$/.test(message ?? '')));
      const names = (): Set<string> => new Set(overview.rows.map(({ qualname }) => qualname));
      assert.ok(names().has('f39') && !names().has('check_all'));
      await vscode.commands.executeCommand('rlm-lsp.overview.showTests');
      assert.ok(names().has('check_all'));
      await vscode.commands.executeCommand('rlm-lsp.overview.hideTests');
      assert.ok(!names().has('check_all'));
    } finally {
      rmSync(many, { recursive: true });
      await overview.load({ refresh: true });
    }
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
