/** The latency of a network on each device: a table with ranges on one logarithmic scale, and what limits it there. */

import { Network, Prediction } from '../common/protocol';
import { element } from './dom';

const WIDTH = 140;

export function deviceTable({ latency, memory }: Network): HTMLElement[] {
  const predicted = latency.filter(({ median }) => median !== null);
  const elements: HTMLElement[] = [];
  if (predicted.length > 0) {
    const sorted = [...predicted].sort((left, right) => (left.median ?? 0) - (right.median ?? 0));
    const least = Math.min(...sorted.map(({ low, median }) => low || median || Infinity));
    const most = Math.max(...sorted.map(({ high, median }) => high ?? median ?? 0));
    const peaks = new Map((memory ?? []).filter(({ median }) => median !== null).map((peak) => [peak.device, peak]));
    const hasBounds = sorted.some(({ network }) => network);
    const head = ['Device', 'Batch', 'Latency', '80 % range', ...(peaks.size > 0 ? ['Peak memory'] : [])];
    const rows = sorted.map((prediction) =>
      element('tr', {}, [
        element('th', { scope: 'row' }, deviceName(prediction)),
        element('td', { class: 'number' }, prediction.workload.batch ?? '1'),
        element('td', { class: 'number' }, prediction.medianText),
        element('td', { class: 'number' }, prediction.bandText),
        ...(peaks.size > 0 ? [element('td', { class: 'number' }, peaks.get(prediction.device)?.medianText ?? '')] : []),
        ...(hasBounds ? [element('td', {}, boundText(prediction))] : []),
        element('td', { class: 'range' }, [range(prediction, least, most)]),
      ]),
    );
    elements.push(
      table('The time of one batch, what limits it and for how much of the time; the bars show the 80 % ranges', [
        [...head, ...(hasBounds ? ['Bound by'] : []), 'Plot'],
        rows,
      ]),
    );
  }
  elements.push(...refusals(latency.filter(({ median }) => median === null)));
  return elements;
}

export function table(caption: string, [head, rows]: readonly [readonly string[], HTMLElement[]]): HTMLElement {
  return element('table', {}, [
    element('caption', {}, caption),
    element('thead', {}, [
      element(
        'tr',
        {},
        head.map((name) => element('th', { scope: 'col' }, name)),
      ),
    ]),
    element('tbody', {}, rows),
  ]);
}

export function deviceName({ deviceName: name, device }: Prediction): string {
  return name ?? device ?? '';
}

/** The limit, and its share of the time. */
function boundText({ network }: Prediction): string {
  if (!network) {
    return '';
  }
  const share = network.bound === 'compute' ? network.arithmetic : 1 - network.arithmetic;
  return `${network.bound} (${Math.round(share * 100)} %)`;
}

/** Why devices have no number: a line for one reason, else a list to open. */
function refusals(refused: readonly Prediction[]): HTMLElement[] {
  const reasonOf = ({ abstained }: Prediction): string => abstained ?? 'the reason is unknown';
  const [first] = refused;
  if (first === undefined) {
    return [];
  }
  const where = refused.length === 1 ? deviceName(first) : `${refused.length} devices`;
  if (new Set(refused.map(reasonOf)).size === 1) {
    return [element('p', { class: 'quiet' }, `No prediction for ${where}: ${reasonOf(first)}`)];
  }
  const rows = refused.map((one) => element('li', {}, `${deviceName(one)}: ${reasonOf(one)}`));
  return [element('details', {}, [element('summary', {}, `No prediction for ${where}`), element('ul', {}, rows)])];
}

function range({ low, median, high }: Prediction, least: number, most: number): SVGElement {
  const place = (value: number): number =>
    most > least ? 4 + ((WIDTH - 8) * Math.log(Math.max(value, least) / least)) / Math.log(most / least) : WIDTH / 2;
  const [start, end] = [place(low || least), place(high ?? most)];
  return element('svg', { viewBox: `0 0 ${WIDTH} 12`, width: String(WIDTH), height: '12', 'aria-hidden': 'true' }, [
    element('line', { class: 'scale', x1: '0', y1: '6', x2: String(WIDTH), y2: '6' }),
    element('rect', {
      class: 'band',
      x: String(start),
      y: '2',
      width: String(Math.max(end - start, 3)),
      height: '8',
      rx: '2',
    }),
    element('circle', { class: 'dot', cx: String(place(median ?? least)), cy: '6', r: '3.5' }),
  ]);
}
