/** Creates HTML and SVG elements. Text is set as text, so the content of a file is never interpreted as markup. */

const SVG = new Set(['svg', 'g', 'line', 'rect', 'circle', 'path']);

type Child = Node | string;

export function element(
  name: 'svg' | 'g' | 'line' | 'rect' | 'circle' | 'path',
  attributes?: Readonly<Record<string, string>>,
  children?: readonly Child[] | string,
): SVGElement;
export function element<Name extends keyof HTMLElementTagNameMap>(
  name: Name,
  attributes?: Readonly<Record<string, string>>,
  children?: readonly Child[] | string,
): HTMLElementTagNameMap[Name];
export function element(
  name: string,
  attributes: Readonly<Record<string, string>> = {},
  children: readonly Child[] | string = [],
): Element {
  return fill(
    SVG.has(name) ? document.createElementNS('http://www.w3.org/2000/svg', name) : document.createElement(name),
    attributes,
    children,
  );
}

/** Text in an SVG; HTML has elements of the same names. */
export function drawn(name: 'text' | 'title', attributes: Readonly<Record<string, string>>, text: string): Element {
  return fill(document.createElementNS('http://www.w3.org/2000/svg', name), attributes, text);
}

function fill(
  made: Element,
  attributes: Readonly<Record<string, string>>,
  children: readonly Child[] | string,
): Element {
  for (const [key, value] of Object.entries(attributes)) {
    made.setAttribute(key, value);
  }
  made.append(...(typeof children === 'string' ? [children] : children));
  return made;
}
