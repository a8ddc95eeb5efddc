/**
 * The frames of the README's animation, from the real editor: an edit, the mark at the function, the hover with what makes
 * its cost grow, the curve behind it, the way to the line, and the cure. Runs after `journey.mjs`, which installs the server.
 * `node animation.mjs VSIX WORKSPACE FRAMES THEME [INTERPRETER]` writes the frames in a theme and how long each is shown,
 * and exits with 1 at the first thing that is not as it should be. With an interpreter, its server is used.
 */

import { rmSync, writeFileSync } from 'node:fs';
import path from 'node:path';

import { Person } from './person.mjs';

const [vsix, workspace, frames] = process.argv.slice(2, 5).map((name) => path.resolve(name));
const [theme, interpreter] = process.argv.slice(5);
const home = path.join(workspace, 'home');
const CLIP = { x: 0, y: 35, width: 1180, height: 560 };
const KEYS_PER_FRAME = 3;
const shown = [];

rmSync(frames, { recursive: true, force: true });
const person = await Person.at({
  home,
  folder: path.join(workspace, 'shop'),
  vsix,
  screenshots: frames,
  settings: {
    'breadcrumbs.enabled': false,
    'editor.autoClosingBrackets': 'never',
    'editor.autoIndent': 'none',
    'editor.fontSize': 17,
    'editor.hover.delay': 100,
    'editor.occurrencesHighlight': 'off',
    'editor.quickSuggestions': { other: 'off' },
    'editor.renderLineHighlight': 'none',
    'editor.selectionHighlight': false,
    'rlm-lsp.hintsShown': 'relevant',
    'rlm-lsp.metrics': ['latency'],
    'workbench.activityBar.location': 'hidden',
    'workbench.colorTheme': theme,
    'workbench.layoutControl.enabled': false,
    ...(interpreter !== undefined ? { 'rlm-lsp.interpreter': [interpreter] } : {}),
  },
});
const { page } = person;

/** A frame that is shown for a while. */
const frame = async (milliseconds) => {
  const file = `${String(shown.length).padStart(3, '0')}.png`;
  await page.screenshot({ path: path.join(frames, file), clip: CLIP, animations: 'disabled', caret: 'initial' });
  shown.push({ file, milliseconds });
};
const type = async (text) => {
  for (let start = 0; start < text.length; start += KEYS_PER_FRAME) {
    await page.keyboard.type(text.slice(start, start + KEYS_PER_FRAME));
    await frame(150);
  }
};
const line = (text) => page.locator('.view-line', { hasText: text });
/** Select the last word of a name in a line. */
const select = async (text, word) => {
  await line(text).locator('span', { hasText: word }).last().dblclick({ position: { x: 8, y: 8 } });
};
const atEnd = async (text) => {
  await line(text).click();
  await page.keyboard.press('End');
};

try {
  person.step('the animation of the README');
  await person.command('View: Close Primary Side Bar');
  await person.open('tests/blocked.py');
  const first = await person.hintsLike('at the sizes', (text) => text.includes(' at '));
  await page.keyboard.press('Control+End');
  await frame(2200);

  await line('known = set').click();
  await page.keyboard.press('Home');
  await page.keyboard.press('Shift+End');
  await frame(700);
  await page.keyboard.press('Backspace');
  await page.keyboard.press('Control+Shift+K');
  await frame(500);
  await atEnd('return [user');
  await page.keyboard.press('ArrowLeft');
  for (let key = 0; key < 'known'.length; key++) {
    await page.keyboard.press('Shift+ArrowLeft');
  }
  await frame(600);
  await type('blocked');
  await person.hintsLike('with a mark', (text) => text.includes('▲'));
  await frame(2500);

  await person.pointAt('def allowed', 'allowed');
  const told = page.locator('.monaco-hover', { hasText: 'finds an item' }).first();
  await told.waitFor();
  await frame(2500);
  await person.scrollTo(told, 'user not in');
  await frame(4000);
  await page.locator('.monaco-hover a', { hasText: 'Details' }).first().click();
  const plot = person.network().locator('svg.plot').first();
  await plot.locator('polyline').first().waitFor({ state: 'attached' });
  await page.mouse.move(600, 700);
  await page.locator('.monaco-hover', { hasText: 'peak memory' }).first().waitFor({ state: 'hidden' });
  await plot.evaluate((drawn) => drawn.scrollIntoView({ block: 'center' }));
  await frame(3000);
  const details = page.locator('.tab', { hasText: 'Preview' });
  await details.first().click({ button: 'middle' });
  await details.waitFor({ state: 'detached' });
  await page.locator('.tab.active', { hasText: 'blocked.py' }).waitFor();

  await line('def allowed').locator('span', { hasText: 'allowed' }).last().click({ position: { x: 40, y: 8 } });
  await page.keyboard.press('Control+.');
  const way = page.locator('.action-widget .monaco-list-row', { hasText: 'makes the cost grow' });
  await way.waitFor();
  await frame(2200);
  await way.click();
  await page.locator('.statusbar', { hasText: 'Ln 6' }).waitFor();
  await frame(700);

  await page.keyboard.press('Home');
  await page.keyboard.press('Home');
  await page.keyboard.type('    known = set(blocked)\n');
  await frame(600);
  await atEnd('return [user');
  await page.keyboard.press('ArrowLeft');
  for (let key = 0; key < 'blocked'.length; key++) {
    await page.keyboard.press('Shift+ArrowLeft');
  }
  await frame(400);
  await type('known');
  await person.hintsLike('as before', (text) => text === first);
  await page.keyboard.press('Control+End');
  await frame(2500);
  writeFileSync(path.join(frames, 'frames.json'), JSON.stringify(shown, null, 1));
  await person.command('File: Revert File');
} catch (error) {
  await person.shot('failed');
  throw error;
} finally {
  await person.leave();
}
