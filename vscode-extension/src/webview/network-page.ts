/** The page about networks, in the browser: tables and a plot of the data that the extension sends. */

import { Network, Prediction, Sizes } from '../common/protocol';
import { FromPage, ToPage } from '../network/messages';
import { deviceName, deviceTable } from './device-table';
import { element } from './dom';
import { operatorCharts } from './operator-chart';
import * as pair from './pair';
import { compared } from './plot';

declare function acquireVsCodeApi(): { postMessage(message: FromPage): void };

const SIZES: Readonly<Record<string, string>> = {
  batch: 'Batch',
  image: 'Image side',
  tokens: 'Tokens',
  samples: 'Samples',
};
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
      keepingFocus(() => {
        about.replaceChildren(...described(message.network));
        page.replaceChildren(about, others);
      });
      break;
    case 'pair':
      keepingFocus(() => page.replaceChildren(...describedPair(message.first, message.second)));
      break;
    case 'networks':
      keepingFocus(() => {
        others.replaceChildren(...compared(message.networks, message.current, (reply) => api.postMessage(reply)));
        page.replaceChildren(...(message.current !== undefined ? [about, others] : [others]));
      });
      break;
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

/** Draw, and give the focus back to the element that had it. */
function keepingFocus(draw: () => void): void {
  const focused = document.activeElement?.id;
  draw();
  if (focused) {
    document.getElementById(focused)?.focus();
  }
}

function described(network: Network): HTMLElement[] {
  const copy = element('button', { type: 'button', class: 'secondary' }, 'Copy text');
  copy.addEventListener('click', () => api.postMessage({ kind: 'copy', text: network.text }));
  return [
    element('h1', {}, network.name),
    element('p', { class: 'quiet' }, `Predicted from the graph by ${network.model}. Nothing was run.`),
    sizes([network]),
    element('h2', {}, 'Latency'),
    ...deviceTable(network),
    ...operatorCharts([network]),
    ...energyLines(network),
    element('h2', {}, 'Accuracy'),
    ...network.accuracy.map(accuracy),
    ...(network.measured ?? []).map((line) => element('p', {}, capitalized(line))),
    element('details', {}, [
      element('summary', {}, 'The graph as the text that the model reads'),
      copy,
      element('pre', { tabindex: '0' }, network.text),
    ]),
  ];
}

function describedPair(first: Network, second: Network): HTMLElement[] {
  return [
    element('h1', {}, `${first.name} and ${second.name}`),
    element('p', { class: 'quiet' }, `Predicted from the graphs by ${first.model}. Nothing was run.`),
    sizes([first, second]),
    element('h2', {}, 'Latency'),
    ...pair.compared(first, second),
  ];
}

/** Fields for the batch, and for the sizes that the files leave open. */
function sizes(networks: readonly Network[]): HTMLElement {
  const open: Sizes = Object.fromEntries(networks.flatMap((network) => Object.entries(network.open ?? {})));
  const asked: Sizes = Object.fromEntries(networks.flatMap((network) => Object.entries(network.sizes ?? {})));
  const fields = ['batch', ...Object.keys(open)].map((name) => {
    const field = element('input', { id: `size-${name}`, type: 'number', min: '1', step: '1' });
    field.value = String(asked[name] ?? open[name] ?? '');
    field.placeholder = name === 'batch' ? 'as measured' : '';
    return { name, field };
  });
  const ask = (): void => {
    const wanted = fields
      .map(({ name, field }) => [name, field.valueAsNumber] as const)
      .filter(([name, value]) => Number.isInteger(value) && value > 0 && (name in asked || value !== open[name]));
    api.postMessage({ kind: 'sizes', sizes: Object.fromEntries(wanted) });
  };
  return element('p', { class: 'sizes' }, [
    ...fields.flatMap(({ name, field }) => {
      field.addEventListener('change', ask);
      return [element('label', { for: field.id }, SIZES[name] ?? name), field];
    }),
  ]);
}

function capitalized(line: string): string {
  return line.charAt(0).toUpperCase() + line.slice(1);
}

/** The energy of one inference where it is known; few devices were measured, on few networks. */
function energyLines({ energy }: Network): HTMLElement[] {
  const known = (energy ?? []).filter(({ median }) => median !== null);
  const lines = known.map((prediction) =>
    element('p', {}, [
      element('strong', {}, prediction.medianText),
      ` on ${deviceName(prediction)} with ${prediction.workload.backend ?? 'its usual runtime'};` +
        ` the 80 % range is ${prediction.bandText}.`,
    ]),
  );
  return lines.length > 0 ? [element('h2', {}, 'Energy of one inference'), ...lines] : [];
}

function accuracy(prediction: Prediction): HTMLElement {
  const { dataset, epochs } = prediction.workload;
  const trained = [dataset && `on ${dataset}`, epochs && `after ${epochs} epochs of training`]
    .filter(Boolean)
    .join(' ');
  if (prediction.median === null) {
    return element(
      'p',
      { class: 'quiet' },
      `No prediction ${trained}: ${prediction.abstained ?? 'the reason is unknown'}`,
    );
  }
  return element('p', {}, [
    element('strong', {}, prediction.medianText),
    ` ${trained}; the 80 % range is ${prediction.bandText}.`,
  ]);
}
