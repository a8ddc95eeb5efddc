/** Two networks next to each other: their latencies on each device, and their most expensive operators. */

import { Network, Prediction } from '../common/protocol';
import { deviceName, table } from './device-table';
import { element } from './dom';
import { operatorCharts } from './operator-chart';

export function compared(first: Network, second: Network): HTMLElement[] {
  const pairs = first.latency
    .map((before) => [before, second.latency.find(({ device }) => device === before.device)] as const)
    .filter((pair): pair is readonly [Prediction, Prediction] => pair.every((one) => typeof one?.median === 'number'));
  if (pairs.length === 0) {
    const [reason] = [...first.latency, ...second.latency].map(({ abstained }) => abstained).filter(Boolean);
    return [element('p', {}, `No device has a predicted latency of both${reason ? `: ${reason}` : ''}.`)];
  }
  const rows = pairs.map(([before, after]) =>
    element('tr', {}, [
      element('th', { scope: 'row' }, deviceName(before)),
      element('td', { class: 'number' }, before.workload.batch ?? '1'),
      element('td', { class: 'number' }, `${before.medianText} (${before.bandText})`),
      element('td', { class: 'number' }, `${after.medianText} (${after.bandText})`),
      ...ratioCells(second, after),
      element('td', { class: 'number' }, [peak(first, before), peak(second, after)].filter(Boolean).join(', ')),
    ]),
  );
  const caption = 'Predicted time of one batch and the ratio with their 80 % ranges, and peak memory';
  const head = ['Device', 'Batch', first.name, second.name, 'Ratio', 'Second', 'Memory of both'];
  return [table(caption, [head, rows]), ...operatorCharts([first, second])];
}

function peak({ memory }: Network, { device }: Prediction): string {
  return memory?.find((one) => one.device === device)?.medianText ?? '';
}

/** The ratio of the latencies and which is faster, where at least 80 % of such answers are right. */
function ratioCells(second: Network, after: Prediction): HTMLElement[] {
  const found = second.ratios?.find(({ metric, device }) => metric === 'latency' && device === after.device);
  const words = { higher: 'slower', lower: 'faster' };
  return [
    element('td', { class: 'number' }, found ? `${found.ratioText} (${found.rangeText})` : ''),
    element('td', {}, found?.direction ? words[found.direction] : 'not known'),
  ];
}
