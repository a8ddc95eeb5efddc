/** A value in SI units as text, as the server's `rendering/labels.py` writes it; a test compares the two. */

const UNITS: Readonly<Record<string, readonly (readonly [scale: number, symbol: string])[]>> = {
  latency: [
    [1, 's'],
    [1e-3, 'ms'],
    [1e-6, 'µs'],
    [1e-9, 'ns'],
  ],
  memory: [
    [1024 ** 3, 'GiB'],
    [1024 ** 2, 'MiB'],
    [1024, 'KiB'],
    [1, 'B'],
  ],
  accuracy: [[0.01, '%']],
  energy: [
    [1, 'J'],
    [1e-3, 'mJ'],
    [1e-6, 'µJ'],
    [1e-9, 'nJ'],
  ],
};

/**
 * A value with two significant digits, in the largest unit in which the rounded value is at least 1, and in the next one from
 * 1000 on: `1 µs`, `0.98 KiB`. An accuracy has one decimal: `93.9 %`.
 */
export function quantity(metric: string, value: number): string {
  const units = UNITS[metric] ?? [[1, '']];
  const found = units.findIndex(([size]) => twoDigits(value / size) >= 1);
  const place = found < 0 ? units.length - 1 : found;
  const isLarge = place > 0 && twoDigits(value / (units[place]?.[0] ?? 1)) >= 1000;
  const [scale, symbol] = units[isLarge ? place - 1 : place] ?? [1, ''];
  if (symbol === '%') {
    return `${(Math.floor((value / scale) * 10 + 0.5) / 10).toFixed(1)} %`;
  }
  const rounded = twoDigits(value / scale);
  const digits = rounded >= 10_000 ? rounded.toExponential().replace('e+', 'e') : String(rounded);
  return `${digits} ${symbol}`.trimEnd();
}

/** Two significant digits; a half is rounded to the even digit, as Python does. */
function twoDigits(value: number): number {
  if (value === 0) {
    return 0;
  }
  // A double has at most 767 significant digits, but a half at the third digit ends there.
  const [mantissa = '', exponent = '0'] = value.toExponential(20).split('e');
  const isHalf = /^\d\.\d50*$/.test(mantissa);
  const isEven = Number(mantissa[2]) % 2 === 0;
  return isHalf && isEven ? Number(`${mantissa.slice(0, 3)}e${exponent}`) : Number(value.toPrecision(2));
}
