/** Rows of the overview as a tree: groups of costs that can be compared, their files, and the rows of each. */

import { Row } from '../common/protocol';

/** In the order in which they are listed: what each is called, and what its costs are of. */
export const GROUPS: Readonly<Record<string, readonly [string, string]>> = {
  calls: ['Calls', 'one call of a function'],
  judge: ['Judge runs', 'one run of a solution'],
  gpu: ['GPU kernels and passes', 'one launch or pass'],
  networks: ['Networks', 'one inference'],
};

/** Rows whose costs can be compared, of several files. */
export interface GroupNode {
  readonly group: string;
  readonly files: readonly FileNode[];
}
/** A file with its rows, the most expensive first. */
export interface FileNode {
  readonly uri: string;
  readonly group: string;
  readonly rows: readonly Row[];
}
/** A prediction; `isFile` if it is a network, which no group above it has the name of. */
export interface RowNode {
  readonly row: Row;
  readonly isFile?: boolean;
}
export type Node = GroupNode | FileNode | RowNode | 'more';

/** The groups of rows, each with its files. */
export function byGroup(rows: readonly Row[]): GroupNode[] {
  const groups = new Map<string, Row[]>(Object.keys(GROUPS).map((group) => [group, []]));
  for (const row of rows) {
    groups.get(groupOf(row))?.push(row);
  }
  return [...groups].filter(([, ofGroup]) => ofGroup.length > 0).map(([group, ofGroup]) => byFile(group, ofGroup));
}

/** The rows of one group after those of another, otherwise in their order. */
export function inGroups(rows: readonly Row[]): Row[] {
  const order = Object.keys(GROUPS);
  return [...rows].sort((one, other) => order.indexOf(groupOf(one)) - order.indexOf(groupOf(other)));
}

function groupOf({ group }: Row): string {
  return group !== undefined && group in GROUPS ? group : 'calls';
}

/** The files of the rows of a group, in the order of their first, most expensive row. */
function byFile(group: string, rows: readonly Row[]): GroupNode {
  const files = new Map<string, Row[]>();
  for (const row of rows) {
    const known = files.get(row.uri);
    if (known === undefined) {
      files.set(row.uri, [row]);
    } else {
      known.push(row);
    }
  }
  return { group, files: [...files].map(([uri, ofFile]) => ({ uri, group, rows: ofFile })) };
}

/** A network is its file: with a single prediction it is one node. */
export function withoutFile(file: FileNode): Node {
  const [row] = file.rows;
  return row?.basis === 'network' && file.rows.length === 1 ? { row, isFile: true } : file;
}

/** The rows of a network for its other devices. */
export function onOthers(row: Row): Row[] {
  return (row.others ?? []).map((other) => ({ ...row, ...other, others: [] }));
}

/** The most expensive first; of accuracies, the lowest. */
export function byCost(one: Row, other: Row): number {
  const difference = (other.median ?? 0) - (one.median ?? 0);
  return one.metric === 'accuracy' ? -difference : difference;
}
