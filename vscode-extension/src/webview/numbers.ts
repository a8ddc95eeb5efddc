/** Formats the numbers of networks. Accuracies differ by less than one per cent, so they have an extra digit. */

import { Prediction } from '../common/protocol';

export function percent(value: number | null): string {
  return value === null ? '' : `${(value * 100).toFixed(1)} %`;
}

export function percentBand({ low, high }: Prediction): string {
  if (low === null || high === null) {
    return '';
  }
  const [start, end] = [(low * 100).toFixed(1), (high * 100).toFixed(1)];
  return start === end ? `${start} %` : `${start}–${end} %`;
}

export function seconds(value: number): string {
  const [scale, symbol] = value >= 1 ? [1, 's'] : value >= 1e-3 ? [1e-3, 'ms'] : [1e-6, 'µs'];
  return `${Number((value / scale).toPrecision(2))} ${symbol}`;
}
