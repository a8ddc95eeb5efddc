/** The workspace's units by predicted cost: loaded page by page, filtered by file, metric and device. */

import * as path from 'path';
import * as vscode from 'vscode';

import { OverviewPage, OverviewParams, overviewRequest, Row } from '../common/protocol';
import { asError, Session } from '../common/session';

export const VIEW = 'rlm-lsp.overview';
const PAGE = 100;
const ICONS: Readonly<Record<string, string>> = {
  call: 'symbol-method',
  program: 'symbol-file',
  kernel: 'zap',
  module: 'symbol-class',
  network: 'type-hierarchy',
};
const METRICS: Readonly<Record<string, string>> = { latency: 'Latency', memory: 'Peak memory', accuracy: 'Accuracy' };

export type Filter = Pick<OverviewParams, 'metric' | 'file' | 'device'>;
export type Node = { readonly row: Row } | 'more';

export class OverviewTree implements vscode.TreeDataProvider<Node>, vscode.Disposable {
  private readonly changed = new vscode.EventEmitter<void>();
  readonly onDidChangeTreeData = this.changed.event;
  private readonly view: vscode.TreeView<Node>;
  private readonly listeners: vscode.Disposable[];
  private nodes: Row[] = [];
  private page: OverviewPage | undefined;
  private filterNow: Filter = { metric: 'latency' };
  private turn = 0;

  constructor(private readonly session: Session) {
    this.view = vscode.window.createTreeView(VIEW, { treeDataProvider: this, showCollapseAll: false });
    this.listeners = [
      this.view,
      session.onDidChangeState(({ kind }) => {
        this.forget();
        if (kind === 'running' && this.view.visible) {
          void this.load({});
        }
      }),
      this.view.onDidChangeVisibility(({ visible }) => {
        if (visible && this.page === undefined && session.state.kind === 'running') {
          void this.load({});
        }
      }),
    ];
  }

  get filter(): Filter {
    return this.filterNow;
  }

  get rows(): readonly Row[] {
    return this.nodes;
  }

  get message(): string | undefined {
    return this.view.message;
  }

  /** Reload the list with another filter, or after reading the workspace again. */
  async load(change: Filter & { readonly refresh?: boolean }): Promise<void> {
    const { refresh, ...filter } = change;
    this.filterNow = { ...this.filterNow, ...filter };
    await this.next({ ...this.filterNow, refresh }, []);
  }

  /** Add the next page to the list. */
  async more(): Promise<void> {
    if (this.page?.cursor) {
      await this.next({ cursor: this.page.cursor }, this.nodes);
    }
  }

  /** All rows that match the filter, whether or not they are shown yet. */
  async all(): Promise<readonly Row[]> {
    const client = await this.session.running();
    const rows: Row[] = [];
    let cursor: string | null | undefined;
    while (client !== undefined && cursor !== null) {
      const params: OverviewParams = cursor === undefined ? this.filterNow : { cursor };
      const page: OverviewPage = await client.sendRequest(overviewRequest, { ...params, limit: 1000 });
      rows.push(...page.rows);
      cursor = page.cursor;
    }
    return rows;
  }

  async chooseMetric(): Promise<void> {
    const items = (this.page?.metrics ?? ['latency', 'memory']).map((metric) => ({
      label: METRICS[metric] ?? metric,
      metric,
      picked: metric === this.filterNow.metric,
    }));
    const picked = await vscode.window.showQuickPick(items, { title: 'Sort by' });
    if (picked !== undefined) {
      await this.load({ metric: picked.metric });
    }
  }

  async chooseDevice(): Promise<void> {
    const all = { label: 'All devices', device: undefined };
    const items = [all, ...(this.page?.devices ?? []).map((device) => ({ label: device, device }))];
    const picked = await vscode.window.showQuickPick<{ label: string; device: string | undefined }>(items, {
      title: 'Show predictions for',
    });
    if (picked !== undefined) {
      await this.load({ device: picked.device });
    }
  }

  async chooseFile(): Promise<void> {
    const file = await vscode.window.showInputBox({
      title: 'Filter by file',
      prompt: 'Part of the path, or a pattern such as src/**/*.py; leave empty for all files',
      value: this.filterNow.file ?? '',
    });
    if (file !== undefined) {
      await this.load({ file: file.trim() === '' ? undefined : file.trim() });
    }
  }

  async clear(): Promise<void> {
    await this.load({ metric: 'latency', file: undefined, device: undefined });
  }

  getTreeItem(node: Node): vscode.TreeItem {
    if (node === 'more') {
      const left = (this.page?.total ?? 0) - this.nodes.length;
      const item = new vscode.TreeItem(`Show more (${left.toLocaleString()} remaining)`);
      item.command = { command: `${VIEW}.more`, title: 'Show More' };
      item.iconPath = new vscode.ThemeIcon('ellipsis');
      return item;
    }
    const { row } = node;
    const item = new vscode.TreeItem(title(row));
    const place = row.basis === 'network' ? row.file : `${row.file}:${row.line + 1}`;
    // A list of a single file does not repeat its name, which a narrow view would cut off.
    const short = row.basis !== 'network' && row.file === this.filterNow.file ? `line ${row.line + 1}` : place;
    const cost = row.waitText ? row.waitText : row.medianText;
    item.description = `${cost} · ${short}`;
    item.tooltip = tooltip(row);
    item.iconPath = new vscode.ThemeIcon(ICONS[row.basis] ?? 'symbol-misc');
    item.command = { command: `${VIEW}.open`, title: 'Go to Source', arguments: [row] };
    item.accessibilityInformation = { label: `${title(row)}, ${row.metric} ${cost}, ${place}` };
    return item;
  }

  getChildren(node?: Node): Node[] {
    const more: Node[] = this.page?.cursor ? ['more'] : [];
    return node === undefined ? [...this.nodes.map((row) => ({ row })), ...more] : [];
  }

  dispose(): void {
    this.turn++;
    for (const listener of this.listeners) {
      listener.dispose();
    }
    this.changed.dispose();
  }

  private async next(params: OverviewParams, before: Row[]): Promise<void> {
    const turn = ++this.turn;
    const client = await this.session.running();
    if (client === undefined) {
      return;
    }
    await vscode.window.withProgress({ location: { viewId: VIEW } }, async () => {
      try {
        const page = await client.sendRequest(overviewRequest, { limit: PAGE, ...params });
        if (turn !== this.turn) {
          return;
        }
        this.page = page;
        this.nodes = [...before, ...page.rows];
        this.view.message = this.summary(page);
        this.view.description = this.filterWords();
        this.changed.fire();
      } catch (error) {
        if (turn === this.turn) {
          this.view.message = asError(error).message;
        }
      }
    });
  }

  private forget(): void {
    this.turn++;
    this.page = undefined;
    this.nodes = [];
    this.view.message = undefined;
    this.changed.fire();
  }

  private summary(page: OverviewPage): string | undefined {
    const sentences = [];
    if (page.total === 0) {
      sentences.push(
        page.units === 0 ? 'This folder contains no function, program or network.' : 'No result matches the filter.',
      );
    }
    if (page.abstained > 0) {
      sentences.push(`No prediction for ${page.abstained.toLocaleString()} of ${page.units.toLocaleString()}.`);
    }
    if (page.failed > 0) {
      sentences.push(`${count(page.failed, 'file')} could not be read.`);
    }
    if (!page.complete) {
      sentences.push('Reading was stopped; refresh to read all files.');
    }
    return sentences.length > 0 ? sentences.join(' ') : undefined;
  }

  private filterWords(): string {
    const { metric, file, device } = this.filterNow;
    return [METRICS[metric ?? 'latency'], device, file].filter((word) => word !== undefined).join(' · ');
  }
}

export async function goTo(row: Row): Promise<void> {
  const uri = vscode.Uri.parse(row.uri);
  if (row.basis === 'network') {
    await vscode.commands.executeCommand('vscode.open', uri);
    return;
  }
  const at = new vscode.Position(row.line, row.character);
  await vscode.window.showTextDocument(uri, { selection: new vscode.Range(at, at) });
}

function title(row: Row): string {
  return row.basis === 'network' || row.qualname === '<file>' ? path.posix.basename(row.file) : row.qualname;
}

function tooltip(row: Row): vscode.MarkdownString {
  const sizes = Object.entries(row.workload).map(([name, value]) => `${name} ${value}`);
  const text = new vscode.MarkdownString();
  text.appendText(`${title(row)}: ${METRICS[row.metric]?.toLowerCase() ?? row.metric} ${row.medianText}\n\n`);
  text.appendText(`80 % range: ${row.bandText}\n\n`);
  if (row.sourceText) {
    text.appendText(`${row.sourceText}\n\n`);
  }
  if (row.waitText) {
    text.appendText(`${row.waitText}\n\n`);
  }
  text.appendText([...(row.device !== null ? [`on ${row.device}`] : []), ...sizes].join(', '));
  return text;
}

function count(number: number, noun: string): string {
  return `${number.toLocaleString()} ${noun}${number === 1 ? '' : 's'}`;
}
