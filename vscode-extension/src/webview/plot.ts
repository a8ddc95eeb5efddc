/** Accuracy against latency for the networks of a folder, as a plot and as a table. */

import { Networks, Point } from '../common/protocol';
import { quantity } from '../common/quantity';
import { FromPage } from '../network/messages';
import { drawn, element } from './dom';

const [WIDTH, HEIGHT] = [720, 380];
const MARGIN = { left: 62, right: 24, top: 28, bottom: 52 };
const MOST_NAMES = 13;

type Send = (message: FromPage) => void;

export function compared(networks: Networks, current: string | undefined, send: Send): HTMLElement[] {
  const { points, others, folder } = networks;
  const elements: HTMLElement[] = [];
  if (points.length + others.length <= 1 && current !== undefined) {
    return elements;
  }
  elements.push(element(current === undefined ? 'h1' : 'h2', {}, `Models in ${folder}/`));
  if (points.length === 0) {
    elements.push(
      element(
        'p',
        {},
        others.length === 0
          ? 'This folder contains no .onnx file.'
          : 'No network has both a predicted accuracy and a predicted latency.',
      ),
    );
  } else {
    const best = points.filter((point) => point.front).length;
    const summary = `${best} of ${points.length} ${best === 1 ? 'is' : 'are'} on the Pareto front: no other network is both faster and more accurate.`;
    elements.push(
      element('p', {}, summary),
      devices(networks, send),
      plot(points, current, send),
      table(points, current, send),
    );
  }
  if (others.length > 0) {
    const rows = others.map(({ name, uri, reason }) =>
      element('li', {}, [link(name, uri, current, send), ` – ${reason}`]),
    );
    elements.push(
      element('details', {}, [
        element('summary', {}, `Without a prediction: ${others.length}`),
        element('ul', {}, rows),
      ]),
    );
  }
  if (networks.left > 0) {
    elements.push(element('p', {}, `${networks.left} more files are not shown.`));
  }
  return elements;
}

function devices({ devices: known, device }: Networks, send: Send): HTMLElement {
  const choice = element('select', { id: 'device' }, [
    ...known.map(({ id, name }) => {
      const option = element('option', { value: id }, name);
      option.selected = id === device;
      return option;
    }),
  ]);
  choice.addEventListener('change', () => send({ kind: 'device', device: choice.value }));
  return element('p', {}, [element('label', { for: 'device' }, 'Latency on '), choice]);
}

function plot(points: readonly Point[], current: string | undefined, send: Send): HTMLElement {
  const place = places(points);
  const front = points.filter((point) => point.front);
  // The current network is drawn on top.
  const drawnLast = [...points].sort((left, right) => Number(left.uri === current) - Number(right.uri === current));
  const marks = drawnLast.map((point) => {
    const [x, y] = [place.x(median(point.latency)), place.y(median(point.accuracy))];
    const [left, right] = [
      place.x(point.latency.low || median(point.latency)),
      place.x(point.latency.high ?? median(point.latency)),
    ];
    const [bottom, top] = [place.y(point.accuracy.low ?? 0), place.y(point.accuracy.high ?? 1)];
    const words = `${point.name}: ${point.latency.medianText}, ${point.accuracy.medianText}`;
    const kind = point.uri === current ? 'point current' : point.front ? 'point front' : 'point';
    const mark = element('g', { class: kind, tabindex: '0', role: 'link', 'aria-label': words }, [
      drawn('title', {}, `${words} (${point.latency.bandText}, ${point.accuracy.bandText})`),
      element('line', { class: 'band', x1: px(left), y1: px(y), x2: px(right), y2: px(y) }),
      element('line', { class: 'band', x1: px(x), y1: px(bottom), x2: px(x), y2: px(top) }),
      element('circle', { cx: px(x), cy: px(y), r: point.uri === current ? '7' : '5' }),
    ]);
    const open = (): void => send({ kind: 'open', uri: point.uri });
    mark.addEventListener('click', open);
    mark.addEventListener('keydown', (event) => {
      if (event.key === 'Enter' || event.key === ' ') {
        event.preventDefault();
        open();
      }
    });
    return mark;
  });
  const steps = front.map((point, number) => {
    const [x, y] = [px(place.x(median(point.latency))), px(place.y(median(point.accuracy)))];
    return number === 0 ? `M${x} ${y}` : `H${x} V${y}`;
  });
  return element('figure', {}, [
    element('svg', { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, role: 'group', 'aria-label': 'Accuracy against latency' }, [
      ...axes(place),
      element('path', { class: 'front', d: steps.join(' ') }),
      ...marks,
      ...names(points, current, place),
    ]),
    element(
      'figcaption',
      { class: 'quiet' },
      'The lines through a point show its 80 % ranges. Press Enter on a point to open its network.',
    ),
  ]);
}

interface Places {
  readonly x: (latency: number) => number;
  readonly y: (accuracy: number) => number;
  readonly xTicks: readonly number[];
  readonly yTicks: readonly number[];
}

/** Where latencies (logarithmic) and accuracies (linear) are in the plot. */
function places(points: readonly Point[]): Places {
  const latencies = points.flatMap(({ latency }) => [latency.low || median(latency), latency.high ?? median(latency)]);
  const accuracies = points.flatMap(({ accuracy }) => [
    accuracy.low ?? median(accuracy),
    accuracy.high ?? median(accuracy),
  ]);
  const [quick, slow] = [Math.min(...latencies) / 1.15, Math.max(...latencies) * 1.15];
  const room = Math.max((Math.max(...accuracies) - Math.min(...accuracies)) * 0.08, 0.002);
  const [worst, best] = [Math.max(Math.min(...accuracies) - room, 0), Math.min(Math.max(...accuracies) + room, 1)];
  const [width, height] = [WIDTH - MARGIN.left - MARGIN.right, HEIGHT - MARGIN.top - MARGIN.bottom];
  return {
    x: (latency) => MARGIN.left + (width * Math.log(Math.max(latency, quick) / quick)) / Math.log(slow / quick),
    y: (accuracy) => MARGIN.top + height * (1 - (accuracy - worst) / (best - worst || 1)),
    xTicks: logTicks(quick, slow),
    yTicks: linearTicks(worst, best),
  };
}

function axes(place: Places): Element[] {
  const [right, bottom] = [WIDTH - MARGIN.right, HEIGHT - MARGIN.bottom];
  const [first = 0, second = 1] = place.yTicks;
  const digits = second - first < 0.0099 ? 1 : 0;
  return [
    ...place.xTicks.flatMap((value) => [
      element('line', {
        class: 'grid',
        x1: px(place.x(value)),
        y1: px(MARGIN.top),
        x2: px(place.x(value)),
        y2: px(bottom),
      }),
      drawn(
        'text',
        { class: 'tick', x: px(place.x(value)), y: px(bottom + 18), 'text-anchor': 'middle' },
        quantity('latency', value),
      ),
    ]),
    ...place.yTicks.flatMap((value) => [
      element('line', {
        class: 'grid',
        x1: px(MARGIN.left),
        y1: px(place.y(value)),
        x2: px(right),
        y2: px(place.y(value)),
      }),
      drawn(
        'text',
        { class: 'tick', x: px(MARGIN.left - 8), y: px(place.y(value) + 4), 'text-anchor': 'end' },
        `${(value * 100).toFixed(digits)} %`,
      ),
    ]),
    drawn(
      'text',
      { class: 'axis', x: px((MARGIN.left + right) / 2), y: px(HEIGHT - 8), 'text-anchor': 'middle' },
      'Latency (left is faster)',
    ),
    drawn(
      'text',
      { class: 'axis', x: px(-(MARGIN.top + bottom) / 2), y: '14', 'text-anchor': 'middle', transform: 'rotate(-90)' },
      'Accuracy',
    ),
  ];
}

/** The names of the front and the current network, to the upper left, where no other network is; without overlap. */
function names(points: readonly Point[], current: string | undefined, place: Places): Element[] {
  const named = points.filter((point) => point.front || point.uri === current);
  const order = [...named].sort((left, right) => Number(right.uri === current) - Number(left.uri === current));
  const taken: { readonly end: number; readonly y: number; readonly width: number }[] = [];
  const labels: Element[] = [];
  for (const point of order.slice(0, MOST_NAMES)) {
    const width = point.name.length * 7;
    const end = Math.max(place.x(median(point.latency)) - 6, MARGIN.left + width + 4);
    const y = Math.max(place.y(median(point.accuracy)) - 9, MARGIN.top + 12);
    const isFree = !taken.some(
      (label) => Math.abs(label.y - y) < 14 && end - width < label.end && label.end - label.width < end,
    );
    if (isFree) {
      taken.push({ end, y, width });
      const kind = point.uri === current ? 'name current' : 'name';
      labels.push(
        drawn('text', { class: kind, x: px(end), y: px(y), 'text-anchor': 'end', 'aria-hidden': 'true' }, point.name),
      );
    }
  }
  return labels;
}

function table(points: readonly Point[], current: string | undefined, send: Send): HTMLElement {
  const rows = points.map((point) =>
    element('tr', point.uri === current ? { class: 'current' } : {}, [
      element('th', { scope: 'row' }, [link(point.name, point.uri, current, send)]),
      element('td', { class: 'number' }, point.latency.medianText),
      element('td', { class: 'number' }, point.latency.bandText),
      element('td', { class: 'number' }, point.accuracy.medianText),
      element('td', { class: 'number' }, point.accuracy.bandText),
      element('td', {}, point.front ? 'yes' : ''),
    ]),
  );
  const head = ['Network', 'Latency', '80 % range', 'Accuracy', '80 % range', 'Pareto front'];
  return element('table', {}, [
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

function link(name: string, uri: string, current: string | undefined, send: Send): Node {
  if (uri === current) {
    return document.createTextNode(name);
  }
  const anchor = element('a', { href: '#' }, name);
  anchor.addEventListener('click', (event) => {
    event.preventDefault();
    send({ kind: 'open', uri });
  });
  return anchor;
}

function median(prediction: Point['latency']): number {
  return prediction.median ?? 0;
}

function px(value: number): string {
  return value.toFixed(1);
}

/** Values of the form 1, 2 or 5 times a power of ten; all of 1 to 9 if the range is short. */
function logTicks(low: number, high: number): number[] {
  for (const steps of [[1], [1, 2, 5], [1, 1.5, 2, 3, 4, 5, 6, 7, 8, 9]]) {
    const ticks: number[] = [];
    for (let power = Math.floor(Math.log10(low)); power <= Math.log10(high); power++) {
      ticks.push(...steps.map((step) => step * 10 ** power).filter((value) => value >= low && value <= high));
    }
    if (ticks.length >= 3) {
      return ticks;
    }
  }
  return [low * 1.15, high / 1.15];
}

function linearTicks(low: number, high: number): number[] {
  const rough = (high - low) / 5;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].map((factor) => factor * power).find((width) => width >= rough) ?? rough;
  const ticks: number[] = [];
  for (let number = Math.ceil(low / step); number * step <= high; number++) {
    ticks.push(number * step);
  }
  return ticks;
}
