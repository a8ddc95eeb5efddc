/** Draws `images/icon.png`: three ranges with their medians, the shortest first. Needs Chromium (`CHROMIUM` names it). */

import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { chromium } from 'playwright-core';

const file = path.join(path.dirname(path.dirname(fileURLToPath(import.meta.url))), 'images', 'icon.png');
const ranges = [
  { y: 74, from: 48, to: 118, at: 80, colour: '#6fd0c0' },
  { y: 128, from: 72, to: 170, at: 112, colour: '#f2c14e' },
  { y: 182, from: 108, to: 212, at: 158, colour: '#ef6f6c' },
];
const bars = ranges.map(
  ({ y, from, to, at, colour }) =>
    `<rect x="${from}" y="${y - 15}" width="${to - from}" height="30" rx="15" fill="${colour}" opacity=".55"/>` +
    `<circle cx="${at}" cy="${y}" r="18" fill="${colour}"/>`,
);
const drawing = `<svg xmlns="http://www.w3.org/2000/svg" width="256" height="256">
<rect width="256" height="256" rx="48" fill="#1b2a3a"/>${bars.join('')}</svg>`;

const browser = await chromium.launch({
  executablePath: process.env.CHROMIUM ?? '/usr/bin/chromium',
  args: ['--no-sandbox', '--disable-dev-shm-usage'],
});
const page = await browser.newPage({ viewport: { width: 256, height: 256 } });
await page.setContent(`<style>body{margin:0}svg{display:block}</style>${drawing}`);
await page.screenshot({ path: file, omitBackground: true });
await browser.close();
console.log(file);
