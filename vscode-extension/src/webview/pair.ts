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
      element('td', { class: 'number' }, ratio(before, after)),
      element('td', {}, verdict(before, after)),
    ]),
  );
  const caption = 'Predicted time of one batch with its 80 % range';
  return [
    table(caption, [['Device', 'Batch', first.name, second.name, 'Ratio', 'Second'], rows]),
    ...operatorCharts([first, second]),
  ];
}

function ratio(before: Prediction, after: Prediction): string {
  const value = (after.median ?? 0) / (before.median ?? 1);
  return `${Number(value.toPrecision(2))}×`;
}

/** Which is faster, where the ranges leave no doubt. */
function verdict(before: Prediction, after: Prediction): string {
  if ((before.high ?? Infinity) < (after.low ?? 0)) {
    return 'slower';
  }
  return (after.high ?? Infinity) < (before.low ?? 0) ? 'faster' : 'ranges overlap';
}
