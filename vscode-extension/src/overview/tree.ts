/**
 * The workspace's units by predicted cost, grouped by file, the most expensive first; costs that cannot be compared, such
 * as those of calls and of a judge's runs, are in separate groups. Rows appear while the server reads the workspace, and
 * change soon after an edit; the list is filtered by file, metric and device, and leaves out tests unless the user wants
 * them.
 */

import * as vscode from 'vscode';

import { READING_WORKSPACE } from '../common/client';
import { OverviewPage, OverviewParams, overviewPart, overviewRequest, Row } from '../common/protocol';
import { asError, Session } from '../common/session';
import { byCost, byGroup, Node, onOthers, withoutFile } from './groups';
import { count, fileItem, groupItem, METRICS, rowItem, VIEW } from './items';

const PAGE = 1000;
/** While rows arrive, the list is drawn no more often than this. */
const DRAW_MS = 250;
/** After the last change, this passes before the list is updated. */
const UPDATE_MS = 1000;

export type Filter = Pick<OverviewParams, 'metric' | 'file' | 'device' | 'tests'>;
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
  private updateTimer: NodeJS.Timeout | undefined;
  private isReading = false;
  /** How often the list was said not to hold, and how often when it was read last. */
  private changes = 0;
  private changesRead = 0;

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
      session.onDidChangeOverview(() => {
        this.changes++;
        this.updateSoon();
      }),
      this.view.onDidChangeVisibility(({ visible }) => {
        if (!visible || session.state.kind !== 'running') {
          return;
        }
        if (this.page === undefined) {
          void this.load({});
        } else if (this.isOutdated) {
          this.updateSoon();
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

  /** Say that the list no longer holds, and update it soon if it is shown and was not stopped. */
  private updateSoon(): void {
    if (this.isReading) {
      return; // once it has been read
    }
    const updates = this.page?.complete !== false;
    this.view.message = this.sentences(updates ? 'Out of date; updating soon.' : 'Out of date.');
    this.draw();
    clearTimeout(this.updateTimer);
    if (updates && this.view.visible) {
      this.updateTimer = setTimeout(() => void this.update(), UPDATE_MS);
    }
  }

  /** Read what has changed; the list stays as it is until then. */
  private async update(): Promise<void> {
    const wanted = this.loaded.length;
    await this.next({ ...this.filterNow, update: true }, []);
    while (this.page?.cursor && this.loaded.length < wanted) {
      await this.more();
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
    return 'row' in node ? rowItem(node) : 'files' in node ? groupItem(node) : fileItem(node);
  }

  getChildren(node?: Node): Node[] {
    if (node === undefined) {
      const groups = byGroup(this.loaded);
      const [only, ...others] = groups;
      const nodes = others.length > 0 ? groups : (only?.files ?? []).map(withoutFile);
      return [...nodes, ...(this.page?.cursor ? (['more'] as const) : [])];
    }
    if (node === 'more') {
      return [];
    }
    if ('row' in node) {
      return onOthers(node.row).map((row) => ({ row }));
    }
    return 'files' in node ? node.files.map(withoutFile) : node.rows.map((row) => ({ row }));
  }

  dispose(): void {
    this.turn++;
    clearTimeout(this.timer);
    clearTimeout(this.updateTimer);
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
    clearTimeout(this.updateTimer);
    this.isReading = true;
    this.changesRead = this.changes;
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
    if (params.update === true) {
      this.view.message = this.sentences('Out of date; updating…');
    } else if (params.cursor === undefined) {
      this.view.message = 'Reading the workspace…';
    }
    void vscode.commands.executeCommand('setContext', `${VIEW}.reading`, true);
    await vscode.window.withProgress({ location: { viewId: VIEW } }, async () => {
      try {
        const page = await client.sendRequest(overviewRequest, {
          limit: PAGE,
          watch: true,
          partialResultToken,
          ...params,
        });
        if (turn === this.turn) {
          this.page = page;
          this.loaded = [...before, ...page.rows];
          this.view.message = this.sentences();
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
      this.isReading = false;
      void vscode.commands.executeCommand('setContext', `${VIEW}.reading`, false);
      if (this.isOutdated) {
        this.updateSoon();
      }
    }
  }

  private get isOutdated(): boolean {
    return this.changes !== this.changesRead;
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
    this.isReading = false;
    this.changesRead = this.changes;
    clearTimeout(this.updateTimer);
    this.view.message = undefined;
    this.draw();
  }

  /** The message above the list: what is said first, and what there is to say about the page. */
  private sentences(first?: string): string | undefined {
    const sentences = first !== undefined ? [first] : [];
    const page = this.page;
    if (page === undefined) {
      return first;
    }
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
    if (page.unsaved === true && first === undefined) {
      sentences.push('Callers in other files are updated when you save.');
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
