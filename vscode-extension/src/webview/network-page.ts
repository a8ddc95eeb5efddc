/** The page about networks, in the browser: tables and a plot of the data that the extension sends. */

import { Network, Prediction } from '../common/protocol';
import { FromPage, ToPage } from '../network/messages';
import { element } from './dom';
import { compared } from './plot';

declare function acquireVsCodeApi(): { postMessage(message: FromPage): void };

const api = acquireVsCodeApi();
const page = document.getElementById('page') as HTMLElement;
const about = element('div');
const others = element('div');

window.addEventListener('message', (event: MessageEvent<ToPage>) => {
  const message = event.data;
  switch (message.kind) {
    case 'waiting':
      page.replaceChildren(element('p', { class: 'quiet' }, message.text));
      break;
    case 'problem':
      page.replaceChildren(...problem(message.text, message.action));
      break;
    case 'network':
      about.replaceChildren(...described(message.network));
      page.replaceChildren(about, others);
      break;
    case 'networks': {
      const focused = document.activeElement?.id;
      others.replaceChildren(...compared(message.networks, message.current, (reply) => api.postMessage(reply)));
      page.replaceChildren(...(message.current !== undefined ? [about, others] : [others]));
      if (focused) {
        document.getElementById(focused)?.focus();
      }
      break;
    }
  }
});
api.postMessage({ kind: 'ready' });

function problem(text: string, action: string | undefined): HTMLElement[] {
  const elements: HTMLElement[] = [element('p', { role: 'alert' }, text)];
  if (action !== undefined) {
    const button = element('button', { type: 'button' }, action);
    button.addEventListener('click', () => api.postMessage({ kind: 'act' }));
    elements.push(button);
  }
  return elements;
}

function described(network: Network): HTMLElement[] {
  const copy = element('button', { type: 'button', class: 'secondary' }, 'Copy text');
  copy.addEventListener('click', () => api.postMessage({ kind: 'copy', text: network.text }));
  return [
    element('h1', {}, network.name),
    element('p', { class: 'quiet' }, `Predicted from the graph by ${network.model}. Nothing was run.`),
    element('h2', {}, 'Accuracy'),
    ...network.accuracy.map(accuracy),
    element('h2', {}, 'Latency'),
    ...latencies(network.latency),
    ...(network.measured ?? []).map((line) => element('p', {}, capitalized(line))),
    element('details', {}, [
      element('summary', {}, 'The graph as the text that the model reads'),
      copy,
      element('pre', { tabindex: '0' }, network.text),
    ]),
  ];
}

function capitalized(line: string): string {
  return line.charAt(0).toUpperCase() + line.slice(1);
}

function accuracy(prediction: Prediction): HTMLElement {
  const { dataset, epochs } = prediction.workload;
  const trained = [dataset && `on ${dataset}`, epochs && `after ${epochs} epochs of training`]
    .filter(Boolean)
    .join(' ');
  if (prediction.median === null) {
    return element('p', {}, `No prediction ${trained}: ${prediction.abstained ?? 'the reason is unknown'}`);
  }
  return element('p', {}, [
    element('strong', {}, prediction.medianText),
    ` ${trained}; the 80 % range is ${prediction.bandText}.`,
  ]);
}

function latencies(predictions: readonly Prediction[]): HTMLElement[] {
  const predicted = predictions.filter(({ median }) => median !== null);
  const refused = predictions.filter(({ median }) => median === null);
  const elements: HTMLElement[] = [];
  if (predicted.length > 0) {
    const sorted = [...predicted].sort((left, right) => (left.median ?? 0) - (right.median ?? 0));
    const least = Math.min(...sorted.map(({ low, median }) => low || median || Infinity));
    const most = Math.max(...sorted.map(({ high, median }) => high ?? median ?? 0));
    const batch = sorted[0]?.workload.batch ?? '1';
    elements.push(
      element('table', {}, [
        element('caption', {}, `Batch size ${batch}; the bars show the 80 % ranges on a logarithmic scale`),
        element('thead', {}, [
          element(
            'tr',
            {},
            ['Device', 'Median', '80 % range', 'Plot'].map((name) => element('th', { scope: 'col' }, name)),
          ),
        ]),
        element(
          'tbody',
          {},
          sorted.map((prediction) =>
            element('tr', {}, [
              element('th', { scope: 'row' }, prediction.deviceName ?? prediction.device ?? ''),
              element('td', { class: 'number' }, prediction.medianText),
              element('td', { class: 'number' }, prediction.bandText),
              element('td', { class: 'range' }, [bar(prediction, least, most)]),
            ]),
          ),
        ),
      ]),
    );
  }
  if (refused.length > 0) {
    const reasons = [...new Set(refused.map(({ abstained }) => abstained ?? ''))];
    const devices = refused.length === 1 ? '1 device' : `${refused.length} devices`;
    elements.push(element('p', {}, `No prediction for ${devices}: ${reasons[0]}`));
  }
  return elements;
}

const WIDTH = 160;

function bar({ low, median, high }: Prediction, least: number, most: number): SVGElement {
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
