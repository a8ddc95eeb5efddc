/** Formats the accuracies of networks. They differ by less than one per cent, so they have an extra digit. */

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
