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

  it('shows other details after an edit, and those of another server', async () => {
    const { session } = await extension();
    const document = await open('functions.py');
    const hover = await hoverOn(document, 'def variance');
    const [, args = ''] = /\[Details\]\(command:[\w.-]+\?(\S+) /.exec(hover) ?? [];
    const [link = ''] = JSON.parse(decodeURIComponent(args)) as string[];
    const details = await vscode.workspace.openTextDocument(vscode.Uri.parse(link));
    assert.match(details.getText(), /bands checked on/);
    const text = document.getText();
    await replace(document, text.replaceAll('variance', 'renamed'));
    await until('that the function is gone', () => /no prediction any more/.test(details.getText()));
    await replace(document, text);
    await until('the details from before', () => /bands checked on/.test(details.getText()));
    void vscode.commands.executeCommand('rlm-lsp.restart');
    await until('that no server runs', () => session.state.kind === 'starting');
    await replace(document, text.replaceAll('variance', 'renamed'));
    await until('the details of the new server', () => /no prediction any more/.test(details.getText()));
    await vscode.window.showTextDocument(document);
    await vscode.commands.executeCommand('workbench.action.files.revert');
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
    assert.notDeepEqual(costs, falling(costs)); // of groups that are not compared with each other
    const groups = overview.getChildren();
    const titles = groups.map((node) => overview.getTreeItem(node).label);
    assert.deepEqual(titles, ['Calls', 'Judge runs', 'GPU kernels and passes', 'Networks']);
    for (const group of groups) {
      const first = overview.getChildren(group).map((node) => {
        assert.ok(node !== 'more' && !('files' in node));
        return ('rows' in node ? node.rows[0]?.median : node.row.median) ?? 0;
      });
      assert.deepEqual(first, falling(first));
    }
    const nodes = groups.flatMap((group) => overview.getChildren(group)).filter((node) => node !== 'more');
    const networks = nodes.filter((node) => 'row' in node);
    assert.equal(networks.length, all.filter(({ basis }) => basis === 'network').length);
    for (const node of networks) {
      const { label, description, collapsibleState } = overview.getTreeItem(node);
      assert.equal(label, `${node.row.medianText} · ${path.basename(node.row.file)}`);
      assert.equal(description, `${node.row.deviceName} · ${path.dirname(node.row.file)}`);
      assert.equal(collapsibleState, vscode.TreeItemCollapsibleState.Collapsed);
      const others = overview.getChildren(node).map((other) => String(overview.getTreeItem(other).label));
      assert.ok(others.length > 4 && new Set(others).size === others.length, others.join(', '));
      assert.ok(others.every((other) => !other.includes(node.row.deviceName ?? '')));
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

  it('updates the overview after an edit, and says that it is out of date in between', async () => {
    const { overview } = await extension();
    await vscode.commands.executeCommand('rlm-lsp.overview.focus');
    await overview.load({ refresh: true });
    const document = await open('functions.py');
    const names = (): Set<string> => new Set(overview.rows.map(({ qualname }) => qualname));
    const messages = new Set<string | undefined>();
    const drawn = overview.onDidChangeTreeData(() => messages.add(overview.message));
    assert.ok(names().has('variance'));
    await replace(document, document.getText().replaceAll('variance', 'renamed'));
    await until('the renamed function', () => names().has('renamed') && !names().has('variance'));
    drawn.dispose();
    assert.ok([...messages].some((message) => message?.startsWith('Out of date; updating soon.')));
    assert.match(overview.message ?? '', /Callers in other files are updated when you save/);
    await vscode.window.showTextDocument(document);
    await vscode.commands.executeCommand('workbench.action.files.revert');
    await until('the function from before', () => names().has('variance') && !names().has('renamed'));
    await until('no message', () => !/Out of date|Callers/.test(overview.message ?? ''));
  });

  it('updates the overview when a file is written, which no editor has open', async () => {
    const { overview } = await extension();
    const [folder] = vscode.workspace.workspaceFolders ?? [];
    assert.ok(folder);
    const file = path.join(folder.uri.fsPath, 'written.py');
    const isListed = (): boolean => overview.rows.some(({ qualname }) => qualname === 'written');
    writeFileSync(file, 'def written(n):\n    return sorted(range(n))\n');
    try {
      await until('its function', isListed);
    } finally {
      rmSync(file);
    }
    await until('that it is gone', () => !isListed());
  });

  it('lists the functions of a notebook with their cells, and goes to them', async () => {
    const { overview } = await extension();
    const [folder] = vscode.workspace.workspaceFolders ?? [];
    assert.ok(folder);
    await overview.load({ file: 'analysis.ipynb', refresh: true });
    const [file] = overview.getChildren();
    const places = overview.getChildren(file).map((node) => {
      const { label, description } = overview.getTreeItem(node);
      return [String(label).split(' · ').at(-1), description];
    });
    assert.deepEqual(places.sort(), [
      ['count_pairs', 'cell 3, line 4'],
      ['pairs', 'cell 2, line 1'],
    ]);
    const row = overview.rows.find(({ qualname }) => qualname === 'count_pairs');
    await vscode.commands.executeCommand('rlm-lsp.overview.open', row);
    const editor = await until('the cell', () => vscode.window.activeTextEditor);
    assert.equal(editor.document.uri.scheme, 'vscode-notebook-cell');
    assert.equal(vscode.window.activeNotebookEditor?.notebook.cellAt(2).document, editor.document);
    assert.equal(editor.selection.active.line, 3);
    // The cells of an open notebook are numbered too.
    await until('the rows of the open notebook', () => overview.rows.every(({ cellUri }) => cellUri));
    const [openFile] = overview.getChildren();
    const again = overview.getChildren(openFile).map((node) => overview.getTreeItem(node).description);
    assert.deepEqual(again.sort(), ['cell 2, line 1', 'cell 3, line 4']);
    await vscode.commands.executeCommand('workbench.action.closeAllEditors');
    await overview.clear();
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
    assert.equal(rows.length, overview.rows.flatMap((row) => [row, ...(row.others ?? [])]).length);
    const lines = (await written('costs.csv')).trimEnd().split('\r\n');
    assert.equal(lines.length, rows.length + 1);
    assert.match(lines[0] ?? '', /^file,cell,line,qualname,basis,metric,unit,median,/);
  });

  it('shows the latencies of a network in the hover of a call that names its file', async () => {
    const [folder] = vscode.workspace.workspaceFolders ?? [];
    assert.ok(folder);
    const file = path.join(folder.uri.fsPath, 'serve.py');
    writeFileSync(file, 'import onnxruntime\n\nsession = onnxruntime.InferenceSession("networks/light.onnx")\n');
    try {
      const hover = await hoverOn(await open('serve.py'), 'session = onnxruntime.Inference');
      assert.match(hover, /light\.onnx.*predicted latency/);
      assert.match(hover, /\| Intel Core i7-12700H/);
      assert.match(hover, /Most expensive on/);
    } finally {
      await vscode.commands.executeCommand('workbench.action.closeActiveEditor');
      rmSync(file);
    }
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
