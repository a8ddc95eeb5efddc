/**
 * The workspace's units by predicted cost, grouped by file, the most expensive first. Rows appear while the server reads the
 * workspace; the list is filtered by file, metric and device, and leaves out tests unless the user wants them.
 */

import * as path from 'path';
import * as vscode from 'vscode';

import { READING_WORKSPACE } from '../common/client';
import { OverviewPage, OverviewParams, overviewPart, overviewRequest, Row } from '../common/protocol';
import { asError, Session } from '../common/session';

export const VIEW = 'rlm-lsp.overview';
const PAGE = 1000;
/** While rows arrive, the list is drawn no more often than this. */
const DRAW_MS = 250;
const ICONS: Readonly<Record<string, string>> = {
  call: 'symbol-method',
  program: 'symbol-file',
  kernel: 'zap',
  module: 'symbol-class',
  network: 'type-hierarchy',
};
const METRICS: Readonly<Record<string, string>> = { latency: 'Latency', memory: 'Peak memory', accuracy: 'Accuracy' };

export type Filter = Pick<OverviewParams, 'metric' | 'file' | 'device' | 'tests'>;
/** A file with its rows, the most expensive first. */
export interface FileNode {
  readonly uri: string;
  readonly rows: readonly Row[];
}
/** A prediction; `isFile` if no group above it has the name of its file. */
export interface RowNode {
  readonly row: Row;
  readonly isFile?: boolean;
}
export type Node = FileNode | RowNode | 'more';

const DEFAULT_FILTER: Filter = { metric: 'latency', tests: false };

export class OverviewTree implements vscode.TreeDataProvider<Node>, vscode.Disposable {
  private readonly changed = new vscode.EventEmitter<void>();
  readonly onDidChangeTreeData = this.changed.event;
  private readonly view: vscode.TreeView<Node>;
  private readonly listeners: vscode.Disposable[];
  private loaded: readonly Row[] = [];
  private page: OverviewPage | undefined;
  private filterNow: Filter = DEFAULT_FILTER;
  private turn = 0;
  private timer: NodeJS.Timeout | undefined;

  constructor(private readonly session: Session) {
    this.view = vscode.window.createTreeView(VIEW, { treeDataProvider: this, showCollapseAll: true });
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
    return this.loaded;
  }

  get message(): string | undefined {
    return this.view.message;
  }

  /** Reload the list with another filter, or after reading the workspace again. */
  async load(change: Filter & { readonly refresh?: boolean }): Promise<void> {
    const { refresh, ...filter } = change;
    this.filterNow = { ...this.filterNow, ...filter };
    void vscode.commands.executeCommand('setContext', `${VIEW}.tests`, this.filterNow.tests === true);
    this.view.description = this.filterWords();
    await this.next({ ...this.filterNow, refresh }, []);
  }

  /** Add the next page to the list. */
  async more(): Promise<void> {
    if (this.page?.cursor) {
      await this.next({ cursor: this.page.cursor }, this.loaded);
    }
  }

  /** Stop reading the workspace; the list keeps what was read. */
  stop(): void {
    for (const work of this.session.works.filter(({ title }) => title === READING_WORKSPACE)) {
      this.session.cancel(work);
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
    await this.load({ ...DEFAULT_FILTER, file: undefined, device: undefined });
  }

  getTreeItem(node: Node): vscode.TreeItem {
    if (node === 'more') {
      const left = (this.page?.total ?? 0) - this.loaded.length;
      const item = new vscode.TreeItem(`Show more (${left.toLocaleString()} remaining)`);
      item.command = { command: `${VIEW}.more`, title: 'Show More' };
      item.iconPath = new vscode.ThemeIcon('ellipsis');
      return item;
    }
    return 'row' in node ? rowItem(node) : fileItem(node);
  }

  getChildren(node?: Node): Node[] {
    if (node === undefined) {
      return [...byFile(this.loaded).map(withoutGroup), ...(this.page?.cursor ? (['more'] as const) : [])];
    }
    return node !== 'more' && 'rows' in node ? node.rows.map((row) => ({ row })) : [];
  }

  dispose(): void {
    this.turn++;
    clearTimeout(this.timer);
    for (const listener of this.listeners) {
      listener.dispose();
    }
    this.changed.dispose();
  }

  private async next(params: OverviewParams, before: readonly Row[]): Promise<void> {
    const turn = ++this.turn;
    const client = await this.session.running();
    if (client === undefined || turn !== this.turn) {
      return;
    }
    const partialResultToken = `${VIEW} ${turn}`;
    let early: Row[] = [];
    const parts = client.onProgress(overviewPart, partialResultToken, ({ rows, done, total }) => {
      if (turn === this.turn) {
        early = [...early, ...rows].sort(byCost).slice(0, PAGE);
        this.loaded = early;
        this.page = undefined;
        this.view.message = `${done.toLocaleString()} of ${count(total, 'file')} read.`;
        this.drawSoon();
      }
    });
    if (params.cursor === undefined) {
      this.view.message = 'Reading the workspace…';
    }
    void vscode.commands.executeCommand('setContext', `${VIEW}.reading`, true);
    await vscode.window.withProgress({ location: { viewId: VIEW } }, async () => {
      try {
        const page = await client.sendRequest(overviewRequest, { limit: PAGE, partialResultToken, ...params });
        if (turn === this.turn) {
          this.page = page;
          this.loaded = [...before, ...page.rows];
          this.view.message = this.summary(page);
          this.draw();
        }
      } catch (error) {
        if (turn === this.turn) {
          this.view.message = asError(error).message;
        }
      }
    });
    parts.dispose();
    if (turn === this.turn) {
      void vscode.commands.executeCommand('setContext', `${VIEW}.reading`, false);
    }
  }

  private draw(): void {
    clearTimeout(this.timer);
    this.timer = undefined;
    this.changed.fire();
  }

  private drawSoon(): void {
    this.timer ??= setTimeout(() => this.draw(), DRAW_MS);
  }

  private forget(): void {
    this.turn++;
    this.page = undefined;
    this.loaded = [];
    this.view.message = undefined;
    this.draw();
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
    const { metric, file, device, tests } = this.filterNow;
    const words = [METRICS[metric ?? 'latency'], device, file, tests === true ? 'with tests' : 'without tests'];
    return words.filter((word) => word !== undefined).join(' · ');
  }
}

/** The files of rows, in the order of their first, most expensive row. */
export function byFile(rows: readonly Row[]): FileNode[] {
  const files = new Map<string, Row[]>();
  for (const row of rows) {
    const known = files.get(row.uri);
    if (known === undefined) {
      files.set(row.uri, [row]);
    } else {
      known.push(row);
    }
  }
  return [...files].map(([uri, ofFile]) => ({ uri, rows: ofFile }));
}

/** A network is its file: with a single prediction it needs no group. */
function withoutGroup(file: FileNode): Node {
  const [row] = file.rows;
  return row?.basis === 'network' && file.rows.length === 1 ? { row, isFile: true } : file;
}

/** The most expensive first; of accuracies, the lowest. */
function byCost(one: Row, other: Row): number {
  const difference = (other.median ?? 0) - (one.median ?? 0);
  return one.metric === 'accuracy' ? -difference : difference;
}

function fileItem({ uri, rows }: FileNode): vscode.TreeItem {
  const resource = vscode.Uri.parse(uri);
  const item = new vscode.TreeItem(resource, vscode.TreeItemCollapsibleState.Expanded);
  const isMulti = (vscode.workspace.workspaceFolders?.length ?? 0) > 1;
  const folder = path.posix.dirname(vscode.workspace.asRelativePath(resource, isMulti).replace(/\\/g, '/'));
  const [most] = rows;
  const cost = rows.length > 1 && most ? `${most.metric === 'accuracy' ? 'from' : 'up to'} ${most.medianText}` : '';
  item.id = uri;
  item.description = [cost, folder].filter((words) => words !== '' && words !== '.').join(' · ');
  item.iconPath = vscode.ThemeIcon.File;
  item.tooltip = `${vscode.workspace.asRelativePath(resource, isMulti)}: ${count(rows.length, 'prediction')}`;
  item.accessibilityInformation = { label: `${path.posix.basename(resource.path)}, ${item.description}` };
  return item;
}

function rowItem({ row, isFile }: RowNode): vscode.TreeItem {
  const cost = row.waitText ? row.waitText : row.medianText;
  const isNetwork = row.basis === 'network';
  const name = isNetwork && isFile !== true ? (row.deviceName ?? row.device ?? title(row)) : shortTitle(row);
  const item = new vscode.TreeItem(`${cost} · ${name}`);
  const folder = path.posix.dirname(row.file);
  const place = isNetwork ? (isFile === true && folder !== '.' ? folder : '') : `line ${row.line + 1}`;
  item.description = place;
  item.tooltip = tooltip(row);
  item.iconPath = new vscode.ThemeIcon(ICONS[row.basis] ?? 'symbol-misc');
  item.command = { command: `${VIEW}.open`, title: 'Go to Source', arguments: [row] };
  item.accessibilityInformation = { label: `${row.metric} ${cost}, ${name}, ${isNetwork ? row.file : place}` };
  return item;
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

/** Without the functions that a nested one is in: a row is narrow, and its tooltip has the whole name. */
function shortTitle(row: Row): string {
  return title(row).replace(/^.*<locals>\./, '');
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
