/** Opens a report in Chromium, light and dark, does what a reader does, and prints what was seen as JSON. */

import { mkdirSync } from 'node:fs';
import { createRequire } from 'node:module';
import path from 'node:path';
import { pathToFileURL } from 'node:url';

const [extension, file, pictures] = process.argv.slice(2);
const { chromium } = createRequire(path.join(extension, 'package.json'))('playwright-core');

async function look(browser, scheme) {
  const context = await browser.newContext({ viewport: { width: 1180, height: 900 }, colorScheme: scheme });
  const page = await context.newPage();
  page.setDefaultTimeout(60_000);
  const seen = { messages: [], requests: [] };
  page.on('console', (message) => seen.messages.push(message.text()));
  page.on('pageerror', (error) => seen.messages.push(String(error)));
  page.on('request', (request) => seen.requests.push(request.url()));
  await page.goto(pathToFileURL(file).href);
  await page.waitForFunction(() => document.documentElement.dataset.drawn);
  seen.drawn = await page.evaluate(() =>
    Object.fromEntries(
      [...document.querySelectorAll('.chart')].map((chart) => [
        chart.id,
        chart.querySelectorAll('.scatterlayer .point, .scatterlayer .js-line, .treemaplayer .slice').length,
      ]),
    ),
  );
  seen.paper = await page.evaluate(() => getComputedStyle(document.body).backgroundColor);
  seen.ink = await page.evaluate(() => getComputedStyle(document.querySelector('#calibration .xtick text')).fill);
  mkdirSync(pictures, { recursive: true });
  await page.screenshot({ path: path.join(pictures, `${scheme}.png`), fullPage: true });

  const factors = () => page.locator('table.sortable tbody tr td:last-child').evaluateAll((all) => all.map((one) => +one.dataset.value));
  const header = page.locator('table.sortable th', { hasText: 'ratio to the median' });
  await header.locator('button').click();
  seen.descending = await factors();
  await header.locator('button').click();
  seen.ascending = await factors();
  seen.sorted = await header.getAttribute('aria-sort');

  const shapes = () => [...document.querySelectorAll('#modules .slice path')].map((one) => one.getAttribute('d')).join();
  const measured = await page.evaluate(shapes);
  await page.getByRole('button', { name: 'functions: predicted peak memory' }).click();
  await page.waitForFunction(
    (before) => [...document.querySelectorAll('#modules .slice path')].map((one) => one.getAttribute('d')).join() !== before,
    measured,
  );
  seen.pressed = await page.locator('.choice [aria-pressed="true"]').allTextContents();
  seen.before = seen.messages.length;
  seen.fetched = await page.evaluate(() => fetch('https://192.0.2.1/').then(() => 'loaded', () => 'refused'));
  await context.close();
  return seen;
}

const browser = await chromium.launch({
  executablePath: '/usr/bin/chromium',
  args: ['--no-sandbox', '--disable-dev-shm-usage'],
});
try {
  console.log(JSON.stringify({ light: await look(browser, 'light'), dark: await look(browser, 'dark') }));
} finally {
  await browser.close();
}
